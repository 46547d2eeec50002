"""Named axes, with an operation that reads them."""

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax
from pyjx.core.arithmetic import TOGETHER
from pyjx.core.effects import NamedAxisEffect
from pyjx.core.named_axes import Axis, find_frame
from pyjx.core.primitive import Primitive
from pyjx.engine.axes import reduce_sum


def total_batch(trace, operands, dims, *, axis):
    (x,), (d,) = operands, dims
    if trace.axis is not axis:
        return total_p.bind(x, axis=axis), d
    return (x * axis.size if d is None else reduce_sum(x, (d,))), None


total_p = Primitive(
    "test_total", shape_rule=lambda x, axis: x, batch_axis=total_batch, linear=TOGETHER,
    effects=lambda params: frozenset({NamedAxisEffect(params["axis"].name)}),
    transpose=lambda ct, x, axis: (total_p.bind(ct, axis=axis),),
)


def total(x, name="i"):
    """The sum over a named axis."""
    return total_p.bind(x, axis=find_frame(name).axis)


xs = np.arange(3.0, dtype=np.float32)


def test_axes_are_interned():
    assert Axis("i", 3) is Axis("i", 3)
    assert Axis("i", 3) is not Axis("i", 4)
    assert Axis("i", 3, "x") is not Axis("i", 3)
    assert repr(Axis("i", 3, "x")) == "Axis('i', 3, spmd_name='x')"


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit, lambda f: jax.jit(jax.jit(f))],
                         ids=["plain", "jit", "nested"])
def test_sums(wrap):
    f = jax.vmap(wrap(lambda x: x / total(x)), axis_name="i")
    np.testing.assert_allclose(f(xs), xs / 3)
    np.testing.assert_allclose(jax.jit(f)(xs), xs / 3)


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["plain", "jit"])
def test_constants_are_summed_too(wrap):
    f = jax.vmap(wrap(lambda x: total(np.float32(1.0))), axis_name="i", out_axes=None)
    assert float(f(xs)) == 3.0
    inner = wrap(lambda: total(np.float32(1.0)))
    assert float(jax.vmap(lambda x: inner(), axis_name="i", out_axes=None)(xs)) == 3.0


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["plain", "jit"])
def test_nested_axes(wrap):
    x = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    f = wrap(lambda x: total(x, "i") + 10 * total(x, "j"))
    got = jax.vmap(jax.vmap(f, axis_name="j"), axis_name="i")(x)
    np.testing.assert_allclose(got, x.sum(0) + 10 * x.sum(1)[:, None])
    shadowed = jax.vmap(jax.vmap(wrap(lambda x: total(x)), axis_name="i"), axis_name="i")(x)
    np.testing.assert_allclose(shadowed, np.repeat(x.sum(1)[:, None], 3, 1))


def test_sizes_are_not_mixed_up():
    f = jax.jit(lambda x: total(x))
    g = jax.vmap(f, axis_name="i")
    np.testing.assert_allclose(g(np.ones(3, np.float32)), [3] * 3)
    np.testing.assert_allclose(g(np.ones(5, np.float32)), [5] * 5)


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["plain", "jit"])
def test_derivatives(wrap):
    f = jax.vmap(wrap(lambda x: x * total(x)), axis_name="i")
    np.testing.assert_allclose(jax.jacfwd(f)(xs), np.eye(3) * 3 + xs[:, None])
    np.testing.assert_allclose(jax.jacrev(f)(xs), np.eye(3) * 3 + xs[:, None])
    g = jax.vmap(jax.grad(wrap(lambda x: x * total(x))), axis_name="i")
    np.testing.assert_allclose(g(xs), [2 * xs.sum()] * 3)


def test_in_loops():
    def f(x):
        return lax.while_loop(lambda s: s[0] < 2, lambda s: (s[0] + 1, total(s[1])), (0, x))[1]

    np.testing.assert_allclose(jax.vmap(f, axis_name="i")(xs), [9.0] * 3)
    g = jax.vmap(lambda x: lax.while_loop(
        lambda s: s < total(np.float32(1.0)), lambda s: s + 1, np.float32(0)), axis_name="i",
        out_axes=None)
    assert float(g(xs)) == 3.0


def test_the_effect_ends_with_the_axis_and_dead_code_goes():
    f = jax.vmap(jax.jit(lambda x: total(x)), axis_name="i")
    assert not jax.make_jaxpr(f)(xs).effects
    g = jax.jit(jax.vmap(lambda x: (total(x), x)[1], axis_name="i"))
    assert "reduce" not in g.lower(xs).as_text()


def test_spmd_name_crosses_jit():
    seen = []

    def batch(trace, operands, dims):
        seen.append(trace.axis.spmd_name)
        return operands[0], dims[0]

    look_p = Primitive("test_look", shape_rule=lambda x: x, batch_axis=batch)
    for f in (look_p.bind, jax.jit(look_p.bind), jax.jit(jax.jit(lambda x: look_p.bind(x)))):
        jax.vmap(f, spmd_axis_name="rows")(xs)
    assert seen == ["rows"] * 3


def test_unbound_names():
    with pytest.raises(NameError, match="unbound axis name: i"):
        total(jnp.ones(3))
    with pytest.raises(NameError, match=r"The named axes here are \['j'\]"):
        jax.vmap(lambda x: total(x), axis_name="j")(xs)


def test_in_backward_rules():
    @jax.custom_vjp
    def h(x):
        return x * 1

    h.defvjp(lambda x: (x * 1, x), lambda x, ct: (ct * total(x) + total(np.float32(1.0)),))
    f = jax.vmap(h, axis_name="i")
    np.testing.assert_allclose(jax.grad(lambda x: f(x).sum())(xs), [xs.sum() + 3] * 3)
    np.testing.assert_allclose(jax.jit(jax.grad(lambda x: f(x).sum()))(xs), [xs.sum() + 3] * 3)
    both = jax.vmap(jax.grad(lambda x: f(x).sum()), axis_name="j")(np.stack([xs, 2 * xs]))
    np.testing.assert_allclose(both, [[6.0] * 3, [9.0] * 3])


def test_compile_time_evaluation_in_backward_rules():
    @jax.custom_vjp
    def h(x):
        return x * 1

    def bwd(x, ct):
        with jax.ensure_compile_time_eval():
            n = int(jnp.sum(jnp.arange(3) * 2))
        return (ct * n * x,)

    h.defvjp(lambda x: (x * 1, x), bwd)
    got = jax.jit(jax.grad(lambda x: jax.vmap(h)(x).sum()))(xs)
    np.testing.assert_allclose(got, 6 * xs)
