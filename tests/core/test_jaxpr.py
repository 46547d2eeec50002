"""The classes of the IR."""

from functools import partial

import numpy as np
import pytest

import pyjx as jax
import pyjx.extend
import pyjx.numpy as jnp
from pyjx import configuration
from pyjx.core.avals import ShapedArray
from pyjx.core.effects import join_effects
from pyjx.core.jaxpr import ClosedJaxpr, DebugInfo, DropVar, Jaxpr, Literal, Var, subjaxprs
from pyjx.extend.core.primitives import closed_call_p

F32 = ShapedArray((), np.float32)


@pytest.fixture
def closed():
    constant = jnp.arange(3.0)
    return jax.make_jaxpr(lambda a, b: (jnp.sin(a) * b + constant, a))(jnp.ones(3), jnp.ones(3))


def test_parts_of_a_closed_jaxpr(closed):
    jaxpr = closed.jaxpr
    assert closed.consts == closed.literals
    assert closed.num_consts == jaxpr.num_consts == len(closed.constvars) == 1
    assert closed.all_invars == jaxpr.all_invars == [*jaxpr.constvars, *jaxpr.invars]
    assert closed.invars is jaxpr.invars
    assert closed.outvars is jaxpr.outvars
    assert [a.str_short() for a in closed.in_avals] == ["float32[3]"] * 2
    assert jaxpr.out_avals == closed.out_avals
    assert closed.effects == jaxpr.effects == frozenset()
    assert not closed.is_high
    assert jaxpr.jaxpr is jaxpr
    assert closed.debug_info is jaxpr.debug_info
    assert str(closed) == str(jaxpr) == repr(closed) == closed.pretty_print()


def test_replace(closed):
    assert closed.replace(consts=[1.0]).consts == [1.0]
    assert closed.with_consts([2.0]).consts == [2.0]
    assert closed.jaxpr.with_consts([2.0]).consts == [2.0]
    fewer = closed.replace(outvars=closed.outvars[:1])
    assert len(fewer.out_avals) == 1
    assert fewer.consts == closed.consts
    assert closed.map_jaxpr(lambda j: j.replace(eqns=[])).eqns == []
    assert closed.jaxpr.map_jaxpr(lambda j: j) is closed.jaxpr
    with pytest.raises(TypeError, match="no field named nonsense"):
        closed.jaxpr.replace(nonsense=1)
    with pytest.raises(ValueError, match="0 constants for 1 constvars"):
        ClosedJaxpr(closed.jaxpr, [])


def test_replace_of_an_equation(closed):
    eqn = closed.eqns[0]
    other = eqn.replace(params={"accuracy": 1})
    assert other.params == {"accuracy": 1}
    assert eqn.params == {"accuracy": None}
    assert (other.primitive, other.invars, other.outvars) == (eqn.primitive, eqn.invars,
                                                              eqn.outvars)
    assert eqn.replace(ctx=eqn.ctx).ctx is eqn.ctx
    assert eqn.ctx.xla_metadata is None
    assert repr(eqn) == "b:f32[3] = sin a"


def test_nested_jaxprs():
    f = jax.jit(lambda a: jnp.sin(jnp.cos(a)))
    closed = jax.make_jaxpr(lambda a: f(a) + f(a))(1.0)
    subs = [s for e in closed.eqns for s in subjaxprs(e)]
    assert len(subs) == 2
    assert subs[0] is subs[1]
    assert [len(j.eqns) for j in (closed.jaxpr, *subjaxprs(closed.jaxpr))] == [3, 2, 2]
    assert join_effects(closed.eqns) == frozenset()


def test_literals():
    zero, negative = Literal(0.0, F32), Literal(-0.0, F32)
    assert zero.key != negative.key
    assert Literal(np.float32("nan"), F32).key == Literal(np.float32("nan"), F32).key
    assert Literal(1).aval.weak_type
    assert repr(Literal(2.5)) == "Literal(2.5)"


def test_variables():
    v = Var(F32)
    assert repr(v).endswith(":float32[]")
    assert repr(DropVar(F32)) == "_"
    assert Var(F32) != Var(F32)


def test_debug_info():
    info = DebugInfo("jit", "f at /some/file.py:12", lambda: ("a",), ("result",))
    assert info.arg_names == ("a",)
    assert info.result_paths == ("result",)
    assert (info.func_name, info.func_filename, info.func_lineno) == ("f", "/some/file.py", 12)
    unknown = DebugInfo()
    assert (unknown.func_filename, unknown.func_lineno, unknown.arg_names) == (None, None, None)
    assert "traced_for='jit'" in repr(info)


@pytest.mark.parametrize(("fun", "args", "kwargs", "names"), [
    (lambda t, *rest, k=1, **kw: 0, ({"a": [1, 2]}, 3, 4), {"k": 5, "z": 6},
     ("t['a'][0]", "t['a'][1]", "rest[0]", "rest[1]", "k", "kw['z']")),
    (lambda x, /, y: 0, (1, 2), {}, ("x", "y")),
    (lambda: 0, (), {}, ()),
    (lambda x: 0, (None,), {}, ()),
])
def test_names_of_arguments(fun, args, kwargs, names):
    assert jax.make_jaxpr(fun)(*args, **kwargs).debug_info.arg_names == names


def test_names_of_arguments_beside_static_ones():
    closed = jax.jit(lambda t, *rest: t, static_argnums=1).trace(1.0, 3, 4).jaxpr
    assert closed.debug_info.arg_names == ("t", "rest[1]")


def test_empty_jaxpr():
    assert str(Jaxpr([], [], [], [])) == "{ lambda ; . let  in () }"


def test_equations_know_the_flag_of_partitionable_bits():
    (eqn,) = jax.make_jaxpr(lambda x: x * 2)(1.0).eqns
    assert eqn.ctx.threefry_partitionable
    with jax.threefry_partitionable(False):
        assert not eqn.ctx.threefry_partitionable


CAPTURED, ON_DEVICE, SCALE = np.arange(3, dtype=np.float32), jnp.arange(3.0) + 1, jnp.float32(2)


def _captures(x):
    y = jax.jit(lambda y: y * ON_DEVICE + CAPTURED)(x)
    y = jax.lax.cond(x.sum() > 0, lambda y: y + CAPTURED, lambda y: y * ON_DEVICE, y)
    return jax.lax.scan(lambda c, a: (c * ON_DEVICE, a * SCALE), y, y), CAPTURED


@pytest.mark.parametrize("trace", [
    jax.make_jaxpr, lambda f: lambda *args: jax.jit(f).trace(*args).jaxpr])
def test_captured_arrays_are_literals_where_that_is_set(trace):
    x = jnp.ones(3)
    plain = trace(_captures)(x)
    with configuration.use_simplified_jaxpr_constants(True):
        closed = trace(_captures)(x)
        assert "constvars" not in str(closed) and "[...]:f32[3]" in str(closed)
        assert "2.0:f32[]" in str(closed)  # a number is shown
    assert len(plain.consts) == len(plain.jaxpr.constvars) == 3
    assert not closed.consts and not closed.jaxpr.constvars
    expected = jax.tree.leaves(_captures(x))
    run = jax.extend.core.jaxpr_as_fun(closed)
    call = partial(closed_call_p.bind, call_jaxpr=closed)
    for f in (run, jax.jit(run), call, jax.jit(call), jax.vmap(run, axis_size=1, in_axes=None)):
        for got, want in zip(f(x), expected, strict=True):
            np.testing.assert_array_equal(got[0] if got.ndim > want.ndim else got, want)


def test_keys_and_values_of_programs_around_stay_constants():
    key = jax.random.key(0)
    with configuration.use_simplified_jaxpr_constants(True):
        assert len(jax.make_jaxpr(lambda x: jax.random.bits(key) + x)(np.uint32(1)).consts) == 1
        seen = []
        jax.jit(lambda y: seen.append(len(jax.make_jaxpr(lambda x: x * y)(1.0).consts)))(2.0)
    assert seen == [1]
