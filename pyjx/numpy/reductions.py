"""Reductions: sums, products, extrema, logic, positions of extrema, and running sums.

Sums and products of small integers are taken in the default integer dtype and those of 16-bit
floats in float32, so that results are as precise as their dtype allows.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pyjx import lax
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike, AxisLike, DTypeLike
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.scalars import greatest, least
from pyjx.core.specs import reshard_first
from pyjx.core.trace import Tracer
from pyjx.engine.axes import broadcast_in_dim_p, reduce_sum_p
from pyjx.engine.primitives import cast
from pyjx.engine.types import Value
from pyjx.errors import ShardingTypeError
from pyjx.lax.common import broadcast_shapes
from pyjx.lax.elementwise import stretch
from pyjx.numpy.operands import (
    alias,
    along,
    axes_and_names,
    canonical_axes,
    canonical_axis,
    names_in,
    numpy_function,
)
from pyjx.numpy.promotion import convert, literal, no_out, numbers, operands, size_literal

_half_dtypes = frozenset((np.dtype(dtypes.bfloat16), np.dtype(np.float16)))
_wide_dtypes = frozenset([np.dtype(d) for d in (
    "float32", "float64", "complex64", "complex128", "int64", "uint64")])


def promoted_integer(dtype: DTypeLike) -> Any:
    """The dtype in which bools and integers are summed: at least the default integer dtype."""
    if dtype == np.bool_:
        return dtypes.default_int_dtype()
    if dtypes.issubdtype(dtype, np.unsignedinteger):
        least = dtypes.default_uint_dtype()
    elif dtypes.issubdtype(dtype, np.integer):
        least = dtypes.default_int_dtype()
    else:
        return dtypes.canonicalize_dtype(dtype)
    wide = dtypes.itemsize_bits(dtype) >= dtypes.itemsize_bits(least)
    return dtypes.canonicalize_dtype(dtype) if wide else least


def masked(where: ArrayLike, x: ArrayLike, fill: ArrayLike) -> Any:
    """`x` where `where` is true, and the scalar `fill` elsewhere."""
    aval = get_aval(x)
    shape = broadcast_shapes(get_aval(where).shape, aval.shape)
    fill = broadcast_in_dim_p.bind(literal(fill, aval.dtype), shape=shape,
                                   broadcast_dimensions=(), sharding=None)
    return lax.select_n_p.bind(stretch(where, shape), fill, stretch(x, shape))


def restore_axes(x: Value, axes: tuple[int, ...], ndim: int) -> Any:
    """The result of a reduction with its `axes` back, of size 1."""
    shape = list(get_aval(x).shape)
    for axis in sorted(axes):
        shape.insert(axis, 1)
    kept = tuple([i for i in range(ndim) if i not in axes])
    return broadcast_in_dim_p.bind(x, shape=tuple(shape), broadcast_dimensions=kept, sharding=None)


def check_where(name: str, where: ArrayLike | None) -> Any:
    """The mask `where` of the function `name`, which must be boolean."""
    if where is None:
        return None
    (where,) = operands(name, where)
    dtype = get_aval(where).dtype
    if dtype != np.bool_:
        raise ValueError(f"jnp.{name}: where must be None or a boolean array; got where.{dtype=}.")
    return where


def combine_initial(combine: Callable[[Any, Any], Any], initial: ArrayLike, out: ArrayLike) -> Any:
    """`combine(initial, out)`, with `initial` in the dtype of `out`."""
    shape = get_aval(initial).shape
    if shape:
        raise ValueError(f"initial value must be a scalar. Got array of shape {shape}")
    out_aval = get_aval(out)
    return combine(stretch(convert(initial, out_aval.dtype), out_aval.shape)
                   if isinstance(initial, Tracer) else literal_or_cast(initial, out_aval), out)


def _saturated(x: float, dtype: DTypeLike) -> int:
    """What XLA converts a float to: the nearest integer of the dtype towards 0, and 0 for nan."""
    info = dtypes.iinfo(dtype)
    return 0 if math.isnan(x) else int(builtins.min(builtins.max(x, info.min), info.max))


def literal_or_cast(x: ArrayLike, like: ShapedArray) -> Any:
    """A concrete scalar as an operand beside a value of aval `like`."""
    if type(x) is float and like.dtype in dtypes.integer_dtypes:
        x = _saturated(x, like.dtype)
    if type(x) in (bool, int, float, complex):
        return literal(x, like.dtype)
    return stretch(convert(x, like.dtype), like.shape)


def _sum_like(name: str, reduce: Callable[..., Any], unit: int, combine: Callable[[Any, Any], Any],
              a: ArrayLike, axis: int | Sequence[int | str] | None, dtype: DTypeLike | None,
              out: object, keepdims: bool, initial: ArrayLike | None, where: ArrayLike | None,
              promote: bool) -> Any:
    a = numbers(name, a, out)
    where = check_where(name, where)
    aval = get_aval(a)
    if dtype is None:
        given = dtypes.canonicalize_dtype(aval.dtype)
        small = np.dtype(np.int32) if given == np.bool_ else given  # truth values are counted
        result = promoted_integer(given) if promote else small
        computed = np.dtype(np.float32) if given in _half_dtypes else result
    else:
        result = computed = dtypes.check_and_canonicalize_user_dtype(dtype, name)
    axes, names = axes_and_names(axis, aval.ndim)
    if computed == np.bool_:
        combine = lax.bitwise_or if combine is lax.add else lax.bitwise_and
    return convert(_folded(reduce, unit, combine, convert(a, computed), axes, names, keepdims,
                           initial, where), result)


def _folded(reduce: Callable[..., Any], unit: Any, combine: Callable[..., Any],
            x: ArrayLike, axes: tuple[int, ...], names: tuple[str, ...], keepdims: bool,
            initial: ArrayLike | None, where: ArrayLike | None) -> Any:
    """`x` reduced over axes and named ones, where the mask holds, from the initial value."""
    if where is not None:
        x = masked(where, x, unit)
    y = reduce(x, axes, names)
    if initial is not None:
        y = combine_initial(combine, initial, y)
    return restore_axes(y, axes, get_aval(x).ndim) if keepdims else y


def _reduce_sum(x: ArrayLike, axes: tuple[int, ...], names: tuple[str, ...]) -> Any:
    if get_aval(x).dtype == np.bool_:
        return _reduce_or(x, axes, names)
    if names:
        return lax.psum(x, (*names, *axes))
    return reduce_sum_p.bind(x, axes=axes, out_sharding=None)


def _reduce_prod(x: ArrayLike, axes: tuple[int, ...], names: tuple[str, ...]) -> Any:
    if names:
        raise NotImplementedError(
            "Named reductions not implemented for jnp.prod(). Gather the values of the named axes "
            f"first: jnp.prod(lax.all_gather(x, {names[0]!r}), 0)")
    if get_aval(x).dtype == np.bool_:
        return lax.reduce_and_p.bind(x, axes=axes)
    return lax.reduce_prod_p.bind(x, axes=axes)


def is_wide(a: object) -> bool:
    """Whether `a` is a tracer that is summed in its own dtype."""
    if not isinstance(a, Tracer) or a.aval.weak_type:
        return False
    dtype = a.aval.dtype
    return dtype in _wide_dtypes and dtype == dtypes.canonicalize_dtype(dtype)


@numpy_function(static_argnames=("axis", "dtype", "keepdims", "promote_integers"))
def sum(a: Any, axis: int | Sequence[int | str] | None = None,
        dtype: DTypeLike | None = None, out: None = None, keepdims: bool = False,
        initial: Any = None, where: Any = None, promote_integers: bool = True) -> Array:
    """The sum of array elements over the given axes.

    Args:
      a: array.
      axis: int or sequence of ints; all axes by default. Names of mapped axes may be among them.
      dtype: of the result. By default bools and small integers become the default integer dtype,
        unless `promote_integers` is false; other dtypes stay.
      out: not supported.
      keepdims: whether the axes stay, with size 1.
      initial: scalar to begin with.
      where: boolean mask, broadcast against `a`, of the elements to include.
      promote_integers: whether integers narrower than the default one are summed in that.

    Raises:
      TypeError: `a` is no array or scalar.
      ValueError: an axis is out of bounds or named twice.

    >>> import pyjx as jax
    >>> jax.numpy.sum(jax.numpy.ones((2, 3)), axis=1).tolist()
    [3.0, 3.0]
    """
    if (where is None and dtype is None and initial is None and not keepdims and out is None
            and promote_integers and is_wide(a) and not names_in(axis)):
        return reduce_sum_p.bind(a, axes=canonical_axes(axis, a.aval.ndim), out_sharding=None)
    return _sum_like("sum", _reduce_sum, 0, lax.add, a, axis, dtype, out, keepdims, initial, where,
                     promote_integers)


@numpy_function(static_argnames=("axis", "dtype", "keepdims", "promote_integers"))
def prod(a: ArrayLike, axis: AxisLike = None, dtype: DTypeLike | None = None, out: None = None,
         keepdims: bool = False, initial: ArrayLike | None = None, where: ArrayLike | None = None,
         promote_integers: bool = True) -> Array:
    """The product of array elements over the given axes; arguments as for `sum`.

    >>> import pyjx as jax
    >>> int(jax.numpy.prod(jax.numpy.array([2, 3, 4])))
    24
    """
    return _sum_like("prod", _reduce_prod, 1, lax.mul, a, axis, dtype, out, keepdims, initial,
                     where, promote_integers)


# -- extrema ---------------------------------------------------------------------------------------


def largest(x: ArrayLike, axes: tuple[int, ...], names: tuple[str, ...]) -> Any:
    """The maximum over axes of the array, and over named ones."""
    return (lax.pmax(x, (*names, *axes)) if names
            else lax.reduce_max_p.bind(x, axes=axes, out_sharding=None))


def _least(x: ArrayLike, axes: tuple[int, ...], names: tuple[str, ...]) -> Any:
    return (lax.pmin(x, (*names, *axes)) if names
            else lax.reduce_min_p.bind(x, axes=axes, out_sharding=None))


def _extremum(name: str, reduce: Callable[..., Any], unit: Callable[[Any], Any],
              combine: Callable[[Any, Any], Any], a: ArrayLike, axis: AxisLike, out: object,
              keepdims: bool, initial: ArrayLike | None, where: ArrayLike | None) -> Any:
    a = numbers(name, a, out)
    where = check_where(name, where)
    if where is not None and initial is None:
        raise ValueError(f"reduction operation {name} does not have an identity, so to use a where "
                         "mask one has to specify 'initial'")
    aval = get_aval(a)
    axes, names = axes_and_names(axis, aval.ndim)
    if initial is None and 0 in [aval.shape[i] for i in axes]:
        raise ValueError(f"zero-size array to reduction operation {name} which has no identity")
    dtype = dtypes.canonicalize_dtype(aval.dtype, True)
    return _folded(reduce, None if where is None else unit(dtype), combine, convert(a, dtype), axes,
                   names, keepdims, initial, where)


@numpy_function(static_argnames=("axis", "keepdims"))
def max(a: ArrayLike, axis: AxisLike = None, out: None = None, keepdims: bool = False,
        initial: ArrayLike | None = None, where: ArrayLike | None = None) -> Array:
    """The largest element over the given axes; nan if there is one.

    Args:
      a: array.
      axis: int or sequence of ints; all axes by default.
      out: not supported.
      keepdims: whether the axes stay, with size 1.
      initial: scalar, the least result. Needed with `where` and for axes of size 0.
      where: boolean mask, broadcast against `a`, of the elements to include.

    Raises:
      ValueError: an axis is out of bounds, or of size 0 without `initial`.

    >>> import pyjx as jax
    >>> jax.numpy.max(jax.numpy.array([[1, 5], [7, 2]]), axis=0).tolist()
    [7, 5]
    """
    return _extremum("max", largest, least, lax.max, a, axis, out, keepdims, initial, where)


@numpy_function(static_argnames=("axis", "keepdims"))
def min(a: ArrayLike, axis: AxisLike = None, out: None = None, keepdims: bool = False,
        initial: ArrayLike | None = None, where: ArrayLike | None = None) -> Array:
    """The smallest element over the given axes; nan if there is one. Arguments as for `max`.

    >>> import pyjx as jax
    >>> jax.numpy.min(jax.numpy.array([[1, 5], [7, 2]]), axis=0).tolist()
    [1, 2]
    """
    return _extremum("min", _least, greatest, lax.min, a, axis, out, keepdims, initial, where)


_reduction = numpy_function(static_argnames=("axis", "keepdims"))
amax, amin = alias("amax", max, _reduction), alias("amin", min, _reduction)


@numpy_function(static_argnames=("axis", "keepdims"))
def minmax(a: ArrayLike, axis: AxisLike = None, out: None = None, keepdims: bool = False,
           initial: ArrayLike | None = None, where: ArrayLike | None = None) -> tuple[Array, Array]:
    """The smallest and the largest element over the given axes; arguments as for `max`.

    Returns:
      A pair of arrays without the axes that are reduced, or with size 1 there if `keepdims`: the
      least and the largest elements.

    >>> import pyjx as jax
    >>> low, high = jax.numpy.minmax(jax.numpy.array([3, 1, 2]))
    >>> int(low), int(high)
    (1, 3)
    """
    no_out("minmax", out)
    return (_extremum("min", _least, greatest, lax.min, a, axis, out, keepdims, initial, where),
            _extremum("max", largest, least, lax.max, a, axis, out, keepdims, initial, where))


@numpy_function(static_argnames=("axis", "keepdims"))
def ptp(a: ArrayLike, axis: AxisLike = None, out: None = None, keepdims: bool = False) -> Array:
    """The largest element less the smallest one over the given axes ("peak to peak").

    >>> import pyjx as jax
    >>> int(jax.numpy.ptp(jax.numpy.array([3, 1, 7])))
    6
    """
    a = numbers("ptp", a, out)
    return lax.sub(_extremum("max", largest, least, lax.max, a, axis, None, keepdims, None, None),
                   _extremum("min", _least, greatest, lax.min, a, axis, None, keepdims, None, None))


# -- logic and counts ------------------------------------------------------------------------------


def _logical(name: str, reduce: Callable[..., Any], unit: bool, a: ArrayLike, axis: AxisLike,
             out: object, keepdims: bool, where: ArrayLike | None) -> Any:
    a = numbers(name, a, out)
    where = check_where(name, where)
    axes, names = axes_and_names(axis, get_aval(a).ndim)
    return _folded(reduce, unit, reduce, cast(a, np.dtype(bool)), axes, names, keepdims, None,
                   where)


def _reduce_and(x: ArrayLike, axes: tuple[int, ...], names: tuple[str, ...]) -> Any:
    each = lax.reduce_and_p.bind(x, axes=axes)
    return lax.pmin(each, names) if names else each


def _reduce_or(x: ArrayLike, axes: tuple[int, ...], names: tuple[str, ...]) -> Any:
    some = lax.reduce_or_p.bind(x, axes=axes)
    return lax.pmax(some, names) if names else some


@numpy_function(static_argnames=("axis", "keepdims"))
def all(a: ArrayLike, axis: AxisLike = None, out: None = None, keepdims: bool = False, *,
        where: ArrayLike | None = None) -> Array:
    """Whether all elements over the given axes are true (not zero).

    Returns:
      A boolean array without the axes that are reduced, or with size 1 there if `keepdims`.

    >>> import pyjx as jax
    >>> jax.numpy.all(jax.numpy.array([[1, 0], [1, 1]]), axis=1).tolist()
    [False, True]
    """
    return _logical("all", _reduce_and, True, a, axis, out, keepdims, where)


@numpy_function(static_argnames=("axis", "keepdims"))
def any(a: ArrayLike, axis: AxisLike = None, out: None = None, keepdims: bool = False, *,
        where: ArrayLike | None = None) -> Array:
    """Whether an element over the given axes is true (not zero).

    Returns:
      A boolean array without the axes that are reduced, or with size 1 there if `keepdims`.

    >>> import pyjx as jax
    >>> jax.numpy.any(jax.numpy.array([[0, 0], [0, 1]]), axis=1).tolist()
    [False, True]
    """
    return _logical("any", _reduce_or, False, a, axis, out, keepdims, where)


@numpy_function(static_argnames=("axis", "keepdims"))
def count_nonzero(a: ArrayLike, axis: AxisLike = None, keepdims: bool = False) -> Array:
    """How many elements over the given axes are not zero; of the default integer dtype.

    Returns:
      An array of integers without the axes that are reduced, or with size 1 there if `keepdims`.

    >>> import pyjx as jax
    >>> int(jax.numpy.count_nonzero(jax.numpy.array([3, 0, 1])))
    2
    """
    a = numbers("count_nonzero", a)
    nonzero = lax.ne(a, literal(0, get_aval(a).dtype))
    return _sum_like("sum", _reduce_sum, 0, lax.add, nonzero, axis,
                     dtypes.default_int_dtype(), None, keepdims, None, None, True)


# -- positions of extrema --------------------------------------------------------------------------


def arg_extremum(name: str, find: Callable[..., Any], a: ArrayLike, axis: AxisLike, out: Any,
                 keepdims: bool | None) -> Any:
    """The position that `find` (lax.argmax or lax.argmin) gives along `axis`."""
    a = numbers(name, a, out)
    aval = get_aval(a)
    x, place = along(a, axis)
    if get_aval(x).shape[place] == 0:
        raise ValueError(f"attempt to get {name} of an empty sequence")
    y = find(x, place, dtypes.default_int_dtype())
    axes = tuple(range(aval.ndim)) if axis is None else (place,)
    return restore_axes(y, axes, aval.ndim) if keepdims else y


@numpy_function(static_argnames=("axis", "keepdims"))
def argmax(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None
          ) -> Array:
    """The position of the first largest element along an axis; nan counts as largest.

    Args:
      a: array.
      axis: int; by default the array is flattened.
      out: not supported.
      keepdims: whether the axis stays, with size 1.

    Returns:
      An array of integers without the axis, or with size 1 there if `keepdims`; the first place
      where there are several.

    Raises:
      ValueError: the axis is out of bounds or of size 0.

    >>> import pyjx as jax
    >>> int(jax.numpy.argmax(jax.numpy.array([1, 7, 7])))
    1
    >>> jax.numpy.argmax(jax.numpy.array([[1, 5, 2], [7, 0, 3]]), axis=1).tolist()
    [1, 0]
    """
    return arg_extremum("argmax", lax.argmax, a, axis, out, keepdims)


@numpy_function(static_argnames=("axis", "keepdims"))
def argmin(a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None
          ) -> Array:
    """The position of the first smallest element along an axis; arguments as for `argmax`.

    Returns:
      An array of integers without the axis, or with size 1 there if `keepdims`; the first place
      where there are several.

    >>> import pyjx as jax
    >>> int(jax.numpy.argmin(jax.numpy.array([3, 1, 1])))
    1
    """
    return arg_extremum("argmin", lax.argmin, a, axis, out, keepdims)


# -- means -----------------------------------------------------------------------------------------


def count_of(aval: ShapedArray, axes: tuple[int, ...], names: tuple[str, ...] = ()) -> int:
    """How many elements a reduction over `axes`, and named ones, combines into one."""
    count = lax.axis_size(names) if names else 1
    for axis in axes:
        count *= aval.shape[axis]
    return count


def mean_of(a: ArrayLike, axis: Any, dtype: DTypeLike | None, keepdims: bool,
            where: ArrayLike | None, name: str = "mean") -> Any:
    """The mean; of half-precision floats it is computed in float32."""
    a = numbers(name, a)
    where = check_where(name, where)
    aval = get_aval(a)
    if dtype is None:
        result = dtypes.to_inexact_dtype(dtypes.canonicalize_dtype(aval.dtype))
        computed = np.dtype(np.float32) if result in _half_dtypes else result
    else:
        result = computed = dtypes.check_and_canonicalize_user_dtype(dtype, name)
    total = _sum_like("sum", _reduce_sum, 0, lax.add, a, axis, computed, None, keepdims, None,
                      where, True)
    computed = get_aval(total).dtype
    if where is None:
        n = count_of(aval, *axes_and_names(axis, aval.ndim))
        count: Any = literal(n, computed)
    else:
        count = _sum_like("sum", _reduce_sum, 0, lax.add, stretch(where, aval.shape), axis,
                          computed, None, keepdims, None, None, True)
    return convert(lax.div(total, count), result)


@numpy_function(static_argnames=("axis", "dtype", "keepdims"))
def mean(a: Any, axis: int | Sequence[int | str] | None = None, dtype: DTypeLike | None = None,
         out: None = None, keepdims: bool = False, *, where: Any = None) -> Array:
    """The arithmetic mean over the given axes; nan over none.

    Args:
      a: array.
      axis: int or sequence of ints; all axes by default.
      dtype: of the result and the sum; by default floats keep theirs and others become floats.
      out: not supported.
      keepdims: whether the axes stay, with size 1.
      where: boolean mask, broadcast against `a`, of the elements to include.

    >>> import pyjx as jax
    >>> float(jax.numpy.mean(jax.numpy.array([1, 2, 6])))
    3.0
    >>> x = jax.numpy.array([[1.0, 2.0], [3.0, 6.0]])
    >>> (x - jax.numpy.mean(x, axis=1, keepdims=True)).tolist()
    [[-0.5, 0.5], [-1.5, 1.5]]
    """
    no_out("mean", out)
    if where is None and dtype is None and not keepdims and is_wide(a) and not names_in(axis):
        aval = a.aval
        if aval.dtype in dtypes.floating_dtypes:
            axes = canonical_axes(axis, aval.ndim)
            total = reduce_sum_p.bind(a, axes=axes, out_sharding=None)
            return lax.div_p.bind(total, size_literal(count_of(aval, axes), aval.dtype))
    return mean_of(a, axis, dtype, keepdims, where)


# -- running sums and products ---------------------------------------------------------------------


def _cumulative(name: str, scan: Callable[..., Any], a: ArrayLike, axis: AxisLike,
                dtype: DTypeLike | None, out: Any, promote: bool = False) -> Any:
    a = numbers(name, a, out)
    aval = get_aval(a)
    if axis is None and aval.place.sharding is not None:
        whole = [i for i, names in enumerate(aval.place.sharding.spec) if names is None]
        cure = reshard_first()
        raise ShardingTypeError(
            f"The input should be fully replicated when axis is not specified to {name}. Got input "
            f"type={aval.str_short()}. "
            + (f"Give axis={whole[0]}, or c{cure[1:]}" if whole else cure))
    if not aval.ndim and aval.weak_type:  # a Python scalar is an array of one
        a = lax.reshape(a, (1,))
    a, axis = along(a, axis)
    if dtype is not None:
        dtype = dtypes.check_and_canonicalize_user_dtype(dtype, name)
    elif promote or aval.dtype == np.bool_:
        dtype = promoted_integer(aval.dtype)
    else:
        dtype = dtypes.canonicalize_dtype(aval.dtype)
    a = cast(a, dtype) if dtype == np.bool_ else convert(a, dtype)
    if dtype == np.bool_:
        return convert(scan(convert(a, dtypes.default_int_dtype()), axis), dtype)
    return scan(a, axis)


@numpy_function(static_argnames=("axis", "dtype"))
def cumsum(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None,
           out: None = None) -> Array:
    """The running sum along an axis.

    Args:
      a: array.
      axis: int; by default the array is flattened.
      dtype: of the result; by default that of `a`, or the default integer dtype for bools.
      out: not supported.

    Returns:
      An array of the argument's shape, or without an axis a one-dimensional one. Narrow integers
      keep their dtype, which NumPy widens.

    >>> import pyjx as jax
    >>> jax.numpy.cumsum(jax.numpy.array([1, 2, 3])).tolist()
    [1, 3, 6]
    """
    return _cumulative("cumsum", lax.cumsum, a, axis, dtype, out)


@numpy_function(static_argnames=("axis", "dtype"))
def cumprod(a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None,
            out: None = None) -> Array:
    """The running product along an axis; arguments as for `cumsum`.

    Returns:
      An array of the argument's shape, or without an axis a one-dimensional one. Narrow integers
      keep their dtype, which NumPy widens.

    >>> import pyjx as jax
    >>> jax.numpy.cumprod(jax.numpy.array([1, 2, 3])).tolist()
    [1, 2, 6]
    """
    return _cumulative("cumprod", lax.cumprod, a, axis, dtype, out)


def _with_initial(name: str, what: str, scan: Callable[..., Any], unit: int, x: Array,
                  axis: AxisLike, dtype: np.dtype[Any], include_initial: bool, promote: bool
                 ) -> Any:
    (x,) = operands(name, x)
    aval = get_aval(x)
    if not aval.ndim:
        raise ValueError(f"The input must be non-scalar to take a {what}, "
                         "however a scalar value or scalar array was given.")
    if axis is None and aval.ndim > 1:
        raise ValueError(
            f"The input array has rank {aval.ndim}, however axis was not set to an explicit value. "
            "The axis argument is only optional for one-dimensional arrays.")
    axis = canonical_axis(0 if axis is None else axis, aval.ndim)
    out = _cumulative(name, scan, x, axis, dtype, None, promote)
    if not include_initial:
        return out
    out_aval = get_aval(out)
    shape = (*out_aval.shape[:axis], 1, *out_aval.shape[axis + 1:])
    return lax.concatenate([lax.full(shape, unit, out_aval.dtype), out], axis)


@numpy_function(static_argnames=("axis", "dtype", "include_initial"))
def cumulative_sum(x: Any, /, *, axis: int | None = None, dtype: Any = None,
                   include_initial: bool = False) -> Array:
    """The running sum along an axis, of the array API standard.

    Args:
      x: array of at least one dimension.
      axis: int; optional for one-dimensional arrays.
      dtype: of the result; by default as for `sum`.
      include_initial: whether the results begin with 0.

    Returns:
      An array of the argument's shape, of one element more along the axis with `include_initial`.
      Narrow integers become the default integer dtype.

    Raises:
      ValueError: `x` is a scalar, or `axis` is missing.

    >>> import pyjx as jax
    >>> jax.numpy.cumulative_sum(jax.numpy.array([1, 2]), include_initial=True).tolist()
    [0, 1, 3]
    """
    return _with_initial("cumulative_sum", "cumulative sum", lax.cumsum, 0, x, axis, dtype,
                         include_initial, True)


@numpy_function(static_argnames=("axis", "dtype", "include_initial"))
def cumulative_prod(x: Any, /, *, axis: int | None = None, dtype: Any = None,
                    include_initial: bool = False) -> Array:
    """The running product along an axis; arguments as for `cumulative_sum`.

    By default integers keep their dtype and bools get the default integer dtype.

    Returns:
      An array of the argument's shape, of one element more along the axis with `include_initial`.
      Narrow integers become the default integer dtype.

    >>> import pyjx as jax
    >>> jax.numpy.cumulative_prod(jax.numpy.array([2, 3]), include_initial=True).tolist()
    [1, 2, 6]
    """
    return _with_initial("cumulative_prod", "cumulative product", lax.cumprod, 1, x, axis, dtype,
                         include_initial, False)
