"""Reductions over axes: errors, monoids, derivatives at ties."""

from __future__ import annotations

import numpy as np
import pytest

import pyjx as jax
from pyjx import lax
from pyjx.core.scalars import greatest, least

X = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.mark.parametrize("reducer", [
    lax.reduce_sum, lax.reduce_max, lax.reduce_min, lax.reduce_prod,
])
def test_axes_are_checked(reducer):
    with pytest.raises(ValueError, match="axes"):
        reducer(X, (2,))
    with pytest.raises(ValueError, match="axes"):
        reducer(X, (-1,))
    with pytest.raises(ValueError, match="duplicate value in"):
        reducer(X, (0, 0))


def test_dtypes_are_checked():
    with pytest.raises(TypeError, match="reduce_sum does not accept dtype bool"):
        lax.reduce_sum(X > 0, (0,))
    with pytest.raises(TypeError, match="reduce_prod does not accept dtype bool"):
        lax.reduce_prod(X > 0, (0,))
    with pytest.raises(TypeError, match="logical reduction requires operand dtype bool or int, "
                                        "got float32"):
        lax.reduce_or(X, (0,))


def test_argmax_is_checked():
    with pytest.raises(ValueError, match=r"Invalid axis 2 for operand shape \(3, 4\)"):
        lax.argmax(X, 2, np.int32)
    with pytest.raises(TypeError, match="index_dtype must be an integer type, but got float32"):
        lax.argmin(X, 0, np.float32)
    with pytest.raises(ValueError, match="require non-empty reduced dimension"):
        lax.argmax(np.ones((2, 0), np.float32), 1, np.int32)
    with pytest.raises(TypeError, match="complex64"):
        lax.argmax(X + 1j * X.astype(np.complex64), 0, np.int32)


def test_argmax_takes_the_first():
    x = np.array([[0.0, -0.0, 0.0], [1, 2, 2]], np.float32)
    assert lax.argmax(x, 1, np.int32).tolist() == [0, 1]
    assert lax.argmin(-x, 1, np.int32).tolist() == [0, 1]


@pytest.mark.parametrize(("dtype", "low", "high"), [
    (np.float32, -np.inf, np.inf), (np.int8, -128, 127), (np.uint16, 0, 65535),
    (np.bool_, False, True), ("float8_e4m3fn", -448, 448), ("bfloat16", -np.inf, np.inf),
])
def test_extrema_of_nothing(dtype, low, high):
    dtype = jax.numpy.dtype(dtype)
    assert float(least(dtype)) == low and float(greatest(dtype)) == high
    empty = np.zeros((0,), dtype)
    assert float(lax.reduce_max(empty, (0,))) == low
    assert float(lax.reduce_min(empty, (0,))) == high


def test_ties_share_the_derivative():
    x = np.array([1, 3, 3, 2], np.float32)
    assert jax.grad(lambda x: lax.reduce_max(x, (0,)))(x).tolist() == [0, 0.5, 0.5, 0]
    assert jax.grad(lambda x: lax.reduce_min(x, (0,)))(-x).tolist() == [0, 0.5, 0.5, 0]


def test_product_is_differentiated_at_zeros():
    def f(x):
        return lax.reduce_prod(x, (0,))

    assert jax.grad(f)(np.array([2, 0, 5], np.float32)).tolist() == [0, 10, 0]
    assert jax.grad(f)(np.array([0, 0, 5], np.float32)).tolist() == [0, 0, 0]
    hessian = jax.hessian(f)(np.array([0, 0, 5], np.float32))
    assert hessian.tolist() == [[0, 5, 0], [5, 0, 0], [0, 0, 0]]


def primitives(f, *args):
    return [e.primitive.name for e in jax.make_jaxpr(f)(*args).eqns]


@pytest.mark.parametrize(("x", "init", "f", "name"), [
    (X, 0.0, lax.add, "reduce_sum"), (X, 1, lax.mul, "reduce_prod"),
    (X, -np.inf, lax.max, "reduce_max"), (X, np.inf, lax.min, "reduce_min"),
    (X > 1, True, lax.bitwise_and, "reduce_and"), (X > 1, False, lax.bitwise_or, "reduce_or"),
    (X.astype(np.int32), -1, lax.bitwise_and, "reduce_and"),
    (X.astype(np.int32), 0, lax.bitwise_xor, "reduce_xor"),
    (X, 1.0, lax.add, "reduce"), (X, 0.0, lax.max, "reduce"),
    (X, 0.0, lambda a, b: lax.add(a, b), "reduce"),
])
def test_monoids_have_their_primitives(x, init, f, name):
    assert primitives(lambda x: lax.reduce(x, init, f, (0,)), x) == [name]


def test_reduce_with_a_traced_initial_value():
    f = jax.jit(lambda x, v: lax.reduce(x, v, lax.add, (0,)))
    np.testing.assert_allclose(f(X, np.float32(2)), X.sum(0) + 2)


def test_reduce_with_batched_initial_values():
    starts = np.array([0, 5, 20], np.float32)
    out = jax.vmap(lambda v: lax.reduce(X, v, lambda a, b: lax.max(a, b), (0,)))(starts)
    np.testing.assert_array_equal(out, np.maximum(X.max(0), starts[:, None]))


def test_reduce_is_checked():
    with pytest.raises(ValueError, match="same tree structure"):
        lax.reduce((X, X), (0.0,), lambda a, b: a, (0,))
    with pytest.raises(ValueError, match="non-scalar initial value"):
        lax.reduce(X, X, lax.add, (0,))
    with pytest.raises(ValueError, match="as many values as there are operands, 1, got"):
        lax.reduce(X, 0.0, lambda a, b: (a, b), (0,))
    with pytest.raises(TypeError, match="must return values of types"):
        lax.reduce(X, 0.0, lambda a, b: np.int32(1), (0,))
    with pytest.raises(ValueError, match="equal shapes"):
        lax.reduce((X, X[0]), (0.0, 0.0), lambda a, b: a, (0,))
    with pytest.raises(TypeError, match="inconsistent dtypes"):
        lax.reduce(X, np.int32(0), lambda a, b: a, (0,))


def test_reduce_takes_a_tree():
    def combine(a, b):
        return {"count": lax.add(a["count"], b["count"]), "top": lax.max(a["top"], b["top"])}

    out = lax.reduce({"count": np.ones((3, 4), np.int32), "top": X},
                     {"count": np.int32(0), "top": np.float32(-np.inf)}, combine, (0, 1))
    assert int(out["count"]) == 12 and float(out["top"]) == 11


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_sums_of_narrow_floats_are_rounded_once(dtype):
    """Those of cotangents, too, which are added where a value was spread."""
    rows = jax.numpy.full((999, 3), 1.125, dtype)
    want = np.asarray(999 * 1.125, dtype)
    _, pull = jax.vjp(lambda x: lax.broadcast_in_dim(x, (999, 3), (1,)), rows[0])
    for total in (jax.jit(lambda x: lax.reduce_sum(x, (0,)))(rows), *jax.jit(pull)(rows)):
        np.testing.assert_array_equal(total, want)
    assert float(lax.reduce_prod(jax.numpy.full(9, 1.01, dtype), (0,))) == \
        float(np.asarray(np.asarray(1.01, dtype).astype(float) ** 9, dtype))


@pytest.mark.parametrize("reduction", [
    lambda x, init: lax.reduce(x, init, lax.add, (0,)),
    lambda x, init: lax.reduce((x, x), (init, 0), lambda a, b: (a[0] + b[0], a[1] + b[1]), (0,)),
    lambda x, init: lax.reduce_window(x, init, lax.add, (2,), (1,), "VALID"),
])
def test_integers_are_not_added_to_a_float(reduction):
    for init in (0.9, 1.0, np.float32(0.9)):
        with pytest.raises(TypeError, match="inconsistent dtypes for operands and init_values"):
            reduction(jax.numpy.arange(3), init)
