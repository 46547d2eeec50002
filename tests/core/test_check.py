"""The checker finds what is wrong with a jaxpr."""

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax
from pyjx.core.avals import ShapedArray
from pyjx.core.check import JaxprTypeError, check_jaxpr
from pyjx.core.jaxpr import DropVar, Literal, Var


@pytest.fixture
def closed():
    return jax.make_jaxpr(lambda a, b: jnp.sin(a) * b + jax.jit(lambda c: c * 2)(a))(
        jnp.ones(3), jnp.ones(3))


def broken(closed, i=None, **fields):
    """The jaxpr with fields of equation `i`, or of itself, replaced."""
    jaxpr = closed.jaxpr
    if i is None:
        return jaxpr.replace(**fields)
    eqns = list(jaxpr.eqns)
    eqns[i] = eqns[i].replace(**fields)
    return jaxpr.replace(eqns=eqns)


def test_legal(closed):
    check_jaxpr(closed)
    check_jaxpr(closed.jaxpr)
    check_jaxpr(broken(closed, eqns=[], outvars=closed.invars))


def test_unbound_variables(closed):
    v = Var(ShapedArray((3,), np.float32))
    with pytest.raises(JaxprTypeError, match=r"used in the equation .*not bound"):
        check_jaxpr(broken(closed, 0, invars=[v]))
    with pytest.raises(JaxprTypeError, match="used as an output but not bound"):
        check_jaxpr(broken(closed, outvars=[v]))
    with pytest.raises(JaxprTypeError, match="not bound before"):
        check_jaxpr(broken(closed, eqns=closed.eqns[::-1]))


def test_variables_bound_twice(closed):
    with pytest.raises(JaxprTypeError, match="bound a second time as an input"):
        check_jaxpr(broken(closed, invars=[closed.invars[0]] * 2))
    with pytest.raises(JaxprTypeError, match="bound a second time in the equation"):
        check_jaxpr(broken(closed, eqns=[closed.eqns[0], *closed.eqns]))


def test_results_of_a_wrong_type(closed):
    for aval in (ShapedArray((4,), np.float32), ShapedArray((3,), np.float16)):
        with pytest.raises(JaxprTypeError, match="is of type"):
            check_jaxpr(broken(closed, 0, outvars=[DropVar(aval)]))
    with pytest.raises(JaxprTypeError, match="gives 1 results, 2 are bound"):
        check_jaxpr(broken(closed, 0, outvars=[*closed.eqns[0].outvars,
                                               DropVar(ShapedArray((3,), np.float32))]))


def test_operands_that_do_not_fit(closed):
    wrong = Literal(np.ones(4, np.float32))
    with pytest.raises(TypeError):
        check_jaxpr(broken(closed, 1, invars=[closed.eqns[0].outvars[0], wrong]))


def test_variables_have_the_names_of_the_printed_jaxpr():
    jaxpr = jax.make_jaxpr(lambda x, y: jnp.sin(x) * y)(1.0, 2.0).jaxpr
    with pytest.raises(JaxprTypeError, match=r"d:f32\[\] is used in the equation `e"):
        check_jaxpr(jaxpr.replace(invars=[jaxpr.invars[0], Var(ShapedArray((), np.float32))]))
    with pytest.raises(JaxprTypeError, match="sin does not take these 2 operands, in the equation"):
        check_jaxpr(jaxpr.replace(eqns=[jaxpr.eqns[0].replace(invars=jaxpr.invars)]))


def test_calls_that_do_not_fit(closed):
    i = next(i for i, e in enumerate(closed.eqns) if e.primitive.name == "jit")
    with pytest.raises(JaxprTypeError, match="takes 1 arguments, 2 are given"):
        check_jaxpr(broken(closed, i, invars=closed.invars))
    with pytest.raises(JaxprTypeError, match="operand 0 is of type float32"):
        check_jaxpr(broken(closed, i, invars=[Literal(np.float32(1))]))


def test_broken_nested_jaxpr(closed):
    i = next(i for i, e in enumerate(closed.eqns) if e.primitive.name == "jit")
    called = closed.eqns[i].params["jaxpr"]
    params = {**closed.eqns[i].params, "jaxpr": called.replace(eqns=[])}
    with pytest.raises(JaxprTypeError, match="used as an output but not bound"):
        check_jaxpr(broken(closed, i, params=params))


def test_effects_of_equations_are_those_of_the_jaxpr(closed):
    with pytest.raises(JaxprTypeError, match="Effects"):
        check_jaxpr(broken(closed, 0, effects=frozenset({"noise"})))


def test_checks_can_be_switched_on_for_all_traces():
    from pyjx.core.primitive import Primitive

    lying_p = Primitive("test_lying", shape_rule=lambda a: next(answers), cached=False)
    avals = [ShapedArray((3,), np.float32), ShapedArray((4,), np.float32)] * 2
    answers = iter(avals)
    jax.make_jaxpr(lambda a: lying_p.bind(a))(jnp.ones(3))
    answers = iter(avals)
    with jax.enable_checks(True), pytest.raises(JaxprTypeError):
        jax.make_jaxpr(lambda a: lying_p.bind(a))(jnp.ones(3))


@pytest.mark.parametrize("fun", [
    lambda x: lax.while_loop(lambda c: c[0] < x[0], lambda c: (c[0] + x[1], c[1]), (x[2], x)),
    lambda x: lax.scan(lambda c, y: (c + x * y, c), x, jnp.ones((2, 3)), unroll=2),
    lambda x: lax.cond(x[0] > 0, lambda: x, lambda: -x),
], ids=["while_loop", "scan", "cond"])
def test_operands_of_control_flow(fun):
    closed = jax.make_jaxpr(fun)(jnp.ones(3))
    check_jaxpr(closed)
    i, eqn = next((i, e) for i, e in enumerate(closed.eqns)
                  if e.primitive.name in ("while", "scan", "cond"))
    for place in range(eqn.primitive.name == "cond", len(eqn.invars)):
        atoms = list(eqn.invars)
        atoms[place] = Literal(1, ShapedArray((), np.dtype(np.int32)))
        with pytest.raises(JaxprTypeError, match=r"Operand of type int32\[\], expected|is of type"):
            check_jaxpr(broken(closed, i, invars=atoms))
