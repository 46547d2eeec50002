"""Errors and special cases of operations that arrange, join and make arrays."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import pyjx as jax
from pyjx import lax
from pyjx.lax import creation

X = np.ones((3, 4), np.float32)
V = np.ones(3, np.float32)

ERRORS: list[tuple[Any, type[Exception], str]] = [
    (lambda: lax.reshape(X, (4, 4)), TypeError, "reshape total size must be unchanged, got "
     "new_sizes (4, 4) (total size 16) for shape (3, 4) (total size 12)."),
    (lambda: lax.reshape(X, (-1, 4)), TypeError,
     "reshape new_sizes must all be positive, got (-1, 4)."),
    (lambda: lax.reshape(X, (12,), (0, 0)), TypeError, "reshape dimensions must be a permutation "
     "of operand dimensions, got dimensions (0, 0) for shape (3, 4)."),
    (lambda: lax.squeeze(X, (0,)), ValueError, "cannot select an axis to squeeze out which has "
     "size not equal to one, got shape=(3, 4) and dimensions=(0,)"),
    (lambda: lax.squeeze(X, (5,)), ValueError,
     "axis 5 is out of bounds for array of dimension 2"),
    (lambda: lax.squeeze(X[:1], (0, -2)), ValueError, "dimensions are not unique: (0, 0)"),
    (lambda: lax.expand_dims(X, (0, -4)), ValueError, "repeated axis in lax.expand_dims: (0, 0)"),
    (lambda: lax.expand_dims(X, (7,)), ValueError,
     "axis 7 is out of bounds for array of dimension 3"),
    (lambda: lax.broadcast(X, (-1,)), TypeError,
     "broadcast sizes must have every element be nonnegative, got (-1,)."),
    (lambda: lax.rev(X, (0, 0)), TypeError, "rev dimensions must be unique, got (0, 0)."),
    (lambda: lax.rev(X, (5,)), TypeError, "rev dimensions must all be less than operand ndim, "
     "got dimensions (5,) for operand ndim 2."),
    (lambda: lax.rev(X, (-1,)), TypeError,
     "rev dimensions must have every element be nonnegative, got (-1,)."),
    (lambda: lax.concatenate([], 0), ValueError,
     "concatenate requires a non-empty sequences of arrays"),
    (lambda: lax.concatenate([X, V], 0), TypeError, "Cannot concatenate arrays with different "
     "numbers of dimensions: got (3, 4), (3,)."),
    (lambda: lax.concatenate([X, X[:, :2]], 0), TypeError, "Cannot concatenate arrays with shapes "
     "that differ in dimensions other than the one being concatenated: concatenating along "
     "dimension 0 for shapes (3, 4), (3, 2)."),
    (lambda: lax.concatenate([X, X], -1), TypeError,
     "concatenate dimension out of bounds: dimension -1 for shapes (3, 4), (3, 4)."),
    (lambda: lax.concatenate([X, X.astype(np.int32)], 0), TypeError,
     "lax.concatenate requires arguments to have the same dtypes, got float32, int32."),
    (lambda: lax.stack([]), ValueError, "stack requires a non-empty sequences of arrays"),
    (lambda: lax.stack([X, V]), ValueError,
     "Cannot stack arrays with different numbers of dimensions: got (3, 4), (3,)."),
    (lambda: lax.stack([X, X[:2]]), ValueError,
     "Cannot stack arrays of different shapes: got (3, 4), (2, 4)."),
    (lambda: lax.stack([X, X], 4), ValueError, "axis 4 is out of bounds for array of dimension 3"),
    (lambda: lax.unstack(1.0), ValueError, "axis 0 is out of bounds for array of dimension 0"),
    (lambda: lax.split(X, (1, 1)), ValueError,
     "Sum of sizes 2 must be equal to dimension 0 of the operand shape [3, 4]"),
    (lambda: lax.split(X, (4, -1)), ValueError,
     "Sizes passed to split must be nonnegative, got [4, -1]"),
    (lambda: lax.tile(X, (2,)), TypeError,
     "reps length must be equal to the ndim of x, got len(reps)=1 and x.ndim=2."),
    (lambda: lax.tile(X, (2, -1)), TypeError,
     "tile reps must have every element be nonnegative, got (2, -1)."),
    (lambda: lax.pad(X, 0, [(0, 0, 0)] * 2), TypeError,
     "pad operand and padding_value must be same dtype: got float32 and int32."),
    (lambda: lax.pad(X, np.float32(0), [(0, 0, 0)]), ValueError, "length of padding_config must "
     "equal the number of axes of operand, got padding_config ((0, 0, 0),) for operand shape"),
    (lambda: lax.pad(V, np.float32(0), [(0, 0, -1)]), ValueError,
     "interior padding in padding_config must be nonnegative, got padding_config ((0, 0, -1),)"),
    (lambda: lax.pad(V, np.float32(0), [(-5, 0, 0)]), ValueError, "Dimension size after padding "
     "is not at least 0, got result shape (-2,), for padding_config ((-5, 0, 0),)"),
    (lambda: lax.pad(V, V, [(0, 0, 0)]), ValueError,
     "padding_value must be a scalar; got np.shape(padding_value)=(3,)"),
    (lambda: lax.pad(V, np.ones(3, "int32"), [(0, 0, 0)]), ValueError,
     "padding_value must be a scalar; got np.shape(padding_value)=(3,)"),
    (lambda: lax.iota(bool, 3), TypeError, "iota does not accept dtype bool. Accepted dtypes are "
     "subtypes of integer, floating, complexfloating."),
    (lambda: lax.iota(int, -1), TypeError,
     "iota shape must have every element be nonnegative, got (-1,)."),
    (lambda: lax.broadcasted_iota(int, (2, 3), 2), ValueError, "iota dimension must be between 0 "
     "and len(shape), got dimension=2 for shape=(2, 3)"),
    (lambda: lax.bitcast_convert_type(X, bool), TypeError,
     "lax.bitcast_convert_type does not support bool or complex values unless the operand and "
     "destination types match. Got operand dtype=float32, new_dtype=dtype('bool')."),
    (lambda: lax.bitcast_convert_type(np.ones((2, 2), np.int32), np.complex64), TypeError,
     "does not support bool or complex values unless the operand and destination types match"),
    (lambda: lax.bitcast_convert_type(X, None), ValueError, "dtype must be specified"),
    (lambda: lax.bitcast_convert_type(X[:, :3].astype(np.int8), np.int32), ValueError,
     "Attempting to convert array of shape (3, 3) from int8 of size 8 bits to int32 of size 32, "
     "bits but 3 * 8 != 32"),
    (lambda: lax.collapse(X, 1, 0), ValueError,
     "Invalid dimension range passed to collapse: (3, 4)[1:0]"),
    (lambda: lax.reshape("a", (1,)), TypeError, "reshape"),
]


@pytest.mark.parametrize(("call", "error", "text"), ERRORS)
def test_error(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error) as raised:
        call()
    assert text in str(raised.value)


def test_nothing_to_do_gives_the_operand_itself() -> None:
    x = jax.numpy.ones((3, 4))
    same = [
        lax.reshape(x, (3, 4)), lax.reshape(x, (3, 4), (0, 1)), lax.squeeze(x, ()),
        lax.expand_dims(x, ()), lax.rev(x, ()), lax.concatenate([x], 0), lax.broadcast(x, ()),
        lax.transpose(x, (0, 1)), lax.broadcast_to_rank(x, 2), lax.broadcast_to_rank(x, 1),
    ]
    assert all(y is x for y in same)


@pytest.mark.parametrize("f", [
    lambda x: lax.convert_element_type(x, "float32"), lambda x: lax.broadcast(x, ()),
    lambda x: lax.reshape(x, x.shape), lambda x: lax.transpose(x, range(x.ndim)),
    lambda x: lax.squeeze(x, ()), lambda x: lax.expand_dims(x, ()), lambda x: lax.rev(x, ()),
    lambda x: jax.numpy.broadcast_to(x, x.shape), lambda x: jax.numpy.reshape(x, x.shape)])
@pytest.mark.parametrize("x", [np.arange(3, dtype=np.float32), np.float32(2),
                               np.ones((2, 3), np.float32)], ids=["vector", "number", "matrix"])
def test_what_does_nothing_is_not_in_programs(f: Any, x: Any) -> None:
    for jaxpr in (jax.make_jaxpr(lambda: f(x))(), jax.make_jaxpr(f)(x)):
        assert not jaxpr.eqns
    for out in (f(x), jax.jit(lambda: f(x))()):
        assert isinstance(out, jax.Array)
        np.testing.assert_array_equal(out, x)


@pytest.mark.parametrize(("number", "dtype", "weak"), [
    (2.0, "float16", False), (3, "float32", False), (2.7, "int32", False), (True, "int8", False),
    (np.float32(2.5), "bfloat16", False), (np.int8(-1), "uint8", False),
    (300, "uint8", False), (1.5, "complex64", False), (float("nan"), "bool", False)])
def test_numbers_are_converted_while_recording(number: Any, dtype: str, weak: bool) -> None:
    jaxpr = jax.make_jaxpr(lambda: lax.convert_element_type(number, dtype))()
    assert not jaxpr.eqns
    recorded = jax.jit(lambda: lax.convert_element_type(number, dtype))()
    assert (recorded.dtype, recorded.weak_type) == (np.dtype(dtype), weak)
    np.testing.assert_array_equal(recorded, lax.convert_element_type(number, dtype))
    np.testing.assert_array_equal(
        recorded, jax.jit(lambda x: lax.convert_element_type(x, dtype))(number))


def test_numpy_arrays_become_arrays() -> None:
    for y in (lax.reshape(X, (3, 4)), lax.squeeze(X, ()), lax.rev(X, ()), lax.concatenate([X], 0)):
        assert isinstance(y, jax.Array)


def test_weak_types() -> None:
    weak, strong = lax.full((2,), 1.0), lax.full((2,), 1.0, np.float32)
    assert lax.reshape(2.0, (1,)).weak_type
    assert lax.concatenate([weak, weak], 0).weak_type
    assert not lax.concatenate([weak, strong], 0).weak_type
    assert lax.stack([weak, weak]).weak_type and not lax.stack([strong, weak]).weak_type
    assert lax.unstack(weak)[0].weak_type and lax.split(weak, (1, 1))[0].weak_type
    assert not lax.bitcast_convert_type(weak, np.int32).weak_type


def test_sizes_of_shapes_that_are_known_to_fit_are_not_looked_at_again() -> None:
    called: list[Any] = []

    def broadcast() -> None:
        lax.broadcast_shapes((2, 1), (3,))

    broadcast()
    sys.setprofile(lambda _, event, what: called.append(what) if event == "c_call" else None)
    broadcast()
    sys.setprofile(None)
    assert called and any not in called and all not in called


def test_collapse() -> None:
    x = jax.numpy.ones((2, 3, 4, 5))
    assert lax.collapse(x, 1, 3).shape == (2, 12, 5)
    assert lax.collapse(x, -2).shape == (2, 3, 20)
    assert lax.collapse(x, 0, 9).shape == (120,)
    assert lax.collapse(x, 1, 1).shape == (2, 1, 3, 4, 5)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32", "complex64", "bool"])
@pytest.mark.parametrize("count", [1, 2, 8, 9])
def test_many_elements_are_stacked_along_the_last_axis(dtype: str, count: int) -> None:
    parts = [(np.arange(4200).reshape(60, 70) * (i + 2) % 101).astype(dtype) for i in range(count)]
    if dtype == "float32":
        parts[-1][0, :3] = np.nan, -0.0, np.inf
    stack = jax.jit(lambda *xs: jax.lax.stack(xs, 2))
    got = np.asarray(stack(*parts))
    assert got.tobytes() == np.stack(parts, 2).tobytes()
    cotangents = jax.vjp(lambda x: jax.lax.unstack(x, 2), got)[1](tuple(parts)) \
        if dtype == "float32" else [got]
    assert np.asarray(cotangents[0]).tobytes() == got.tobytes()
    if jax.default_backend() == "cpu":  # where concatenations take a branch for each element
        text = stack.lower(*parts).as_text()
        chosen = dtype in ("float32", "int32") and 1 < count < 9
        assert ("stablehlo.concatenate" in text) is not chosen


@pytest.mark.parametrize("axis", [0, 1])
def test_parts_beyond_what_xla_takes_at_once(axis: int) -> None:
    parts = list(np.random.default_rng(0).normal(size=(2, 300, 3)).astype("f4").swapaxes(0, 1))
    stack = jax.jit(lambda xs: lax.stack(xs, axis))
    got = stack(parts)
    assert (np.asarray(got) == np.stack(parts, axis)).all()
    assert all([(a == b).all() for a, b in zip(lax.unstack(got, axis), parts, strict=True)])
    grads = jax.grad(lambda xs: (stack(xs) ** 2).sum())(parts)
    np.testing.assert_allclose(np.stack(grads), 2 * np.stack(parts), rtol=1e-6)
    wide = lax.concatenate([p[:, :k % 3 + 1] for k, p in enumerate(parts)], 1)
    assert (np.asarray(wide) == np.concatenate(
        [p[:, :k % 3 + 1] for k, p in enumerate(parts)], 1)).all()
    if jax.default_backend() == "cpu":  # where the time is that of the square of their number
        joined = [line for line in stack.lower(parts).as_text().splitlines()
                  if "stablehlo.concatenate" in line]
        assert max([line.count("%") for line in joined]) < 100
        cut = jax.jit(lambda x: lax.unstack(x, axis)).lower(got).as_text()
        assert "stablehlo.optimization_barrier" in cut


@pytest.mark.parametrize("kind", [list, np.asarray, jax.numpy.asarray])
def test_split_in_more_parts_than_arrays_have_axes(kind: Any) -> None:
    assert [p.tolist() for p in lax.split(np.arange(100), kind([1] * 100))] == [
        [i] for i in range(100)]


def test_unstack_of_nothing() -> None:
    assert lax.unstack(np.ones((0, 2))) == ()


def test_jaxpr() -> None:
    text = str(jax.make_jaxpr(lambda x: lax.pad(x, np.float32(0), [(1, 1, 0), (0, 0, 0)]))(X))
    assert "b:f32[5,4] = pad[padding_config=((1, 1, 0), (0, 0, 0))] a 0.0:f32[]" in text
    text = str(jax.make_jaxpr(lambda: lax.iota(np.int32, 3))())
    assert "a:i32[3] = iota[dimension=0 dtype=int32 shape=(3,) sharding=None]" in text


def test_eye_tri() -> None:
    for k in (-1, 0, 2):
        np.testing.assert_array_equal(creation.eye(int, (3, 4), k), np.eye(3, 4, k))
        np.testing.assert_array_equal(creation.tri(bool, (3, 4), k), np.tri(3, 4, k))


def test_full_of_tangents_of_integers_and_of_keys():
    float0, key = jax.dtypes.float0, jax.random.key(3)
    for made in (jax.lax.full((2,), 0, float0), jax.jit(lambda: jax.lax.full((2,), 0, float0))(),
                 jax.lax.full_like(np.zeros(2, float0), 0),
                 jax.numpy.asarray(np.zeros(2, float0), float0)):
        assert (made.dtype, made.shape) == (float0, (2,))
    for made in (jax.lax.full((2,), 7, key.dtype), jax.lax.full_like(key, 7, shape=(2,))):
        assert made.dtype == key.dtype
        assert jax.random.key_data(made).tolist() == [[7, 7], [7, 7]]
    for dtype in (float0, key.dtype):
        with pytest.raises(TypeError, match="iota does not accept dtype"):
            jax.numpy.arange(3, dtype=dtype)
