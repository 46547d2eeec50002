"""What is derived from a jaxpr: kept with it, by what it depends on, and gone with it."""

import gc
import weakref

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx.core.derived import MOST_CONTEXTS, derived, derived_structure, derived_under
from pyjx.core.jaxpr import ClosedJaxpr
from pyjx.custom_batching import sequential_vmap


@pytest.fixture
def closed():
    return jax.make_jaxpr(lambda a: jnp.sin(a) + 1)(1.0)


def test_kept_by_key_and_flags(closed):
    calls = []

    @derived
    def f(closed, *key):
        calls.append(key)
        return object()

    assert f(closed, 1) is f(closed, 1)
    assert f(closed, 2) is not f(closed, 1)
    with jax.enable_x64(True):
        f(closed, 1)
    with jax.threefry_partitionable(False):
        f(closed, 1)
    assert calls == [(1,), (2,), (1,), (1,)]
    assert f(closed.replace(), 1) is not f(closed, 1)


def test_the_structure_depends_on_no_flag(closed):
    f = derived_structure(lambda closed: object())
    first = f(closed)
    with jax.enable_x64(True):
        assert f(closed) is first


def test_a_jaxpr_that_is_its_own_result_does_not_hold_itself(closed):
    f = derived(lambda closed: closed)
    assert f(closed) is closed
    assert f(closed) is closed
    assert all(result is not closed for known in closed.derived.values() for _, result in known)


def test_results_with_tracers_are_not_kept(closed):
    made = []

    @derived
    def f(closed):
        made.append(ClosedJaxpr(closed.jaxpr.replace(constvars=closed.invars, invars=[]), [tracer]))
        return made[-1], 1

    def g(x):
        nonlocal tracer
        tracer = x
        f(closed)
        f(closed)
        return x

    tracer = None
    jax.make_jaxpr(g)(1.0)
    assert len(made) == 2


def test_bits_follow_the_flag_eagerly():
    key = jax.random.key(0)
    bits = {}
    for flag in (True, False, True):
        with jax.threefry_partitionable(flag):
            now = np.asarray(jax.random.bits(key, (5,)))
            expected = np.asarray(jax.jit(lambda k: jax.random.bits(k, (5,)))(key))
        np.testing.assert_array_equal(now, expected)
        np.testing.assert_array_equal(bits.setdefault(flag, now), now)
    assert not np.array_equal(bits[True], bits[False])


def scaled_sine(scale):
    return jax.jit(lambda x: jnp.sin(x) * scale), [weakref.ref(scale)]


@pytest.mark.parametrize("use", [
    lambda f, x: f(x),
    lambda f, x: jax.jit(lambda y: f(y) * 2)(x),
    lambda f, x: jax.grad(lambda y: f(y).sum())(x),
    lambda f, x: jax.vmap(f)(x),
    lambda f, x: jax.jvp(f, (x,), (x,)),
    lambda f, x: f.lower(x).compile()(x),
    lambda f, x: jax.jit(lambda y: jax.lax.while_loop(
        lambda s: s[0] < 2, lambda s: (s[0] + 1, f(s[1])), (0, y)))(x),
], ids=["call", "nested", "grad", "vmap", "jvp", "stages", "while"])
def test_a_jaxpr_goes_without_the_collector(use):
    """With the function go its jaxpr, what is derived from it, and its large constants."""
    gc.collect()
    gc.disable()
    try:
        f, held = scaled_sine(jnp.ones(1000))
        x = jnp.ones(1000)
        use(f, x)
        held.append(weakref.ref(f.trace(x).jaxpr))
        del f
        assert [r() is None for r in held] == [True, True]
    finally:
        gc.enable()


def test_traces_of_a_function_with_custom_derivatives_go_with_it():
    def made():
        @jax.custom_jvp
        def h(x):
            return jnp.sin(x)

        h.defjvp(lambda primals, tangents: (h(*primals), tangents[0]))
        jax.jit(h)(1.0)
        jax.grad(jax.jit(h))(1.0)
        return weakref.ref(h)

    held = made()
    gc.collect()
    assert held() is None


def custom(f):
    g = jax.custom_jvp(f)
    g.defjvp(lambda primals, tangents: (f(*primals), tangents[0]))
    return g


@pytest.mark.parametrize("use", [
    lambda f: jax.lax.scan(lambda c, _: (custom(f)(c), None), 1.0, None, length=2),
    lambda f: jax.lax.cond(True, custom(f), lambda x: x, 1.0),
    lambda f: jax.grad(lambda x: jax.lax.cond(x > 0, custom(f), lambda x: x, x))(1.0),
    lambda f: jax.lax.while_loop(lambda x: x < 3, lambda x: custom(f)(x) + 1, 1.0),
    lambda f: jax.vmap(sequential_vmap(f))(np.ones(2, np.float32)),
    lambda f: jax.jit(sequential_vmap(f))(1.0),
], ids=["scan", "cond", "grad-cond", "while", "vmap", "jit"])
def test_a_function_in_a_rule_goes_with_its_constants(use):
    def used():
        constant = jax.numpy.ones(1000)
        use(lambda x: x * constant.sum())
        return weakref.ref(constant)

    seen = used()
    gc.collect()
    assert seen() is None


def test_results_in_ever_new_contexts_are_bounded(closed):
    f = derived_under(lambda: context.value)(lambda closed: object())
    context = jax.make_user_context(0)
    for n in range(3 * MOST_CONTEXTS):
        with context(n):
            assert f(closed) is f(closed)
    assert sum(map(len, closed.derived.values())) <= MOST_CONTEXTS
