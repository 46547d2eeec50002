"""`pad`, in all its modes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import pyjx
from pyjx import lax
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import ShapedArray, SymbolicDim, get_aval
from pyjx.core.integers import index
from pyjx.core.trace import concrete_or_error
from pyjx.lax.elementwise import stretch
from pyjx.numpy import reductions, rounding, ufuncs
from pyjx.numpy.operands import numpy_function
from pyjx.numpy.promotion import convert, operands
from pyjx.numpy.sorting import median
from pyjx.runtime.operations import body_of

Pairs = tuple[tuple[int, int], ...]

# The keyword arguments of each mode.
_allowed: dict[str, tuple[str, ...]] = {
    "constant": ("constant_values",), "empty": (), "edge": (), "wrap": (),
    "linear_ramp": ("end_values",), "maximum": ("stat_length",), "mean": ("stat_length",),
    "median": ("stat_length",), "minimum": ("stat_length",), "reflect": ("reflect_type",),
    "symmetric": ("reflect_type",),
}


def _pairs(what: str, value: Any, ndim: int) -> Any:
    """A (before, after) pair for each axis, from one of the short forms."""
    nested = [list(p) if _is_sequence(p) else p for p in value] if _is_sequence(value) else value
    shape: tuple[int, ...] = ()
    if isinstance(nested, list):
        inner = [len(p) for p in nested if isinstance(p, list)]
        shape = (len(nested), inner[0]) if inner else (len(nested),)
    if shape == ():
        return ((nested, nested),) * ndim
    if shape == (1,):
        return ((nested[0], nested[0]),) * ndim
    if shape == (2,):
        return (tuple(nested),) * ndim
    if shape == (1, 2):
        return (tuple(nested[0]),) * ndim
    if shape == (ndim, 2):
        return tuple([tuple(p) for p in nested])
    valid = f"({ndim}, 2), (1, 2), (2,), (1,), or ()"
    raise ValueError(f"jnp.pad: {what} has unsupported shape {shape}. Valid shapes are {valid}.")


def _is_sequence(x: object) -> bool:
    return isinstance(x, (tuple, list)) or (hasattr(x, "ndim") and x.ndim > 0)


def _widths(pad_width: Any, ndim: int) -> Pairs:
    if type(pad_width) is tuple and len(pad_width) == 2:
        before, after = pad_width
        if type(before) is type(after) is int and before >= 0 and after >= 0:
            return (pad_width,) * ndim  # the most frequent case, without NumPy's array of it
    if isinstance(pad_width, dict):
        raise TypeError("`pad_width` must be of integral type.")
    try:
        flat = np.asarray(concrete_or_error(None, pad_width, "pad_width argument of jnp.pad"))
    except ValueError:
        raise TypeError(f"`pad_width` entries must be the same shape: {pad_width}") from None
    symbolic = flat.dtype == object and any([isinstance(n, SymbolicDim) for n in flat.flat])
    if not symbolic and (flat.dtype == object or (
            flat.size and not np.issubdtype(flat.dtype, np.integer))):
        raise TypeError("`pad_width` must be of integral type.")
    pairs = _pairs(f"pad_width with nd={ndim}", flat.tolist(), ndim)
    if any(n < 0 for pair in pairs for n in pair):
        raise ValueError("index can't contain negative values")
    return tuple([(index(a), index(b)) for a, b in pairs])


def _part(x: ArrayLike, start: int, stop: int, axis: int) -> Any:
    return lax.slice_in_dim(x, start, stop, axis=axis)


def _surrounded(x: ArrayLike, before: ArrayLike, after: ArrayLike, axis: int) -> Any:
    return lax.concatenate([before, x, after], axis)


def _repeated(edge: ArrayLike, count: int, axis: int) -> Any:
    shape = list(get_aval(edge).shape)
    shape[axis] = count
    return stretch(edge, tuple(shape)) if count != 1 else edge


# -- the modes -------------------------------------------------------------------------------------


def _constant(x: ArrayLike, widths: Pairs, values: Any) -> Any:
    aval = get_aval(x)
    if _is_sequence(values) and all(_is_sequence(v) and len(v) == 1 for v in values):
        values = [(v[0], v[0]) for v in values]  # one for each axis
    values = _pairs("constant_values", values, aval.ndim) if aval.ndim else ()
    plain = [v for pair in values for v in pair]
    first = plain[0] if plain else 0
    if all(v is first for v in plain):
        config = [(a, b, 0) for a, b in widths]
        return lax.pad(x, convert(operands("pad", first)[0], aval.dtype, aval.weak_type), config)
    for axis, ((a, b), (low, high)) in enumerate(zip(widths, values, strict=True)):
        for value, pair in ((low, (a, 0)), (high, (0, b))):
            config = [(0, 0, 0)] * aval.ndim
            config[axis] = (*pair, 0)
            x = lax.pad(x, convert(operands("pad", value)[0], aval.dtype, aval.weak_type), config)
    return x


def _edge(x: ArrayLike, widths: Pairs) -> Any:
    for axis, (a, b) in enumerate(widths):
        n = get_aval(x).shape[axis]
        if a or b:
            x = _surrounded(x, _repeated(_part(x, 0, 1, axis), a, axis),
                            _repeated(_part(x, n - 1, n, axis), b, axis), axis)
    return x


def _wrap(x: ArrayLike, widths: Pairs) -> Any:
    for axis, (a, b) in enumerate(widths):
        n = get_aval(x).shape[axis]
        if a or b:
            before = _part(x, n - a % n, n, axis)
            after = _part(x, 0, b % n, axis)
            x = lax.concatenate([before, *[x] * int(a // n + 1 + b // n), after], axis)
    return x


def _mirrored(x: ArrayLike, widths: Pairs, skip_edge: bool, odd: bool) -> Any:
    """Reflection; each round adds as much as there is, until all is filled."""
    for axis, (a, b) in enumerate(widths):
        n = get_aval(x).shape[axis]
        if n == 1 and skip_edge:
            x = _surrounded(x, _repeated(x, a, axis), _repeated(x, b, axis), axis)
            continue
        while a or b:
            size = get_aval(x).shape[axis]
            most = size - skip_edge
            left, right = min(a, most), min(b, most)
            before = lax.rev(_part(x, int(skip_edge), skip_edge + left, axis), (axis,))
            after = lax.rev(_part(x, size - skip_edge - right, size - skip_edge, axis), (axis,))
            if odd:
                before = ufuncs.subtract(ufuncs.multiply(_part(x, 0, 1, axis), 2), before)
                after = ufuncs.subtract(ufuncs.multiply(_part(x, size - 1, size, axis), 2), after)
            x = _surrounded(x, before, after, axis)
            a, b = a - left, b - right
    return x


def _linear_ramp(x: ArrayLike, widths: Pairs, values: Any) -> Any:
    x = ufuncs.as_array(x)
    aval = get_aval(x)
    values = _pairs(f"end_values with nd={aval.ndim}", values, aval.ndim)
    for axis, ((a, b), (low, high)) in enumerate(zip(widths, values, strict=True)):
        n = get_aval(x).shape[axis]
        before = _ramp(_part(x, 0, 1, axis), low, a, axis)
        after = lax.rev(_ramp(_part(x, n - 1, n, axis), high, b, axis), (axis,))
        x = _surrounded(x, before, after, axis)
    return x


def _ramp(edge: ArrayLike, end: ArrayLike, count: int, axis: int) -> Any:
    """`count` values from `end` towards `edge`, which is left out."""
    aval = get_aval(edge)
    shape = (*aval.shape[:axis], count, *aval.shape[axis + 1:])
    dtype = dtypes.to_inexact_dtype(aval.dtype)
    step = lax.broadcasted_iota(dtype, shape, axis)
    share = ufuncs.divide(step, max(count, 1))
    (end,) = operands("pad", end)
    gap = ufuncs.subtract(convert(edge, dtype), convert(end, dtype))
    out = ufuncs.add(ufuncs.multiply(gap, share), convert(end, dtype))
    if dtypes.issubdtype(aval.dtype, np.integer):
        out = lax.floor(out) if dtypes.issubdtype(aval.dtype, np.unsignedinteger) else out
    return convert(out, aval.dtype, aval.weak_type)


def _statistic(x: ArrayLike, widths: Pairs, stat: Callable[..., Any], length: object) -> Any:
    aval = get_aval(x)
    lengths = None if length is None else _pairs(f"stat_length with nd={aval.ndim}", length,
                                                 aval.ndim)
    for axis, (a, b) in enumerate(widths):
        n = get_aval(x).shape[axis]
        if lengths is None:
            first = last = n
        else:
            first, last = (min(int(k), n) for k in lengths[axis])
            if not first or not last:
                raise ValueError("stat_length of 0 yields no value for padding")
        before, after = (
            _rounded(stat(part, axis=axis, keepdims=True), aval)
            for part in (_part(x, 0, first, axis), _part(x, n - last, n, axis)))
        x = _surrounded(x, _repeated(before, a, axis), _repeated(after, b, axis), axis)
    return x


def _rounded(x: ArrayLike, aval: ShapedArray) -> Any:
    """The values in the type of an array; integers are the nearest ones."""
    if aval.dtype in dtypes.integer_dtypes and get_aval(x).dtype in dtypes.floating_dtypes:
        x = rounding.round(x)
    return convert(x, aval.dtype, aval.weak_type)


_stats: dict[str, Callable[..., Any]] = {
    "maximum": body_of(reductions.max), "minimum": body_of(reductions.min),
    "mean": body_of(reductions.mean), "median": body_of(median),
}


def _by_function(x: ArrayLike, widths: Pairs, function: Callable[..., Any], options: dict[str, Any]
                 ) -> Any:
    """A user's function, applied to each row along each axis of the array padded with 0."""
    x = _constant(x, widths, 0)
    for axis, pair in enumerate(widths):
        mapped: Callable[..., Any] = lambda row, pair=pair, axis=axis: function(  # noqa: E731
            row, pair, axis, options)
        for other in range(get_aval(x).ndim):
            if other != axis:  # the axes before it are mapped inside, so it has its own place
                mapped = pyjx.vmap(mapped, in_axes=other, out_axes=other)
        x = mapped(x)
    return x


def _padded(array: ArrayLike, widths: Pairs, mode: str, options: dict[str, Any]) -> Any:
    if mode in ("constant", "empty"):
        return _constant(array, widths, options.get("constant_values", 0))
    if mode == "linear_ramp":
        return _linear_ramp(array, widths, options.get("end_values", 0))
    if mode in _stats:
        return _statistic(array, widths, _stats[mode], options.get("stat_length"))
    if any([any(pair) and not n for n, pair in zip(get_aval(array).shape, widths, strict=True)]):
        raise ValueError(f"Cannot apply '{mode}' padding to empty axis")
    if mode == "edge":
        return _edge(array, widths)
    if mode == "wrap":
        return _wrap(array, widths)
    odd = options.get("reflect_type", "even") == "odd"
    return _mirrored(array, widths, mode == "reflect", odd)


@numpy_function(static_argnames=("widths", "mode", "stat_length", "reflect_type"))
def _pad(array: ArrayLike, widths: Pairs, mode: str, **options: Any) -> Any:
    return _padded(array, widths, mode, options)


def pad(array: ArrayLike, pad_width: int | Sequence[int | Sequence[int]] | np.ndarray,
        mode: str | Callable[..., Any] = "constant", **kwargs: Any) -> Array:
    """The array with a border.

    Args:
      array: array.
      pad_width: how many elements to add before and behind, in each axis: a pair for each axis,
        one pair for all axes, or one int.
      mode: what to add: "constant" (`constant_values`, 0 by default), "empty" (zeros), "edge" (the
        edge again), "wrap" (the other end), "reflect" and "symmetric" (a mirror image without and
        with the edge; `reflect_type="odd"` mirrors the values too), "linear_ramp" (towards
        `end_values`), "maximum", "minimum", "mean" and "median" (of the `stat_length` elements at
        the end). Or a function `(row, widths, axis, kwargs) -> row` of rows padded with zeros.
      **kwargs: what the mode takes: `constant_values`, `stat_length`, `end_values` or
        `reflect_type`; those of a function go to it.

    Returns:
      An array of the dtype of the argument, whose axes are longer by the widths.

    Raises:
      ValueError: `pad_width` is negative or does not fit, or an axis to continue is empty.
      NotImplementedError: an unknown mode.

    >>> import pyjx as jax
    >>> jax.numpy.pad(jax.numpy.array([1, 2]), (1, 2), mode="edge").tolist()
    [1, 1, 2, 2, 2]
    """
    (array,) = operands("pad", array)
    widths = _widths(pad_width, get_aval(array).ndim)
    if callable(mode):
        return _by_function(array, widths, mode, kwargs)
    if mode not in _allowed:
        raise NotImplementedError(f"Unimplemented padding mode '{mode}' for np.pad. The modes are "
                                  f"{', '.join(map(repr, _allowed))}, or a function.")
    unsupported = set(kwargs) - set(_allowed[mode])
    if unsupported:
        modes = [repr(x) for x, names in _allowed.items() if unsupported <= {*names}]
        raise ValueError(
            f"unsupported keyword arguments for mode '{mode}': {unsupported}. It takes "
            f"{', '.join(map(repr, sorted(_allowed[mode]))) or 'none'}."
            + f" The modes that take it are {', '.join(modes)}." * bool(modes))
    if kwargs.get("reflect_type", "even") not in ("even", "odd"):
        raise AssertionError("pad: reflect_type must be 'even' or 'odd', got "
                             f"{kwargs['reflect_type']!r}")
    return _pad(array, widths, mode, **kwargs)
