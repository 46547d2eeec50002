"""Coordinates: numbers between two, at equal distances or each the same multiple of the one before;
grids of them, and the objects whose indexing makes or joins arrays.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, SupportsIndex

import numpy as np

from pyjx import configuration
from pyjx import lax as ops
from pyjx import numpy as jnp
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike, DTypeLike
from pyjx.core.avals import SymbolicDim, canonical_shape, entries, get_aval
from pyjx.core.integers import as_int, as_sizes
from pyjx.core.layouts import DeviceLike
from pyjx.core.scalars import scalar_constant
from pyjx.core.trace import concrete_or_error
from pyjx.engine.axes import broadcast_in_dim, moveaxis
from pyjx.lax.common import broadcast_shapes
from pyjx.lax.elementwise import stretch
from pyjx.lazy import deferred
from pyjx.numpy.creation import array, asarray, filled
from pyjx.numpy.operands import canonical_axis, constant_like, numpy_function
from pyjx.numpy.promotion import check_ranks, convert, narrowed, operands, promote_dtypes
from pyjx.numpy.ranges import arange
from pyjx.runtime.device_put import device_put

# -- numbers between two ---------------------------------------------------------------------------


def _interpolated(start: Array, stop: Array, num: int, endpoint: bool, dtype: np.dtype[Any],
                  axis: int) -> Any:
    """start * (1 - i/n) + (stop/n) * i, where n is num - 1 with the end point.

    (stop/n) * i is exact for most whole steps from 0, stop * (i/n) often is not.
    """
    common = _at_least_single(_common_dtype(start, stop, dtype))
    wide = dtypes.canonicalize_dtype(dtypes.promote_types(common, _at_least_single(dtype)))
    shape = broadcast_shapes(get_aval(start).shape, get_aval(stop).shape)
    start, stop = (stretch(convert(x, wide), shape) for x in (start, stop))
    real = dtypes.to_floating_dtype(wide)
    pieces = num - 1 if endpoint else num
    rows = num - 1 if endpoint and num > 1 else num
    n = scalar_constant(max(pieces, 1), real)
    i = ops.iota(real, rows)
    rest = convert(ops.sub(constant_like(i, 1), ops.div(i, n)), wide)
    step = ops.div(stop, constant_like(stop, max(pieces, 1)))
    dims = tuple(range(1, len(shape) + 1))
    i, rest = (broadcast_in_dim(x, (rows, *shape), (0,)) for x in (convert(i, wide), rest))
    first, step = (broadcast_in_dim(x, (rows, *shape), dims) for x in (start, step))
    out = ops.add(ops.mul(first, rest), ops.mul(step, i))
    if rows < num:
        out = ops.concatenate([out, broadcast_in_dim(stop, (1, *shape), dims)], 0)
    if wide in dtypes.complex_dtypes and dtype not in dtypes.complex_dtypes:
        out = ops.real(out)
    if dtype in dtypes.integer_dtypes:
        out = ops.floor(out)
    return convert(_moved(out, axis), dtype)


def _common_dtype(start: ArrayLike, stop: Array, dtype: DTypeLike) -> Any:
    """The dtype that both have in common, or that of the result, to which each is converted."""
    try:
        return dtypes.result_type(start, stop)
    except dtypes.TypePromotionError:
        return dtype


def _at_least_single(dtype: DTypeLike) -> Any:
    """The dtype of floats, of no fewer than 32 bits, to compute with."""
    dtype = dtypes.to_inexact_dtype(dtype)
    return np.dtype(np.float32) if dtypes.itemsize_bits(dtype) < 32 else dtype


def _moved(x: ArrayLike, axis: int) -> Any:
    return moveaxis(x, 0, canonical_axis(axis, get_aval(x).ndim))


def linspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False,
             dtype: Any = None, axis: int = 0, *, device: DeviceLike = None) -> Any:
    """`num` numbers at equal distances from `start` to `stop`.

    Args:
      start, stop: arrays or numbers; the values stand along the new axis `axis`.
      endpoint: whether `stop` is the last number.
      retstep: whether to return the pair of the numbers and their distance.
      num: how many numbers.
      dtype: of the result; by default the float dtype to which `start` and `stop` promote.
      axis: the axis of the result along which the numbers are, where `start` or `stop` is an array.
      device: the device or sharding of the result.

    Returns:
      An array with an axis of `num` numbers; with `retstep` a pair of that and the distance. It is
      of a float dtype where none is asked for.

    >>> import pyjx as jax
    >>> jax.numpy.linspace(0, 1, 3).tolist()
    [0.0, 0.5, 1.0]
    """
    out = _linspace(start, stop, num, endpoint, retstep, dtype, axis)
    if device is None:
        return out
    return (device_put(out[0], device), out[1]) if retstep else device_put(out, device)


@numpy_function(static_argnames=("num", "endpoint", "retstep", "dtype", "axis"))
def _linspace(start: Array, stop: Array, num: SupportsIndex, endpoint: bool, retstep: bool,
              dtype: np.dtype[Any], axis: SupportsIndex) -> Any:
    start, stop = operands("linspace", start, stop)
    num = _count("linspace", num)
    dtype = dtypes.to_inexact_dtype(dtypes.result_type(start, stop)) if dtype is None else \
        dtypes.check_and_canonicalize_user_dtype(dtype, "linspace")
    if num > 1:
        check_ranks("linspace", [get_aval(start).shape, get_aval(stop).shape])
    with configuration.numpy_dtype_promotion("standard"):
        out = _interpolated(start, stop, num, bool(endpoint), dtype, operator.index(axis))
    if not retstep:
        return out
    pieces = num - 1 if endpoint else num
    wide = dtypes.to_inexact_dtype(dtype)
    step = jnp.true_divide(jnp.subtract(convert(stop, wide), convert(start, wide)),
                           float(pieces)) if pieces > 0 else filled((), np.nan, wide)
    return out, step


def _count(name: str, num: object) -> int:
    count = as_int(name, "num", concrete_or_error(None, num, f"'num' argument of jnp.{name}"))
    if count < 0:
        raise ValueError(f"{name}: Number of samples, {num}, must be non-negative.")
    return count


@numpy_function(static_argnames=("num", "endpoint", "dtype", "axis"))
def logspace(start: ArrayLike, stop: ArrayLike, num: int = 50, endpoint: bool = True,
             base: ArrayLike = 10.0, dtype: DTypeLike | None = None, axis: int = 0) -> Array:
    """`base` to the powers `linspace(start, stop, num)`.

    Args:
      start, stop: the exponents of the first and the last number, or arrays of such, which
        broadcast.
      num: how many numbers.
      endpoint: whether the power of `stop` is the last number.
      base: what is raised to the exponents.
      dtype: of the result; None for the one that follows from the arguments.
      axis: the axis of the result along which the numbers are, where `start` or `stop` is an array.

    Returns:
      An array with an axis of `num` numbers, of a float dtype where none is asked for.

    >>> import pyjx as jax
    >>> jax.numpy.logspace(0.0, 2.0, 3).round(2).tolist()
    [1.0, 10.0, 100.0]
    """
    start, stop, target, wide = _ends("logspace", start, stop, dtype)
    powers = linspace(start, stop, _count("logspace", num), endpoint, axis=axis, dtype=wide)
    return convert(jnp.float_power(base, powers), target)


def _ends(name: str, start: ArrayLike, stop: ArrayLike, dtype: DTypeLike | None
          ) -> tuple[Array, Array, np.dtype[Any], np.dtype[Any]]:
    """The ends of a range, the dtype of the result, and that of the arithmetic, that of the ends:
    inexact, and of 32 bits at least."""
    start, stop = map(narrowed, operands(name, start, stop))
    target = dtypes.to_inexact_dtype(dtypes.result_type(start, stop)) if dtype is None else \
        dtypes.check_and_canonicalize_user_dtype(dtype, name)
    inexact = dtypes.to_inexact_dtype(target)
    wide = inexact if inexact.itemsize >= 4 else np.dtype(np.float32)
    return asarray(convert(start, wide)), asarray(convert(stop, wide)), target, wide


@numpy_function(static_argnames=("num", "endpoint", "dtype", "axis"))
def geomspace(start: ArrayLike, stop: ArrayLike, num: int = 50, endpoint: bool = True,
              dtype: DTypeLike | None = None, axis: int = 0) -> Array:
    """`num` numbers from `start` to `stop`, each the same multiple of the one before.

    Args:
      start, stop: the first and the last number, or arrays of such, which broadcast; none is 0.
      num: how many numbers.
      endpoint: whether `stop` is the last number.
      dtype: of the result; None for the one that follows from the arguments.
      axis: the axis of the result along which the numbers are, where `start` or `stop` is an array.

    Returns:
      An array with an axis of `num` numbers, of a float dtype where none is asked for.

    >>> import pyjx as jax
    >>> jax.numpy.geomspace(1.0, 4.0, 3).round(4).tolist()
    [1.0, 2.0, 4.0]
    """
    start, stop, target, wide = _ends("geomspace", start, stop, dtype)
    if wide in dtypes.complex_dtypes:
        signs = jnp.sign(start)
        low, high = jnp.divide(start, signs), jnp.divide(stop, signs)
    else:
        signs = jnp.sign(start)
        low, high = jnp.multiply(start, signs), jnp.multiply(stop, signs)
    # of 10, whose powers are then exact, not of e
    num = _count("geomspace", num)
    powers = linspace(jnp.log10(low), jnp.log10(high), num, endpoint, axis=0)
    out = jnp.multiply(jnp.power(10.0, powers), stretch(signs, get_aval(powers).shape))
    if endpoint and num > 1:  # the ends are exact
        out = out.at[-1].set(stop)
    if num > 0:
        out = out.at[0].set(start)
    return convert(_moved(out, axis), target)


# -- grids -----------------------------------------------------------------------------------------

mapping = deferred("pyjx.transforms.vmap")  # loads the transformations

_user_dtype = dtypes.check_and_canonicalize_user_dtype


def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy"
             ) -> tuple[Array, ...]:
    """The coordinates of a grid: for each vector an array in which it goes along its own axis.

    Args:
      xi: vectors or scalars.
      copy: must be true.
      sparse: leave the other axes at size 1.
      indexing: "ij": the axes are in the order of the vectors; "xy": the first two are swapped.

    Returns:
      A tuple of arrays, one for each argument, which are all of the shape of the grid, unless
      `sparse`.

    >>> import pyjx as jax
    >>> [x.tolist() for x in jax.numpy.meshgrid(jax.numpy.arange(2), jax.numpy.arange(2))]
    [[[0, 1], [0, 1]], [[0, 0], [1, 1]]]
    """
    if not copy:
        raise ValueError("jax.numpy.meshgrid only supports copy=True")
    if indexing not in ("xy", "ij"):
        raise ValueError(f"Valid values for indexing are 'xy' and 'ij', got {indexing}")
    args = [asarray(x) for x in operands("meshgrid", *xi)]
    for x in args:
        if x.ndim > 1:
            raise ValueError("Arguments to jax.numpy.meshgrid must be 1D, got: "
                             f"{', '.join(str(x.shape) for x in args)}")
    sizes = [x.size for x in args]
    axes = list(range(len(args)))
    if indexing == "xy" and len(args) >= 2:
        axes[0], axes[1] = 1, 0
    shape = [sizes[axis] for axis in axes]
    out = []
    for x, axis in zip(args, axes, strict=True):
        own = [n if not sparse or d == axis else 1 for d, n in enumerate(shape)]
        out.append(broadcast_in_dim(ops.reshape(x, (x.size,)), own, (axis,)))
    return tuple(out)


def indices(dimensions: Sequence[int], dtype: DTypeLike | None = None, sparse: bool = False) -> Any:
    """The indices of an array of the given shape, one array for each axis.

    With `sparse` a tuple of arrays that broadcast, otherwise they stand along a new first axis.

    Returns:
      An array (ndim, *dimensions) of integers; with `sparse` a tuple of arrays.

    >>> import pyjx as jax
    >>> jax.numpy.indices((2, 2)).tolist()
    [[[0, 0], [1, 1]], [[0, 1], [0, 1]]]
    """
    dtype = dtypes.default_int_dtype() if dtype is None else _user_dtype(dtype, "indices")
    for n in dimensions if isinstance(dimensions, (tuple, list)) else ():
        concrete_or_error(None, n, "dimensions argument of jnp.indices")
    shape = as_sizes("indices", "shape", tuple(entries(dimensions)))
    if any([isinstance(n, SymbolicDim) for n in shape]):
        every = [ops.broadcasted_iota(dtype, [
            n if not sparse or d == axis else 1 for d, n in enumerate(shape)], axis)
            for axis in range(len(shape))]
        return tuple(every) if sparse else jnp.stack(every)
    if sparse:
        return tuple([array(x, dtype) for x in np.indices(shape, sparse=True)])
    return array(np.indices(shape), dtype)


def ix_(*args: Any) -> tuple[Array, ...]:
    """Index arrays that together select the grid of the given indices along each axis.

    Returns:
      A tuple of arrays of integers, each of which is long along an axis of its own.

    >>> import pyjx as jax
    >>> [i.shape for i in jax.numpy.ix_([0, 1], [2])]
    [(2, 1), (1, 1)]
    """
    out = []
    for i, x in enumerate(args):
        if isinstance(x, (list, tuple)):
            x = array(x)
        (x,) = operands("ix_", x)
        if get_aval(x).ndim != 1:
            raise ValueError("Arguments to jax.numpy.ix_ must be 1-dimensional, got shape "
                             f"{get_aval(x).shape}")
        if get_aval(x).dtype == np.bool_:
            (x,) = jnp.nonzero(x)
        x = asarray(x) if get_aval(x).shape != (0,) else ops.full(
            (0,), 0, dtypes.default_int_dtype())
        shape = [1] * len(args)
        shape[i] = x.size
        out.append(ops.reshape(x, shape))
    return tuple(out)


def _axis_values(key: slice, name: str) -> Any:
    """The numbers that a slice stands for; one with its start alone goes from 0 up to that."""
    start, stop, step = (concrete_or_error(None, getattr(key, part), f"slice {part} of jnp.{name}")
                         for part in ("start", "stop", "step"))
    start = 0 if start is None else start
    if isinstance(step, complex):
        return jnp.linspace(start, stop, int(abs(step)))
    return arange(start, stop, step)


class _Named:
    """An object of the module's, which copies and pickles as itself."""

    name: str

    def __reduce__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"jax.numpy.{self.name}"


class _Grid(_Named):
    """`mgrid` and `ogrid`: coordinates by slices."""

    def __init__(self, name: str, sparse: bool) -> None:
        self.name = name
        self.sparse = sparse

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return _axis_values(key, self.name)
        axes = [_axis_values(k, self.name) for k in key]
        with configuration.numpy_dtype_promotion("standard"):  # the ranges are no user's arrays
            axes = promote_dtypes(*axes) if axes else []
        grids = list(meshgrid(*axes, indexing="ij", sparse=self.sparse))
        if self.sparse:
            return grids

        return jnp.stack(grids, 0) if grids else arange(0)


mgrid = _Grid("mgrid", False)
ogrid = _Grid("ogrid", True)


class _Joiner(_Named):
    """Concatenation of slices, arrays and scalars."""

    axis: ClassVar[int]
    ndmin: ClassVar[int]
    trans1d: ClassVar[int]  # where the axes of an array of fewer than `ndmin` axes begin

    def __getitem__(self, key: Any) -> Any:
        items = list(key) if isinstance(key, tuple) else [key]
        axis, ndmin, trans1d = self.axis, self.ndmin, self.trans1d
        matrix = ""
        if items and isinstance(items[0], str):
            axis, ndmin, trans1d, matrix = self._directive(items.pop(0), axis, ndmin, trans1d)
        parts = []
        for item in items:
            if isinstance(item, str):
                raise ValueError(f"jnp.{self.name}: string directive must be placed at the "
                                 "beginning")
            scalar = np.ndim(item) == 0 and not isinstance(item, slice)
            x = _axis_values(item, self.name) if isinstance(item, slice) else \
                item if scalar else asarray(item)
            parts.append(self._raised(x, ndmin, trans1d))
        out = jnp.concatenate(promote_dtypes(*parts), axis=axis)
        if matrix:
            return out[:, None] if matrix == "c" and out.ndim == 1 else jnp.atleast_2d(out)
        return out

    def _directive(self, text: str, axis: int, ndmin: int, trans1d: int
                   ) -> tuple[int, int, int, str]:
        if text in ("r", "c"):
            return axis, ndmin, trans1d, text
        try:
            numbers = [int(n) for n in text.split(",")]
        except ValueError:
            raise ValueError(f"could not understand directive {text!r}") from None
        names = [axis, ndmin, trans1d]
        names[:len(numbers)] = numbers
        return names[0], names[1], names[2], ""

    def _raised(self, x: Array, ndmin: int, trans1d: int) -> Any:
        """`x` with at least `ndmin` axes; `trans1d` is where those of `x` then begin."""
        x = x if hasattr(x, "aval") else asarray(x)
        missing = ndmin - x.ndim
        if x.ndim == 0:
            return ops.reshape(x, (1,) * ndmin)
        if missing <= 0:
            return x
        begin = trans1d if trans1d >= 0 else missing + 1 + trans1d
        made = [d for d in range(ndmin) if not begin <= d < begin + x.ndim]
        return ops.expand_dims(x, made)


class RClass(_Joiner):
    """What `r_` is: it joins along the first axis."""

    name, axis, ndmin, trans1d = "r_", 0, 1, -1


class CClass(_Joiner):
    """What `c_` is: it joins along the last axis, and vectors are columns."""

    name, axis, ndmin, trans1d = "c_", -1, 2, 0


r_ = RClass()
c_ = CClass()
s_ = np.s_
index_exp = np.index_exp


def fromfunction(function: Callable[..., Any], shape: Sequence[int], *,
                 dtype: DTypeLike | None = float, **kwargs: Any) -> Array:
    """The array of the values of a function of its indices, which it gets one at a time.

    Args:
      function: a function of as many arrays of indices as there are axes, which may also work on
        single numbers: it is mapped.
      shape: the sizes of the axes.
      dtype: of the indices.
      **kwargs: what the function gets besides.

    Returns:
      What the function returns.

    >>> import pyjx as jax
    >>> jax.numpy.fromfunction(lambda i, j: i + j, (2, 2), dtype=int).tolist()
    [[0, 1], [1, 2]]
    """
    shape = canonical_shape(shape)
    fun: Any = partial(function, **kwargs)
    for axis in reversed(range(len(shape))):
        fun = mapping.vmap(fun, tuple([0 if i == axis else None for i in range(len(shape))]))
    return fun(*[jnp.arange(n, dtype=dtype) for n in shape])
