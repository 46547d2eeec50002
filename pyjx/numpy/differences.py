"""Differences, integrals and interpolation along axes; convolution."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pyjx import custom_derivatives, lax
from pyjx import numpy as jnp
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike, AxisLike, DTypeLike
from pyjx.core.avals import get_aval
from pyjx.core.explicit import entries_of
from pyjx.core.integers import max_dim, min_dim
from pyjx.core.scalars import scalar_constant
from pyjx.core.trace import is_concrete
from pyjx.lax.contractions import PrecisionLike
from pyjx.numpy import reductions, ufuncs
from pyjx.numpy.operands import canonical_axes, canonical_axis, numpy_function
from pyjx.numpy.promotion import (
    any_ranks,
    convert,
    literal,
    operands,
    promote_dtypes,
    promote_dtypes_inexact,
    strong,
)
from pyjx.numpy.sorting import searchsorted
from pyjx.runtime.operations import body_of
from pyjx.transforms.custom_vmap import custom_vmap
from pyjx.transforms.linearize import linear_transpose

_sum = body_of(reductions.sum)


def _span(x: ArrayLike, start: int, stop: int, axis: int) -> Any:
    """x[start:stop] along an axis; a negative `stop` counts from the end."""
    size = get_aval(x).shape[axis]
    return lax.slice_in_dim(x, start, size + stop if stop < 0 else stop, axis=axis)


def _gaps(x: ArrayLike, axis: int) -> Any:
    """x[1:] - x[:-1] along an axis; for booleans whether they differ."""
    size = get_aval(x).shape[axis]
    if not size:
        return x
    after, before = _span(x, 1, size, axis), _span(x, 0, size - 1, axis)
    return lax.ne(after, before) if get_aval(x).dtype == np.bool_ else lax.sub(after, before)


@numpy_function(static_argnames=("n", "axis"))
def diff(a: Array, n: int = 1, axis: int = -1, prepend: ArrayLike | None = None,
         append: ArrayLike | None = None) -> Array:
    """The differences of neighbours along an axis, taken `n` times.

    Args:
      a: array of at least one axis.
      n: int; 0 returns `a`.
      prepend, append: arrays or scalars to put before and behind `a` first.
      axis: the axis along which neighbours are subtracted.

    Returns:
      An array with `n` elements fewer along the axis.

    Raises:
      ValueError: `a` is a scalar, or `n` is negative.

    >>> import pyjx as jax
    >>> jax.numpy.diff(jax.numpy.array([1, 4, 9])).tolist()
    [3, 5]
    """
    (a,) = operands("diff", a)
    if n == 0:
        return a
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n}")
    if not get_aval(a).ndim:
        raise ValueError("diff requires input that is at least one dimensional; got "
                         f"{get_aval(a).str_short()}")
    axis = canonical_axis(axis, get_aval(a).ndim)
    parts = [_as_part(x, a, axis) for x in (prepend, a, append) if x is not None]
    if len(parts) > 1:
        a = lax.concatenate(promote_dtypes(*parts), axis)
    for _ in range(n):
        a = _gaps(a, axis)
    return a


def _as_part(x: ArrayLike, a: ArrayLike, axis: int) -> Any:
    """`x`, a scalar made a slice of size 1 of the shape of `a`."""
    (x,) = operands("diff", x)
    if get_aval(x).ndim:
        return x
    shape = list(get_aval(a).shape)
    shape[axis] = 1
    return lax.broadcast_in_dim(x, shape, ())


@numpy_function
def ediff1d(ary: ArrayLike, to_end: ArrayLike | None = None, to_begin: ArrayLike | None = None
           ) -> Array:
    """The differences of neighbours in the flattened array.

    Args:
      ary: array.
      to_end, to_begin: values to put behind and before them.

    Returns:
      A one-dimensional array.

    Raises:
      TypeError: the array is boolean.

    >>> import pyjx as jax
    >>> jax.numpy.ediff1d(jax.numpy.array([1, 4, 9]), to_begin=0).tolist()
    [0, 3, 5]
    """
    (ary,) = operands("ediff1d", ary)
    if get_aval(ary).dtype == np.bool_:
        raise TypeError("ediff1d does not accept dtype bool, whose values have no differences; "
                        "diff tells whether neighbours differ")
    out = _gaps(lax.reshape(ary, (get_aval(ary).size,)), 0)
    dtype = get_aval(out).dtype
    parts = [None if x is None else convert(operands("ediff1d", x)[0], dtype)
             for x in (to_begin, to_end)]
    flat = [None if x is None else lax.reshape(x, (get_aval(x).size,)) for x in parts]
    kept = [x for x in (flat[0], out, flat[1]) if x is not None]
    return lax.concatenate(kept, 0) if len(kept) > 1 else out


def _spacings(varargs: Sequence[Any], axes: tuple[int, ...]) -> list[Any]:
    if not varargs or not axes:
        return [1.0] * len(axes)
    if len(varargs) == 1:
        return list(varargs) * len(axes)
    if len(varargs) != len(axes):
        raise TypeError(f"Invalid number of spacing arguments {len(varargs)} for axis={axes}")
    return list(varargs)


def _slope(f: Any, spacing: ArrayLike, axis: int) -> Any:
    """Central differences inside, one-sided ones at both ends."""
    shape = get_aval(f).shape
    size = shape[axis]
    if size < 2:
        raise ValueError("Shape of array too small to calculate a numerical gradient, at least 2 "
                         "elements are required.")
    first = ufuncs.subtract(_span(f, 1, 2, axis), _span(f, 0, 1, axis))
    last = ufuncs.subtract(_span(f, size - 1, size, axis), _span(f, size - 2, size - 1, axis))
    after, before = _span(f, 2, size, axis), _span(f, 0, size - 2, axis)
    (spacing,) = operands("gradient", spacing)
    if not get_aval(spacing).ndim:
        inner = ufuncs.multiply(ufuncs.subtract(after, before), 0.5)
        return lax.concatenate([ufuncs.divide(x, spacing) for x in (first, inner, last)], axis)
    if get_aval(spacing).ndim > 1:
        raise ValueError("gradient: Spacing arrays must be 1D arrays or scalars. Got shape "
                         f"{get_aval(spacing).shape}.")
    if get_aval(spacing).shape != (size,):
        raise ValueError("Spacing arrays must have the same length as the dimension along which "
                         "the gradient is calculated.")
    wide = [1] * len(shape)
    wide[axis] = size - 1
    steps = lax.reshape(_gaps(spacing, 0), wide)
    # f' = (a^2 (f_+ - f) + b^2 (f - f_-)) / (a b (a + b)) with a = x - x_-, b = x_+ - x.
    a, b = _span(steps, 0, size - 2, axis), _span(steps, 1, size - 1, axis)
    middle = _span(f, 1, size - 1, axis)
    up = ufuncs.multiply(ufuncs.square(a), ufuncs.subtract(after, middle))
    down = ufuncs.multiply(ufuncs.square(b), ufuncs.subtract(middle, before))
    scale = ufuncs.multiply(ufuncs.multiply(a, b), ufuncs.add(a, b))
    inner = ufuncs.divide(ufuncs.add(up, down), scale)
    return lax.concatenate([
        ufuncs.divide(first, _span(steps, 0, 1, axis)), inner,
        ufuncs.divide(last, _span(steps, size - 2, size - 1, axis))], axis)


@numpy_function(static_argnames=("axis", "edge_order"))
def gradient(f: Callable[..., Any], *varargs: Any, axis: AxisLike = None,
             edge_order: int | None = None) -> Any:
    """The derivative along axes, by central differences and one-sided ones at the ends.

    Args:
      f: array of samples.
      varargs: the spacing: none for 1, one number for all axes, or a number or an array of
        coordinates for each axis.
      axis: the axes; all by default.
      edge_order: not supported.

    Returns:
      One array, or a list of one for each axis.

    >>> import pyjx as jax
    >>> jax.numpy.gradient(jax.numpy.array([0.0, 1.0, 4.0])).tolist()
    [1.0, 2.0, 3.0]
    """
    if edge_order is not None:
        raise NotImplementedError("The 'edge_order' argument to jnp.gradient is not supported.")
    f, *spacings = promote_dtypes_inexact(*operands("gradient", f, *varargs))
    axes = canonical_axes(axis, get_aval(f).ndim)
    slopes = [_slope(f, h, i) for h, i in zip(_spacings(spacings, axes), axes, strict=True)]
    return slopes[0] if isinstance(axis, int) or len(slopes) == 1 else slopes


@numpy_function(static_argnames=("axis",))
@any_ranks
def trapezoid(y: ArrayLike, x: ArrayLike | None = None, dx: Any = 1.0, axis: int = -1) -> Array:
    """The integral along an axis by the trapezoidal rule.

    Args:
      y: array of samples.
      x: their places; `dx` apart by default.
      dx: a number, or an array that broadcasts with the spaces between samples.
      axis: the axis that is integrated along.

    Returns:
      A float or complex array without the axis.

    Raises:
      ValueError: `x` is a scalar.

    >>> import pyjx as jax
    >>> float(jax.numpy.trapezoid(jax.numpy.array([0.0, 2.0, 2.0])))
    3.0
    """
    if x is None:
        (y,) = promote_dtypes_inexact(*operands("trapezoid", y))
        y = strong(y)
        (axis,) = canonical_axes(axis, get_aval(y).ndim)
        size = get_aval(y).shape[axis]
        if type(size) is int and size != 1 and not np.ndim(dx):
            return _evenly_spaced(y, dx, axis)
    else:
        y, x = promote_dtypes_inexact(*operands("trapezoid", y, x))
        (axis,) = canonical_axes(axis, get_aval(y).ndim)
        here, places = get_aval(y).shape[axis], get_aval(x).shape
        if len(places) == 1 and places[0] not in (here, 2) and here != 2:
            raise TypeError(f"trapezoid: got {here} samples y along axis {axis} and {places[0]} "
                            "places x; there must be as many.")
        dx = _distances(x, axis, get_aval(y).ndim)
    size = get_aval(y).shape[axis]
    pairs = ufuncs.add(_span(y, min_dim(size, 1), size, axis),
                       _span(y, 0, max_dim(size - 1, 0), axis))
    areas = ufuncs.multiply(dx, pairs)  # of as many axes as `dx` has, which may be more
    return ufuncs.multiply(0.5, _sum(areas, axis + get_aval(areas).ndim - get_aval(y).ndim))


# Above how many samples a second pass over them takes longer than a branch.
_MANY = 1 << 12


def _evenly_spaced(y: ArrayLike, dx: ArrayLike, axis: int) -> Any:
    """The integral of samples that are `dx` apart: all of them, but half of those at the ends."""
    y, dx = promote_dtypes(y, dx)
    aval = get_aval(y)
    plain = aval.dtype in (np.float32, np.float64) and not any(entries_of(aval))
    many = plain and type(aval.size) is int and aval.size > _MANY
    return ufuncs.multiply(dx, _in_one_pass(axis)(y) if many else _with_half_ends(y, axis))


def _with_half_ends(y: ArrayLike, axis: int) -> Any:
    shape, dtype = get_aval(y).shape, get_aval(y).dtype
    place = lax.broadcasted_iota(np.int32, shape, axis)
    last = np.int32(max(shape[axis] - 1, 0))
    end = lax.bitwise_or(ufuncs.equal(place, np.int32(0)), ufuncs.equal(place, last))
    # halved before they are added, as large ones overflow; sums of some axes take products best
    weights = ufuncs.where(end, literal(0.5, dtype), literal(1.0, dtype))
    halved = ufuncs.multiply(y, weights) if len(shape) > 1 else \
        ufuncs.where(end, ufuncs.multiply(0.5, y), y)
    return _sum(halved, axis)


def _in_one_pass(axis: int) -> Callable[[Any], Any]:
    """`_with_half_ends` as a sum less half of the ends, which XLA's CPU compiler makes in one pass;
    the other is taken where sums overflow or are not finite."""
    def less_half_ends(y: Array) -> Any:
        total = lax.reduce_sum(y, (axis,))
        first, last = (lax.index_in_dim(y, i, axis, keepdims=False) for i in (0, -1))
        out = lax.sub(total, ufuncs.add(ufuncs.multiply(0.5, first), ufuncs.multiply(0.5, last)))
        finite = lax.is_finite(total)
        return lax.cond(lax.reduce_and(finite, range(get_aval(finite).ndim)), lambda: out,
                        lambda: lax.select(finite, out, _with_half_ends(y, axis)))

    of_batch = custom_vmap(less_half_ends)  # one branch for all
    of_batch.def_vmap(lambda size, batched, y: (_in_one_pass(axis + 1)(y), True))

    def integral(y: Any) -> Any:
        return _with_half_ends(y, axis)

    return lambda y: custom_derivatives.linear_call(
        lambda _, y: lax.platform_dependent(y, cpu=of_batch, default=integral),
        lambda _, ct: linear_transpose(integral, y)(ct)[0], (), y)


def _distances(x: ArrayLike, axis: int, ndim: int) -> Any:
    """How far places are apart along an axis of an array of `ndim` axes: a vector of places lies
    along it, others broadcast."""
    own = get_aval(x).ndim
    if not own:
        raise ValueError("trapezoid: x must be at least one-dimensional; got a scalar. The "
                         "distance of evenly spaced samples is dx.")
    if own == 1:
        return lax.expand_dims(_gaps(x, 0), range(1, ndim - axis))
    return _gaps(x, canonical_axis(axis - ndim, own))


@numpy_function(static_argnames=("axis",))
def unwrap(p: Any, discont: ArrayLike | None = None, axis: int = -1, period: ArrayLike = 2 * math.pi
          ) -> Array:
    """Angles along an axis with jumps of more than half a period taken back.

    Args:
      p: array of angles.
      discont: least jump to take back; `period / 2` by default.
      period: size of a turn.
      axis: the axis along which jumps are taken out.

    Returns:
      An array of the argument's shape, of a float dtype.

    >>> import pyjx as jax
    >>> jax.numpy.unwrap(jax.numpy.array([0, 3, 5, 1]), period=4).tolist()
    [0, -1, 1, 1]
    """
    (p,) = operands("unwrap", p)
    aval = get_aval(p)
    if dtypes.issubdtype(aval.dtype, np.complexfloating):
        raise ValueError("jnp.unwrap does not support complex inputs.")
    p, period = promote_dtypes(p, period)
    if aval.shape and aval.size == 0:
        return p
    p = convert(p, dtypes.default_float_dtype()) if get_aval(p).dtype == np.bool_ else p
    axis = canonical_axis(axis, get_aval(p).ndim)
    dtype = get_aval(p).dtype
    half = ufuncs.divide(period, 2) if dtypes.issubdtype(dtype, np.inexact) else \
        ufuncs.floor_divide(period, 2)
    jump = _gaps(p, axis)
    turned = ufuncs.subtract(ufuncs.mod(ufuncs.add(jump, half), period), half)
    at_edge = ufuncs.logical_and(ufuncs.equal(turned, ufuncs.negative(half)),
                                 ufuncs.greater(jump, 0))
    turned = ufuncs.where(at_edge, half, turned)
    least = half if discont is None else discont
    shift = ufuncs.where(ufuncs.less(ufuncs.absolute(jump), least), 0,
                         ufuncs.subtract(turned, jump))
    size = get_aval(p).shape[axis]
    rest = ufuncs.add(_span(p, 1, size, axis), lax.cumsum(convert(shift, dtype), axis))
    return lax.concatenate([_span(p, 0, 1, axis), convert(rest, dtype)], axis)


@numpy_function(static_argnames=("period",))
def interp(x: ArrayLike, xp: ArrayLike, fp: ArrayLike, left: Any = None, right: Any = None,
           period: ArrayLike | None = None) -> Array:
    """Piecewise linear interpolation.

    Args:
      x: array of places.
      xp, fp: one-dimensional arrays: places in ascending order, and the values there.
      left, right: values below and above all of `xp`; the values at the ends by default. Also
        "extrapolate".
      period: period of `x` and `xp`, which then need no order.

    Returns:
      A float array of the shape of `x`.

    Raises:
      ValueError: `xp` and `fp` are not one-dimensional and of one size, or the period is 0.

    >>> import pyjx as jax
    >>> float(jax.numpy.interp(1.5, jax.numpy.array([1.0, 2.0]), jax.numpy.array([0.0, 4.0])))
    2.0
    """
    return interpolated(x, xp, fp, left, right, period)


def interpolated(x: ArrayLike, xp: Any, fp: ArrayLike, left: ArrayLike, right: ArrayLike,
                 period: Any) -> Any:
    x, xp, fp = operands("interp", x, xp, fp)
    if get_aval(xp).shape != get_aval(fp).shape or get_aval(xp).ndim != 1:
        raise ValueError("xp and fp must be one-dimensional arrays of equal size")
    x, xp = promote_dtypes_inexact(x, xp)
    (fp,) = promote_dtypes_inexact(fp)
    if get_aval(x).dtype in dtypes.complex_dtypes:
        raise ValueError("jnp.interp: complex x values not supported.")
    if period is not None:
        x, xp, fp = _one_period(x, xp, fp, period)
    dtype = get_aval(x).dtype
    size = get_aval(xp).shape[0]
    place = body_of(searchsorted)(xp, x, side="right")
    place = ufuncs.clip(place, 1, max(size - 1, 1))
    before = ufuncs.subtract(place, 1)

    def at(values: ArrayLike, index: ArrayLike) -> Any:
        return jnp.indexing.take(values, index, axis=0, mode="clip")

    rise = ufuncs.subtract(at(fp, place), at(fp, before))
    run = ufuncs.subtract(at(xp, place), at(xp, before))
    flat = lax.le(lax.abs(run), literal(float(np.spacing(dtypes.finfo(dtype).eps)), dtype))
    share = ufuncs.divide(ufuncs.subtract(x, at(xp, before)), ufuncs.where(flat, 1, run))
    low = at(fp, before)
    out = ufuncs.where(flat, low, ufuncs.add(low, ufuncs.multiply(share, rise)))
    if period is None:
        first, last = (lax.squeeze(lax.slice_in_dim(xp, i, i + 1), (0,)) for i in (0, size - 1))
        for side, value, outside, end in (
                ("left", left, ufuncs.less(x, first), 0),
                ("right", right, ufuncs.greater(x, last), size - 1)):
            if isinstance(value, str):
                if value != "extrapolate":
                    raise ValueError(f"the only valid string value of `{side}` is 'extrapolate', "
                                     f"but got: {value!r}")
                continue
            edge = at(fp, scalar_constant(end, np.int32)) if value is None else value
            out = ufuncs.where(outside, edge, out)
    return out


def _one_period(x: ArrayLike, xp: ArrayLike, fp: ArrayLike, period: Array) -> tuple[Any, Any, Any]:
    """All places brought into one period; the points around its ends are added."""
    if np.ndim(period):
        raise ValueError(f"interp: period must be a scalar; got {period}")
    if is_concrete(period) and period == 0:
        raise ValueError("period must be a non-zero value")
    period = ufuncs.abs(period)
    x, xp = ufuncs.remainder(x, period), ufuncs.remainder(xp, period)
    xp, fp = lax.sort((xp, fp), dimension=0, num_keys=1)
    n = get_aval(xp).shape[0]
    xp = lax.concatenate([ufuncs.subtract(_span(xp, n - 1, n, 0), period), xp,
                          ufuncs.add(_span(xp, 0, 1, 0), period)], 0)
    fp = lax.concatenate([_span(fp, n - 1, n, 0), fp, _span(fp, 0, 1, 0)], 0)
    return x, xp, fp


# -- convolution -----------------------------------------------------------------------------------


def _convolved(name: str, a: ArrayLike, v: ArrayLike, mode: str, precision: PrecisionLike,
               preferred: DTypeLike | None, turned: bool = False) -> Any:
    """The sums of a[i + k] * v[i] over i, for the k that `mode` chooses; `turned` says that they
    are the result from its end."""
    # Sums of integers are floats, unless their dtype is given.
    a, v = (promote_dtypes_inexact if preferred is None else promote_dtypes)(a, v)
    m, n = get_aval(a).shape[0], get_aval(v).shape[0]
    before = n // 2 if not turned else n - n // 2 - 1
    padding = {"valid": [(0, 0)], "same": [(before, n - before - 1)],
               "full": [(n - 1, n - 1)]}[mode]
    if preferred is not None:
        preferred = dtypes.check_and_canonicalize_user_dtype(preferred, name)
    out = lax.conv_general_dilated(lax.reshape(a, (1, 1, m)), lax.reshape(v, (1, 1, n)), (1,),
                                   padding, precision=precision, preferred_element_type=preferred)
    return lax.reshape(out, (get_aval(out).shape[-1],))


def _checked(name: str, a: ArrayLike, v: ArrayLike, mode: str) -> tuple[Any, Any]:
    a, v = operands(name, a, v)
    if get_aval(a).ndim != 1 or get_aval(v).ndim != 1:
        raise ValueError(f"{name}() only support 1-dimensional inputs.")
    if not get_aval(a).size or not get_aval(v).size:
        raise ValueError(f"{name}: inputs cannot be empty, got shapes {get_aval(a).shape} and "
                         f"{get_aval(v).shape}.")
    check_mode(mode)
    return a, v


def check_mode(mode: str) -> None:
    """Raise ValueError unless a convolution has this mode."""
    if mode not in ("full", "same", "valid"):
        raise ValueError(f"mode must be one of ['full', 'same', 'valid'], got {mode!r}")


_conv_options = ("mode", "precision", "preferred_element_type")


@numpy_function(static_argnames=_conv_options)
def convolve(a: ArrayLike, v: ArrayLike, mode: str = "full", *, precision: PrecisionLike = None,
             preferred_element_type: DTypeLike | None = None) -> Array:
    """The convolution of two sequences: the sums of a[k - i] * v[i] over i.

    Args:
      a, v: one-dimensional arrays.
      mode: "full" for all k with a product, "valid" for those where the shorter lies within the
        longer, "same" for as many as the longer has, in the middle.
      precision: what accelerators compute with: None, a `lax.Precision` or its name, such as
        "highest".
      preferred_element_type: the dtype that is summed in, and that of the result.

    Returns:
      A one-dimensional array of the dtype to which the arguments promote, or a float one of
      integers: of n and m elements, "full" has n + m - 1, "same" the larger number, "valid" the
      difference and one.

    >>> import pyjx as jax
    >>> jax.numpy.convolve(jax.numpy.array([1.0, 2.0]), jax.numpy.array([1.0, 1.0])).tolist()
    [1.0, 3.0, 2.0]
    """
    a, v = _checked("convolve", a, v, mode)
    if get_aval(a).size < get_aval(v).size:
        a, v = v, a
    return _convolved("convolve", a, lax.rev(v, (0,)), mode, precision, preferred_element_type)


@numpy_function(static_argnames=_conv_options)
def correlate(a: ArrayLike, v: ArrayLike, mode: str = "valid", *, precision: PrecisionLike = None,
              preferred_element_type: DTypeLike | None = None) -> Array:
    """The correlation of two sequences: the sums of a[i + k] * conj(v[i]) over i.

    Args are those of `convolve`.

    Args:
      a, v: one-dimensional arrays.
      mode: "valid", "same" or "full", as for `convolve`; the default is another one than there.
      precision: what accelerators compute with: None, a `lax.Precision` or its name.
      preferred_element_type: the dtype that is summed in, and that of the result.

    Returns:
      A one-dimensional array of the dtype to which the arguments promote, or a float one of
      integers: of n and m elements, "full" has n + m - 1, "same" the larger number, "valid" the
      difference and one.

    >>> import pyjx as jax
    >>> jax.numpy.correlate(jax.numpy.array([1.0, 2.0]), jax.numpy.array([1.0, 1.0])).tolist()
    [3.0]
    """
    a, v = _checked("correlate", a, v, mode)
    v = lax.conj(v) if get_aval(v).dtype in dtypes.complex_dtypes else v
    turned = get_aval(a).size < get_aval(v).size
    if turned:
        a, v = lax.rev(v, (0,)), lax.rev(a, (0,))
    return _convolved("correlate", a, v, mode, precision, preferred_element_type, turned)
