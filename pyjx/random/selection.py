"""Permutations and random choices."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pyjx import errors, lax
from pyjx import numpy as jnp
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike, KeyLike
from pyjx.core.avals import SymbolicDim, get_aval
from pyjx.core.dtypes import DType
from pyjx.core.integers import as_axis, as_sizes
from pyjx.core.trace import Tracer
from pyjx.engine.types import Value
from pyjx.lax.common import broadcasts_to
from pyjx.random.base import check_key, is_key, on_key, placed_result, split_traced
from pyjx.random.keys import draw_bits
from pyjx.random.samplers import (
    check_mode,
    constant,
    gumbel_floats,
    integers,
    running_total,
    unit_floats,
)

if TYPE_CHECKING:
    from pyjx.core.layouts import ShardingLike


def shuffle(key: KeyLike, x: ArrayLike, axis: int) -> Any:
    """`x`, sorted along an axis by random words; in rounds, so that equal words do not matter."""
    aval = get_aval(x)
    size = aval.size
    most = 2**32 - 1
    rounds = math.ceil(3 * math.log(max(1, size)) / math.log(most)) if type(size) is int else next(
        k for k in range(4) if size <= int(most ** (k / 3)))
    for _ in range(rounds):
        key, subkey = split_traced(key)
        words = draw_bits(subkey, 32, aval.shape, False)
        _, x = lax.sort_key_val(words, x, axis)
    return x


def _take(x: Value, indices: Value, axis: int) -> Array:
    return jnp.take(x, indices, axis=axis, unique_indices=False)


@on_key("axis", "independent")
def _permute(key: KeyLike, x: Value, *, axis: int, independent: bool) -> Array:
    aval = get_aval(x)
    if independent or aval.ndim == 1:
        return shuffle(key, x, axis)
    order = shuffle(key, lax.iota(dtypes.default_int_dtype(), aval.shape[axis]), 0)
    return _take(x, order, axis)


@on_key("size", "dtype")
def _permuted_range(key: KeyLike, *, size: int, dtype: DType) -> Array:
    return shuffle(key, lax.iota(dtype, size), 0)


def _is_arraylike(x: Any) -> bool:
    return hasattr(x, "dtype") or isinstance(x, (int, float, complex, SymbolicDim))


def _require_arrays(name: str, *values: Any) -> None:
    for i, x in enumerate(values):
        if not _is_arraylike(x):
            raise TypeError(f"{name} requires ndarray or scalar arguments, got {type(x)} at "
                            f"position {i}.")


def permutation(key: KeyLike, x: Any, axis: int = 0, independent: bool = False, *,
                out_sharding: ShardingLike = None) -> Array:
    """A random permutation of the numbers below `x`, or of an array along an axis.

    Args:
      key: a key.
      x: an integer, or an array.
      axis: the axis along which the array is permuted.
      independent: whether each vector along the axis is permuted in its own way.
      out_sharding: how the result lies on a mesh: a `NamedSharding`, or a `PartitionSpec` over the
        mesh of the context.

    Raises:
      TypeError: `x` is a scalar but no integer.
      ValueError: the axis is out of range, or `key` is an array of several keys.

    >>> import pyjx as jax
    >>> sorted(jax.random.permutation(jax.random.key(0), 5).tolist())
    [0, 1, 2, 3, 4]
    """
    wrapped, _ = check_key("permutation", key)
    _require_arrays("permutation", x)
    aval = get_aval(x)
    if not aval.ndim:
        if is_key(x) or not dtypes.issubdtype(aval.dtype, np.integer):
            raise TypeError("permutation: x must be an integer or at least 1-dimensional, got a "
                            f"scalar of type {aval.str_short()}")
        if isinstance(x, Tracer) and x.to_concrete_value() is None:
            raise_traced_size("permutation", x)
        as_axis("permutation", "axis", axis, 1)
        size = x if isinstance(x, SymbolicDim) else max(0, operator.index(x))
        out = _permuted_range(wrapped, size=size,
                              dtype=dtypes.default_int_dtype())
        return placed_result(out, out_sharding, "permutation")
    axis = as_axis("permutation", "axis", axis, aval.ndim)
    if is_key(x):
        if independent and aval.ndim > 1:
            raise TypeError("permutation: independent=True does not accept key arrays")
        order = _permuted_range(wrapped, size=aval.shape[axis], dtype=dtypes.default_int_dtype())
        return placed_result(_take(x, order, axis), out_sharding, "permutation")
    out = _permute(wrapped, x, axis=axis, independent=bool(independent))
    return placed_result(out, out_sharding, "permutation")


def raise_traced_size(name: str, x: ArrayLike) -> None:
    raise errors.ConcretizationTypeError(
        x, f"The error occurred in jax.random.{name}(): its size must be known when it is traced.")


# -- choice ----------------------------------------------------------------------------------------


@on_key("size", "shape", "replace", "mode")
def _choose(key: KeyLike, p: Any = None, *, size: int, shape: tuple[int, ...], replace: bool,
            mode: str) -> Array:
    """Indices below `size`."""
    count = math.prod(shape)
    if p is None:
        dtype = dtypes.default_int_dtype()
        if replace:
            return integers(key, shape, 0, size, dtype)
        order = shuffle(key, lax.iota(dtype, size), 0)
        return lax.reshape(lax.slice(order, (0,), (count,)), shape)
    if replace:
        total = running_total(p, 0)
        last = lax.reshape(lax.slice(total, (size - 1,), (size,)), ())
        dtype = get_aval(total).dtype
        u = unit_floats(key, shape, dtype)
        u = lax.sub(constant(1, dtype), u)
        places = jnp.searchsorted(total, lax.mul(lax.broadcast(last, shape), u))
        return lax.convert_element_type(places, dtypes.default_int_dtype())
    noise = gumbel_floats(key, (size,), get_aval(p).dtype, mode)
    _, indices = lax.top_k(lax.add(noise, lax.log(p)), count)
    indices = lax.convert_element_type(indices, dtypes.default_int_dtype())
    return lax.reshape(indices, shape)


def choice(key: KeyLike, a: Any, shape: Sequence[int] = (), replace: bool = True,
           p: ArrayLike | None = None, axis: int = 0, mode: str | None = None) -> Array:
    """Random elements of an array, or random integers below `a`.

    Args:
      key: a key.
      a: an array, or a number that stands for `arange(int(a))`.
      shape: how many to draw; it takes the place of the axis, and is that of the whole result where
        there is nothing to draw.
      replace: whether an element may be drawn again.
      p: probabilities of the elements, by default equal ones.
      axis: the axis of `a` to draw along.
      mode: as for `gumbel`, for draws with `p` and without replacement.

    Raises:
      TypeError: `shape` is no sequence.
      ValueError: `a` is empty, `p` does not fit, or there are too few elements.

    >>> import pyjx as jax
    >>> jax.random.choice(jax.random.key(0), 5, (3,), replace=False).shape
    (3,)

    A minibatch without repeats:

    >>> batch = jax.random.choice(jax.random.key(0), 100, (8,), replace=False)
    >>> len(set(batch.tolist()))
    8
    """
    if not isinstance(shape, Sequence):
        raise TypeError(f"shape argument of jax.random.choice must be a sequence, got {shape}")
    shape = as_sizes("choice", "shape", shape)
    _require_arrays("choice", a) if p is None else _require_arrays("choice", a, p)
    wrapped, _ = check_key("choice", key)
    aval = get_aval(a)
    if not aval.ndim:
        if isinstance(a, Tracer) and a.to_concrete_value() is None:
            raise_traced_size("choice", a)
        if is_key(a) or dtypes.issubdtype(aval.dtype, np.complexfloating):
            raise TypeError("choice: a must be an array or an integer, got a scalar of dtype "
                            f"{dtypes.name(aval.dtype)}")
        size: Any = a if isinstance(a, SymbolicDim) else int(a)
    else:
        axis = as_axis("choice", "axis", axis, aval.ndim)
        size = aval.shape[axis]
    count = math.prod(shape)
    if count and size <= 0:
        raise ValueError("a must be greater than 0 unless no samples are taken")
    if not replace and count > size:
        raise ValueError(f"Cannot take a larger sample (size {count}) than population (size "
                         f"{size}) when 'replace=False'")
    if p is not None:
        if get_aval(p).shape != (size,):
            raise ValueError("p must be None or a 1D vector with the same size as a.shape[axis]. "
                             f"p has shape {get_aval(p).shape} and a.shape[axis] is {size}.")
        p = lax.convert_element_type(p, dtypes.to_inexact_dtype(get_aval(p).dtype))
    if not count:
        return jnp.zeros(shape, aval.dtype)
    arrays = () if p is None else (p,)
    mode = "low" if p is None or replace else check_mode("choice", mode)
    indices = _choose(wrapped, *arrays, size=size, shape=shape, replace=bool(replace), mode=mode)
    return _take(a, indices, axis) if aval.ndim else indices


# -- categorical -----------------------------------------------------------------------------------


@on_key("axis", "shape", "replace", "mode")
def _categorical(key: KeyLike, logits: Value, *, axis: int, shape: tuple[int, ...], replace: bool,
                 mode: str) -> Array:
    aval = get_aval(logits)
    dtype = dtypes.default_int_dtype()
    batch = tuple([n for i, n in enumerate(aval.shape) if i != axis])
    if replace:
        front = shape[:len(shape) - len(batch)]
        full = list(shape[len(shape) - len(batch):])
        full.insert(axis, aval.shape[axis])
        noise = gumbel_floats(key, (*front, *full), aval.dtype, mode)
        at = len(front)
        wide = lax.broadcast_in_dim(logits, (*front, *full), range(at, at + aval.ndim))
        return lax.argmax(lax.add(noise, wide), at + axis, dtype)
    count = math.prod(shape[:len(shape) - len(batch)])
    noisy = lax.add(logits, gumbel_floats(key, aval.shape, aval.dtype, mode))
    _, indices = lax.top_k(lax.transpose(noisy, [
        *[i for i in range(aval.ndim) if i != axis], axis]), count)
    n = len(batch)
    return lax.reshape(lax.transpose(indices, (n, *range(n))), shape)


def categorical(key: KeyLike, logits: ArrayLike, axis: int = -1,
                shape: Sequence[int] | None = None, replace: bool = True, mode: str | None = None,
                *, out_sharding: ShardingLike = None) -> Array:
    """Indices along an axis, with probabilities proportional to `exp(logits)`.

    Args:
      key: a key.
      logits: unnormalized logarithms of the probabilities.
      axis: the axis of the categories.
      shape: of the result; its last axes broadcast with those of `logits` other than `axis`, and
        are these by default.
      replace: whether a category may be drawn again in the leading axes.
      mode: as for `gumbel`.
      out_sharding: how the result lies on a mesh: a `NamedSharding`, or a `PartitionSpec` over the
        mesh of the context.

    Raises:
      ValueError: the shapes do not fit, or there are too few categories.

    >>> import pyjx as jax
    >>> jax.random.categorical(jax.random.key(0), jax.numpy.zeros((4, 3))).shape
    (4,)
    >>> logits = jax.numpy.log(jax.numpy.array([0.25, 0.75]))
    >>> samples = jax.random.categorical(jax.random.key(0), logits, shape=(1000,))
    >>> bool(0.7 < samples.mean() < 0.8)
    True
    """
    wrapped, _ = check_key("categorical", key)
    _require_arrays("categorical", logits)
    aval = get_aval(logits)
    if not dtypes.issubdtype(aval.dtype, np.floating):
        raise ValueError("dtype argument to `gumbel` must be a float dtype, got "
                         f"{dtypes.name(aval.dtype)}")
    axis = as_axis("categorical", "axis", axis, aval.ndim)
    batch = tuple([n for i, n in enumerate(aval.shape) if i != axis])
    if shape is None:
        shape = batch
    else:
        shape = as_sizes("categorical", "shape", shape)
        if not broadcasts_to(batch, shape):
            raise ValueError(f"categorical: shape must broadcast with the axes of logits other "
                             f"than {axis}, {batch}; got {shape}")
    if not replace:
        count = math.prod(shape[:len(shape) - len(batch)])
        if count > aval.shape[axis]:
            raise ValueError(
                f"Number of samples without replacement ({count}) cannot exceed number of "
                f"categories ({aval.shape[axis]}).")
    out = _categorical(wrapped, logits, axis=axis, shape=shape, replace=bool(replace),
                       mode=check_mode("categorical", mode))
    return placed_result(out, out_sharding, "categorical")
