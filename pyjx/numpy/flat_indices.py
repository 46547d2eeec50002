"""Indices of elements in an array, and their places in the flat array; bits, and bytes of them."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from pyjx import lax
from pyjx import numpy as jnp
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike, DTypeLike
from pyjx.core.avals import SymbolicDim, entries, get_aval
from pyjx.core.trace import concrete_or_error
from pyjx.numpy.operands import along, as_bool, dtype_of, is_integer, numpy_function
from pyjx.numpy.promotion import convert, operands, promote_dtypes
from pyjx.numpy.ufuncs import as_array


def ravel_multi_index(multi_index: Sequence[ArrayLike], dims: Sequence[int], mode: str = "raise",
                      order: str = "C", *, dtype: DTypeLike | None = None) -> Array:
    """The place in a flat array of elements that are given by their indices.

    Args:
      multi_index: for each axis an array of integers.
      dims: the shape of the array.
      mode: what becomes of indices out of bounds: "raise" refuses them and needs values that are
        known while tracing; "wrap" takes the remainder, "clip" the nearest; "ignore" nothing.
      order: "C", where the last axis changes first, or "F", where the first does.
      dtype: of the result; by default that of the indices.

    Returns:
      An array of integers, of the shape to which the indices are broadcast.

    Raises:
      ValueError: the indices are no integers or out of bounds, or a mode or order is unknown.

    >>> import pyjx as jax
    >>> jax.numpy.ravel_multi_index((1, 2), (2, 3)).item()
    5
    """
    dims = tuple([concrete_or_error(
        operator.index, n, "in `dims` argument of ravel_multi_index().") for n in entries(dims)])
    if len(multi_index) != len(dims):
        raise AssertionError(f"len(multi_index)={len(multi_index)} != len(dims)={len(dims)}")
    indices = operands("ravel_multi_index", *multi_index)
    for x in indices:
        if not dtypes.issubdtype(dtype_of(x), np.integer):
            raise ValueError(f"dtype={dtype_of(x)!r} is not an integer type.")
    if mode not in ("raise", "wrap", "clip", "ignore"):
        raise ValueError(f"invalid mode={mode!r}. Expected 'raise', 'wrap', 'clip', or 'ignore'.")
    if order not in ("C", "F"):
        raise ValueError(f"invalid order={order!r}. Expected 'C' or 'F'")
    if mode == "raise":
        for x, n in zip(indices, dims, strict=True):
            known = concrete_or_error(
                np.asarray, x, "The error occurred because ravel_multi_index was jit-compiled "
                "with mode='raise'. Use mode='wrap' or mode='clip' instead.", "")
            if known.size and not (known.min() >= 0 and known.max() < n):
                raise ValueError("invalid entry in coordinates array")
    kind = jnp.result_type(*indices, int) if dtype is None else np.dtype(dtype)
    if dtype is None and not dtypes.issubdtype(kind, np.integer):
        raise ValueError(f"dtype={kind!r} is not an integer type: it is what the indices' dtypes "
                         "promote to. Give ravel_multi_index indices of one dtype.")
    if dtypes.issubdtype(kind, np.integer) and math.prod(dims) > dtypes.iinfo(kind).max + 1:
        raise ValueError(
            f"jnp.ravel_multi_index: dtype={kind!r} not large enough to hold flattened index for "
            f"{dims=}. Use the dtype argument to pass a suitable dtype, with jax_enable_x64.")
    out = _flat_places(indices, dims, mode, order)
    return out if dtype is None else jnp.asarray(out, dtype)


@numpy_function(static_argnames=("dims", "mode", "order"))
def _flat_places(indices: Sequence[ArrayLike], dims: tuple[int, ...], mode: str, order: str) -> Any:
    dtype = jnp.result_type(*indices, *([] if indices else [int]))
    total = jnp.zeros((), dtype)
    pairs = list(zip(indices, dims, strict=True))
    for x, n in pairs if order == "C" else reversed(pairs):
        x = jnp.asarray(x)
        if x.dtype.itemsize < dtype.itemsize:  # else a scalar may be too large for `dtype`
            x = x.astype(dtype)
        if mode == "clip":
            x = jnp.clip(x, 0, n - 1)
        elif mode == "wrap":
            x = jnp.mod(x, n)
        total = total * n + x.astype(dtype)
    return total


def unravel_index(indices: Array, shape: int | Sequence[int]) -> tuple[Array, ...]:
    """The indices, one array an axis, of the elements at places of a flat array.

    Args:
      indices: array of integers; negative ones count from the end. Others out of bounds give the
        nearest element.
      shape: the shape of the array; the last axis changes first. Sizes that are no Python ints,
        and an array of sizes, promote with `indices`, and may be traced.

    Returns:
      A tuple of arrays of integers, one for each axis.

    Raises:
      ValueError: the array of sizes has more than one axis.

    >>> import pyjx as jax
    >>> [i.item() for i in jax.numpy.unravel_index(5, (2, 3))]
    [1, 2]
    """
    if np.iterable(shape) and not hasattr(shape, "dtype"):
        sizes = list(shape)
        if all(type(n) is int or isinstance(n, SymbolicDim) for n in sizes):
            return _by_shape(indices, tuple(sizes))
    elif type(shape) is int:
        return _by_shape(indices, (shape,))
    else:
        # NumPy's own truth values count as its integers
        sizes = jnp.atleast_1d(np.int64(shape) if isinstance(shape, np.bool_) else shape)
        if sizes.ndim != 1:
            raise ValueError("unravel_index: shape should be a scalar or 1D sequence.")
    return _by_sizes(indices, entries(sizes))


@numpy_function(static_argnames=("shape",))
def _by_shape(indices: Array, shape: tuple[int, ...]) -> tuple[Array, ...]:
    (indices,) = operands("unravel_index", indices)
    return _digits(indices, shape)


@numpy_function
def _by_sizes(indices: Any, sizes: Any) -> tuple[Array, ...]:
    """`unravel_index` for sizes that promote with the indices: an array, or a list of scalars."""
    (indices,) = operands("unravel_index", indices)
    if not isinstance(sizes, list):
        indices, sizes = promote_dtypes(indices, sizes)
        sizes = [sizes[i] for i in range(get_aval(sizes).shape[0])]
    sizes = operands("unravel_index", *sizes)
    if {np.dtype(np.bool_)} == {dtype_of(x) for x in (indices, *sizes)}:
        indices = convert(indices, np.dtype(np.int32))
    return _digits(indices, sizes)


def _digits(left: Array, sizes: Sequence[Any]) -> tuple[Array, ...]:
    """The digits of places, each to the base of its axis; out of bounds the nearest ones."""
    limit = dtypes.iinfo(dtype_of(left)).max if is_integer(left) else math.inf
    out = []
    for n in reversed(sizes):
        if isinstance(n, int) and n > limit:  # more elements than there are indices
            out.append((left, limit))
            left = left * 0
        else:
            out.append((jnp.mod(left, n), n - 1))
            left = jnp.floor_divide(left, n)
    # What is left is 0 for places in bounds, and -1 for those that count from the end.
    above = left > 0
    below = left < (0 if dtypes.issubdtype(dtype_of(left), np.unsignedinteger) else -1)
    return tuple([as_array(jnp.where(above, last, jnp.where(below, 0, x)))
                  for x, last in reversed(out)])


# -- bits ------------------------------------------------------------------------------------------


def _lowest_first(bitorder: str) -> bool:
    if bitorder not in ("little", "big"):
        raise ValueError(f"'order' must be either 'little' or 'big', got {bitorder!r}")
    return bitorder == "little"


def _along_last(a: ArrayLike, axis: int | None) -> tuple[Any, int]:
    a, axis = along(a, axis)
    return jnp.moveaxis(a, axis, -1), axis


@numpy_function(static_argnames=("axis", "bitorder"))
def packbits(a: ArrayLike, axis: int | None = None, bitorder: str = "big") -> Array:
    """Booleans as the bits of bytes; zeros follow where the last byte is not full.

    Args:
      a: array of booleans, or of integers, which are true if they are not zero.
      axis: the axis; by default the array is packed as if it were flat.
      bitorder: "big", where the first boolean is the highest bit, or "little".

    Returns:
      An array of uint8.

    Raises:
      TypeError: the array holds neither.
      ValueError: the order is none of these.

    >>> import pyjx as jax
    >>> jax.numpy.packbits(jax.numpy.array([True, False, True])).tolist()
    [160]
    """
    (a,) = operands("packbits", a)
    if dtype_of(a) not in dtypes.integer_dtypes and dtype_of(a) != np.bool_:
        raise TypeError("Expected an input array of integer or boolean data type")
    shifts = np.arange(8, dtype=np.uint8)
    shifts = shifts if _lowest_first(bitorder) else shifts[::-1]
    bits, axis = _along_last(jnp.asarray(as_bool(a), np.uint8), axis)
    *rest, n = get_aval(bits).shape
    count = -(-n // 8)
    full = jnp.pad(bits, [*[(0, 0)] * len(rest), (0, 8 * count - n)])
    full = jnp.reshape(full, (*rest, count, 8))
    weighted = full << jnp.broadcast_to(shifts, get_aval(full).shape)
    return jnp.moveaxis(jnp.sum(weighted, -1, dtype=np.uint8), -1, axis)


@numpy_function(static_argnames=("axis", "count", "bitorder"))
def unpackbits(a: ArrayLike, axis: int | None = None, count: int | None = None,
               bitorder: str = "big") -> Array:
    """The bits of bytes, each as a 0 or 1 of uint8; the inverse of `packbits`.

    Args:
      a: array of uint8.
      axis: the axis; by default the result is flat.
      count: how many bits the result has along the axis, with zeros for those that lack; if it is
        negative, how many are left out at the end.
      bitorder: "big", where the highest bit comes first, or "little".

    Returns:
      A uint8 array of zeros and ones.

    Raises:
      TypeError: the array is not of uint8.
      ValueError: the order is none of these.

    >>> import pyjx as jax
    >>> jax.numpy.unpackbits(jax.numpy.array([160], "uint8"), count=3).tolist()
    [1, 0, 1]
    """
    (a,) = operands("unpackbits", a)
    if dtype_of(a) != np.uint8:
        raise TypeError("Expected an input array of unsigned byte data type")
    places = lax.iota(np.uint8, 8)  # computed: XLA makes no vectors of bytes from a constant's
    masks = np.uint8(1) << places if _lowest_first(bitorder) else np.uint8(128) >> places
    data, axis = _along_last(a, axis)
    *rest, n = get_aval(data).shape
    masks = lax.reshape(masks, (*[1] * (len(rest) + 1), 8))
    bits = jnp.asarray((data[..., None] & masks) != 0, np.uint8)
    bits = jnp.reshape(bits, (*rest, 8 * n))
    if count is not None:
        size = count if count >= 0 else max(8 * n + count, 0)
        bits = jnp.pad(bits[..., :size], [*[(0, 0)] * len(rest), (0, max(size - 8 * n, 0))])
    return jnp.moveaxis(bits, -1, axis)
