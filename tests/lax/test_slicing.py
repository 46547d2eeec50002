"""Errors and special cases of slices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pyjx as jax
from pyjx import lax

X = np.arange(12, dtype=np.float32).reshape(3, 4)
V = np.arange(3, dtype=np.float32)
ONE = np.ones((1, 1), np.float32)

ERRORS: list[tuple[Any, type[Exception], str]] = [
    (lambda: lax.broadcast_in_dim(np.ones(2), (2, 2), (1, 0)), TypeError,
     "broadcast_dimensions must have length equal to operand ndim"),
    (lambda: lax.broadcast_in_dim(np.ones((2, 2)), (2, 2), (5, 0)), TypeError,
     "subset of output dimensions, got (5, 0)"),
    (lambda: lax.slice(X, (0,), (1,)), TypeError, "slice start_indices must have length equal to "
     "the number of dimensions of the operand, got start_indices (0,) for operand shape (3, 4)."),
    (lambda: lax.slice(X, (0, 0), (4, 1)), TypeError, "slice limit_indices must be less than or "
     "equal to operand shape, got limit_indices (4, 1) for operand shape (3, 4)."),
    (lambda: lax.slice(X, (-1, 0), (1, 1)), TypeError, "slice start_indices must be greater than "
     "or equal to zero, got start_indices of (-1, 0)."),
    (lambda: lax.slice(X, (2, 0), (1, 1)), TypeError, "slice limit_indices must be greater than "
     "or equal to start_indices, got start_indices (2, 0) and limit_indices (1, 1)."),
    (lambda: lax.slice(X, (0, 0), (1, 1), (0, 1)), TypeError,
     "slice strides must be positive, got (0, 1)."),
    (lambda: lax.slice_in_dim(X, 0, 1, axis=4), ValueError,
     "axis 4 is out of bounds for array of dimension 2"),
    (lambda: lax.index_in_dim(X, 5), IndexError,
     "index 5 is out of bounds for axis 0 with size 3"),
    (lambda: lax.dynamic_slice(X, (0,), (1, 1)), ValueError,
     "Length of slice indices must match number of operand dimensions (1 vs (3, 4))"),
    (lambda: lax.dynamic_slice(X, (0, 0), (4, 1)), TypeError, "slice slice_sizes must be less "
     "than or equal to operand shape, got slice_sizes (4, 1) for operand shape (3, 4)."),
    (lambda: lax.dynamic_slice(X, (0, 0), (-1, 1)), TypeError,
     "slice slice_sizes must be greater than or equal to zero, got slice_sizes of (-1, 1)."),
    (lambda: lax.dynamic_slice(X, (0, 0), (1,)), TypeError,
     "slice slice_sizes must have length equal to the number of dimensions of the operand"),
    (lambda: lax.dynamic_slice(X, (0.0, 0), (1, 1)), TypeError,
     "index arguments to dynamic_slice must be integers of the same type, got: float32, int32"),
    (lambda: lax.dynamic_slice(X, (np.int32(0), np.int8(0)), (1, 1)), TypeError,
     "index arguments to dynamic_slice must be integers of the same type, got: int32, int8"),
    (lambda: lax.dynamic_slice(X, np.zeros((2, 2), int), (1, 1)), ValueError,
     "Slice indices must be a 1D sequence, got (2, 2)"),
    (lambda: lax.dynamic_slice(X, (V, V), (1, 1)), TypeError,
     "start_indices arguments to dynamic_slice must be scalars,  got indices "
     "(ShapedArray(float32[3]), ShapedArray(float32[3]))"),
    (lambda: lax.dynamic_update_slice(X, V, (0, 0)), TypeError, "dynamic_update_slice update must "
     "have the same rank as operand, got update shape (3,) for operand shape (3, 4)."),
    (lambda: lax.dynamic_update_slice(X, X.T, (0, 0)), TypeError, "dynamic_update_slice update "
     "shape must be smaller than operand shape, got update shape (4, 3) for operand shape (3, 4)."),
    (lambda: lax.dynamic_update_slice(X, ONE.astype(int), (0, 0)), TypeError,
     "lax.dynamic_update_slice requires arguments to have the same dtypes, got float32, int32."),
]


@pytest.mark.parametrize(("call", "error", "text"), ERRORS)
def test_error(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error) as raised:
        call()
    assert text in str(raised.value)


def test_negative_starts() -> None:
    def at(i: Any, **options: Any) -> Any:
        return lax.dynamic_slice(V, (i,), (1,), **options)[0]

    for i in (-1, np.int32(-1), jax.numpy.asarray(-1)):
        assert at(i) == 2
        assert at(i, allow_negative_indices=(True,)) == 2
    for i in (np.int32(-1), jax.numpy.asarray(-1)):
        assert at(i, allow_negative_indices=False) == 0
        assert at(i, allow_negative_indices=0) == 0
    with pytest.raises(ValueError, match="Index -1 is out of bounds for dimension 3 if allow_neg"):
        at(-1, allow_negative_indices=False)
    assert at(np.uint32(2**32 - 1)) == 2


def test_python_starts_take_the_dtype_of_the_others() -> None:
    jaxpr = jax.make_jaxpr(lambda i: lax.dynamic_slice(X, (i, 0), (1, 1)))(np.int8(1))
    assert [v.aval.dtype for v in jaxpr.eqns[-1].invars[1:]] == [np.int8, np.int8]


def test_jaxpr() -> None:
    text = str(jax.make_jaxpr(lambda x, i: lax.dynamic_slice(x, (i, -1), (2, 3)))(X, 1))
    assert "c:bool[] = lt b 0:i32[]" in text
    assert "e:i32[] = add d 3:i32[]" in text
    assert "f:i32[] = select_n c b e" in text
    assert "g:f32[2,3] = dynamic_slice[slice_sizes=(2, 3)] a f 3:i32[]" in text


def test_batched_starts_become_a_gather() -> None:
    xs, starts = np.stack([X, X + 100]), np.array([0, 9])
    fun = jax.vmap(lambda x, i: lax.dynamic_slice(x, (i, 1), (2, 2)))
    assert "gather" in str(jax.make_jaxpr(fun)(xs, starts))
    np.testing.assert_array_equal(fun(xs, starts), np.stack([X[:2, 1:3], X[1:, 1:3] + 100]))


def test_batch_of_no_examples() -> None:
    xs, starts = np.zeros((0, 3, 4), np.float32), np.zeros(0, np.int32)
    out = jax.vmap(lambda x, i: lax.dynamic_slice(x, (i, 1), (2, 2)))(xs, starts)
    assert out.shape == (0, 2, 2)
    out = jax.vmap(lambda x, i: lax.dynamic_update_slice(x, ONE, (i, 1)))(xs, starts)
    assert out.shape == (0, 3, 4)


def test_update_of_an_update() -> None:
    def f(x: Any, u: Any) -> Any:
        return lax.dynamic_update_slice(x, u, (1,)) ** 3

    x, u = np.array([1.0, 2.0, 3.0], np.float32), np.array([4.0], np.float32)
    _, second = jax.jvp(jax.grad(lambda x, u: f(x, u).sum(), (0, 1)), (x, u), (x, u))
    np.testing.assert_allclose(second[0], [6.0, 0.0, 54.0])
    np.testing.assert_allclose(second[1], [96.0])


def test_python_integers_beside_narrow_starts_are_not_wrapped():
    x = np.arange(1000).reshape(2, 500)
    zero = np.uint8(0)
    for start in (300, 3):  # sizes above 255 widen the start of 8 bits
        assert lax.dynamic_slice(x, (zero, start), (1, 2)).tolist() == [[start, start + 1]]
    assert lax.dynamic_slice(x, (np.int8(1), -200), (1, 1)).tolist() == [[800]]
    for start in (-1, 300):
        with pytest.raises(TypeError, match="integers of the same type, got: uint8, int32"):
            lax.dynamic_slice(x[:, :9], (zero, start), (1, 1))
        with pytest.raises(TypeError, match="integers of the same type, got: uint8, int32"):
            lax.dynamic_update_slice(x[:, :9], x[:1, :1], (zero, start))
    assert lax.dynamic_slice(x, (np.int32(0), 2**33), (1, 1)).tolist() == [[0]]  # its low bits
