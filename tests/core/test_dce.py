"""Dead code elimination."""

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx.core.avals import ShapedArray
from pyjx.core.check import check_jaxpr
from pyjx.core.effects import Effect
from pyjx.core.evaluation import jaxpr_as_fun
from pyjx.core.passes.dce import dce, dce_jaxpr
from pyjx.core.primitive import Primitive

v = np.arange(4, dtype=np.float32)


def names(closed):
    return [e.primitive.name for e in closed.eqns]


def test_dead_equations_and_constants_go_and_arguments_stay():
    big = np.ones(100, np.float32)
    closed = jax.make_jaxpr(lambda a, b: (jnp.cos(a) + big.sum(), jnp.sin(b), b * big[:4])[1])(v, v)
    live = dce(closed)
    check_jaxpr(live)
    assert names(live) == ["sin"]
    assert len(live.in_avals) == 2
    assert live.consts == []


def test_nothing_to_do():
    closed = jax.make_jaxpr(lambda a: jnp.sin(a) * 2)(v)
    assert dce(closed) is closed


def test_inside_calls():
    f = jax.jit(lambda a, b: (jnp.sin(a), jnp.cos(b), a + b))
    closed = jax.make_jaxpr(lambda a, b: f(a, b)[0])(v, v)
    live = dce(closed)
    check_jaxpr(live)
    (call,) = live.eqns
    assert names(call.params["jaxpr"]) == ["sin"]
    assert len(call.invars) == len(call.params["donated_invars"]) == 1
    np.testing.assert_array_equal(jaxpr_as_fun(live)(v, v)[0], jaxpr_as_fun(closed)(v, v)[0])
    again = dce(jax.make_jaxpr(lambda a, b: f(a, b)[0])(v, v))
    assert again.eqns[0].params["jaxpr"] is call.params["jaxpr"]  # pruned once


def test_inside_nested_calls():
    inner = jax.jit(lambda a: (jnp.sin(a), jnp.cos(a)))
    outer = jax.jit(lambda a: inner(a)[0] * 2)
    live = dce(jax.make_jaxpr(lambda a: outer(a))(v))
    check_jaxpr(live)
    assert "cos" not in str(live)


def test_calls_of_no_use_go():
    f = jax.jit(jnp.sin)
    closed = jax.make_jaxpr(lambda a: (f(a), a * 2)[1])(v)
    assert names(dce(closed)) == ["mul"]


def test_effects_stay():
    noise = Effect()
    noise_p = Primitive("test_noise", shape_rule=lambda a: a,
                        effects=lambda params: frozenset({noise}))
    closed = jax.make_jaxpr(lambda a: (noise_p.bind(a), jnp.sin(a), a)[2])(v)
    live = dce(closed)
    check_jaxpr(live)
    assert names(live) == ["test_noise"]
    assert live.effects == {noise}
    f = jax.jit(lambda a: (noise_p.bind(a), jnp.sin(a)))
    called = dce(jax.make_jaxpr(lambda a: (f(a), a)[1])(v))
    check_jaxpr(called)
    assert "test_noise" in str(called)
    assert "sin" not in str(called)


@pytest.mark.parametrize("used", [(True, True), (True, False), (False, True), (False, False)])
def test_some_outputs(used):
    closed = jax.make_jaxpr(lambda a: (jnp.sin(a), jnp.cos(a)))(v)
    jaxpr = dce_jaxpr(closed.jaxpr, used)
    check_jaxpr(jaxpr)
    assert len(jaxpr.outvars) == len(jaxpr.eqns) == sum(used)
    assert [v.aval for v in jaxpr.outvars] == [ShapedArray((4,), np.float32)] * sum(used)


def test_literal_and_repeated_outputs():
    closed = jax.make_jaxpr(lambda a: (a, a, 1.0, jnp.sin(a)))(v)
    jaxpr = dce_jaxpr(closed.jaxpr, (True, True, True, False))
    check_jaxpr(jaxpr)
    assert jaxpr.eqns == []
    assert len(jaxpr.outvars) == 3


@pytest.mark.parametrize("nested", [1, 2, 3])
def test_effects_stay_in_loops_that_lose_an_operand(nested):
    """The rows of a scan are read for a result that nobody needs, so they are no operand of calls
    around it; its callback needs none of them."""
    calls = []

    def step(carry, row):
        jax.debug.callback(lambda: calls.append(1))
        return carry * 2, carry * row

    def f(x):
        return jax.lax.scan(step, x, jnp.arange(2.0))[0]

    for _ in range(nested):
        f = jax.jit(f)
    assert f(1.0) == 4.0
    jax.effects_barrier()
    assert len(calls) == 2
