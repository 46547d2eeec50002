"""Copies of arrays with elements put in, taken out, or replaced, and functions that choose, for
each element, one of several values.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from pyjx import lax
from pyjx import numpy as jnp
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike, AxisLike
from pyjx.core.avals import get_aval
from pyjx.core.integers import max_dim
from pyjx.core.trace import Tracer, concrete_or_error
from pyjx.lax.common import broadcast_shapes
from pyjx.lax.elementwise import stretch
from pyjx.numpy.operands import (
    along,
    as_bool,
    canonical_axes,
    dtype_of,
    numpy_function,
    refuse_in_place,
)
from pyjx.numpy.patterns import roomy
from pyjx.numpy.promotion import (
    as_operand,
    check_arraylike,
    convert,
    no_out,
    operands,
    promote_dtypes,
)
from pyjx.numpy.vectorization import with_arguments
from pyjx.runtime.operations import op_jit
from pyjx.runtime.resharding import placed

# -- delete and insert -----------------------------------------------------------------------------


def delete(arr: ArrayLike, obj: Any, axis: int | None = None, *, assume_unique_indices: bool = False
           ) -> Array:
    """The array without the slices at some indices along an axis.

    Args:
      arr: array.
      obj: an integer, a slice, or an array of integers or of booleans, one for each slice. Its
        values must be known while tracing, but for `assume_unique_indices`.
      axis: the axis; by default the flat array is meant.
      assume_unique_indices: whether integers are known to differ, so that they may be traced.

    Returns:
      An array with fewer elements along the axis; without an axis a one-dimensional one.

    Raises:
      ValueError: `obj` holds something else.
      IndexError: an index is out of bounds.

    >>> import pyjx as jax
    >>> jax.numpy.delete(jax.numpy.arange(5), jax.numpy.array([1, 3])).tolist()
    [0, 2, 4]
    """
    if isinstance(obj, slice):
        (arr,) = operands("delete", arr)
    else:
        arr, obj = operands("delete", arr, obj)
    arr, axis = along(arr, axis)
    size = get_aval(arr).shape[axis]
    if isinstance(obj, slice):
        return _without(arr, np.arange(size)[obj], axis)
    obj = int(obj) if type(obj) is bool else obj  # of Python's, it is an index
    dtype = dtype_of(obj)
    if dtype != np.bool_ and not dtypes.issubdtype(dtype, np.integer):
        raise ValueError(f"np.delete(arr, obj): got obj.dtype={dtype}; must be integer or bool.")
    if assume_unique_indices and dtype != np.bool_ and isinstance(obj, Tracer):
        return _without_traced(arr, jnp.ravel(obj), axis)
    known = concrete_or_error(np.asarray, obj, "'obj' array argument of jnp.delete()"
                              + ". Integers that all differ may be traced with "
                              "assume_unique_indices=True." * (dtype != np.bool_))
    if dtype == np.bool_:
        if known.shape != (size,):
            raise ValueError("np.delete(arr, obj): for boolean indices, obj must be "
                             "one-dimensional with length matching specified axis.")
        return _without(arr, np.flatnonzero(known), axis)
    for i in known.ravel().tolist():
        if not -size <= i < size:
            raise np.exceptions.AxisError(
                f"delete: index {i} is out of bounds for axis {axis} with size {size}")
    if type(size) is not int and known.size == 1:
        return _without_one(arr, int(known.reshape(())), axis)
    return _without(arr, known.ravel(), axis)


def _without_one(arr: ArrayLike, place: int, axis: int) -> Any:
    """The slices before and behind one, along a symbolic axis."""
    size = get_aval(arr).shape[axis]
    place = place + size if place < 0 else place
    return lax.concatenate([lax.slice_in_dim(arr, 0, place, axis=axis),
                            lax.slice_in_dim(arr, place + 1, size, axis=axis)], axis)


def _without(arr: ArrayLike, places: np.ndarray, axis: int) -> Any:
    """The runs of slices between those at known places, joined."""
    size = get_aval(arr).shape[axis]
    kept = np.ones(size, bool)
    kept[places] = False
    if kept.all():
        return jnp.asarray(arr)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], kept, [False]])))
    if len(edges) > 16:  # many runs
        return jnp.take(arr, np.flatnonzero(kept), axis)
    return _runs(arr, tuple(edges.tolist()), axis)


@op_jit(static_argnames=("edges", "axis"))
def _runs(arr: ArrayLike, edges: tuple[int, ...], axis: int) -> Any:
    if not edges:
        return lax.slice_in_dim(arr, 0, 0, axis=axis)
    return lax.concatenate([lax.slice_in_dim(arr, edges[i], edges[i + 1], axis=axis)
                            for i in range(0, len(edges), 2)], axis)


@op_jit(static_argnames=("axis",))
def _without_traced(arr: ArrayLike, places: Any, axis: int) -> Any:
    """Where the sorted places are p, the slice i of the result is i + (how many p_j - j <= i)."""
    size, count = get_aval(arr).shape[axis], get_aval(places).shape[0]
    places = _as_index(places)
    places = jnp.sort(jnp.where(places < 0, places + size, places)) - jnp.arange(count)
    i = jnp.arange(max_dim(size - count, 0))
    return jnp.take(arr, i + jnp.sum(i[:, None] >= places[None, :], 1), axis)


def _as_index(places: ArrayLike) -> Any:
    """Integers in the dtype in which places are computed, whatever the promotion of dtypes."""
    return convert(places, dtypes.default_int_dtype())


# So many places are sooner treated one by one, each as an operation on the whole array.
_FEW = 8


def insert(arr: ArrayLike, obj: Any, values: ArrayLike, axis: int | None = None) -> Array:
    """The array with slices put in along an axis, each before the one at an index.

    Args:
      arr: array.
      obj: an integer, a slice, or an array of integers of rank 1; negative ones count from the
        end, and what is beyond it means the end.
      values: what is put in, cast to the dtype of the array and broadcast to its shape.
      axis: the axis; by default the flat array is meant.

    Returns:
      An array with more elements along the axis; without an axis a one-dimensional one.

    Raises:
      ValueError: `obj` is none of these.

    >>> import pyjx as jax
    >>> jax.numpy.insert(jax.numpy.arange(4), 2, 9).tolist()
    [0, 1, 9, 2, 3]
    """
    if isinstance(obj, slice):
        arr, values = operands("insert", arr, values)
    else:
        arr, obj, values = operands("insert", arr, obj, values)
        if get_aval(obj).shape == (0,):  # of whatever dtype: such arrays are of floats by default
            obj = np.zeros(0, int)
        if not dtypes.issubdtype(dtype_of(obj), np.integer):
            raise ValueError(f"jnp.insert(): index array must be integer typed; got {obj}")
        if get_aval(obj).ndim > 1:
            raise ValueError("jnp.insert(): obj must be a slice, a one-dimensional array, or a "
                             f"scalar; got {obj}")
    arr, axis = along(arr, axis)
    size = get_aval(arr).shape[axis]
    if isinstance(obj, slice):
        obj = np.arange(*obj.indices(size))
    known = type(size) is int and not isinstance(obj, Tracer)
    inside = isinstance(arr, Tracer) or isinstance(values, Tracer)
    if known and (inside or not isinstance(obj, Array)):  # eager calls wait for no device
        obj = _places_within(np.asarray(obj), size, np)
    if known and inside:
        return _inserted_at(arr, obj, _new_slices(arr, obj, values, axis), axis)
    return _inserted(arr, obj, values, axis)  # for eager calls one program for all places


def _places_within(places: Array | np.ndarray, size: int, module: ModuleType) -> Any:
    """Each place as the number, from 0 to the size, of the slice before which it is.

    The `module` is NumPy's or ours. Integers as narrow as the places need not hold the size.
    """
    wide = places.astype(np.int64) if module is np else _as_index(places)
    unsigned = dtypes.issubdtype(dtype_of(places), np.unsignedinteger)
    # What is negative of unsigned ones did not fit: it is beyond the end.
    return module.clip(module.where(wide < 0, size if unsigned else wide + size, wide), 0, size)


def _new_slices(arr: ArrayLike, places: Any, values: ArrayLike, axis: int) -> Any:
    """The values as slices of the array along the axis, as many as are put in, lying as it does.

    Raises:
      ValueError: they do not fit the array, or are more or fewer than the places.
    """
    aval, at = get_aval(arr), get_aval(places)
    values = convert(values, aval.dtype, aval.weak_type)
    shape = get_aval(values).shape
    if len(shape) > aval.ndim:
        raise ValueError(f"jnp.insert(): values must have at most the {aval.ndim} axes of the "
                         f"array; got shape {shape}")
    values = jnp.expand_dims(values, tuple(range(aval.ndim - len(shape))))
    if not at.ndim:  # all of `values` go to one place
        values = jnp.moveaxis(values, 0, axis)
    given = get_aval(values).shape[axis]
    count = given if at.size == 1 else at.size
    if given not in (1, count):
        raise ValueError(f"jnp.insert(): Incompatible shapes for broadcasting: there are {count} "
                         f"places in obj, and {given} slices in values. Pass as many, or one.")
    values = jnp.broadcast_to(values, (*aval.shape[:axis], count, *aval.shape[axis + 1:]))
    return placed(values, aval.place.sharding)


def _inserted_at(arr: ArrayLike, places: np.ndarray, values: Any, axis: int) -> Any:
    """The new slices at known places: few parts are joined, many are gathered."""
    size, count = get_aval(arr).shape[axis], get_aval(values).shape[axis]
    if places.size == 1:
        return _joined(arr, values, (int(places.reshape(())),), (0, count), axis)
    if count > _FEW:
        order = np.argsort(np.concatenate([2 * np.arange(size) + 1, 2 * places]), kind="stable")
        return _reordered(arr, values, order, axis)
    order = np.argsort(places, kind="stable")
    if (np.diff(order) != 1).any():
        values = jnp.take(values, order, axis)
    return _joined(arr, values, tuple(places[order].tolist()), tuple(range(count + 1)), axis)


def _joined(arr: ArrayLike, values: ArrayLike, places: tuple[int, ...], edges: tuple[int, ...],
            axis: int) -> Any:
    """Parts of the values, from edge to edge, each before the slice of the array at its place."""
    starts, ends = (0, *places), (*places, get_aval(arr).shape[axis])
    parts = []
    for k, (start, end) in enumerate(zip(starts, ends, strict=True)):
        if k:
            parts.append(lax.slice_in_dim(values, edges[k - 1], edges[k], axis=axis))
        if start < end:
            parts.append(lax.slice_in_dim(arr, start, end, axis=axis))
    return lax.concatenate(parts or [arr], axis)


def _reordered(arr: ArrayLike, values: ArrayLike, order: ArrayLike, axis: int) -> Any:
    """The slices of the array and the new ones behind them, in an order."""
    index = (slice(None),) * axis + (order,)
    return lax.concatenate([arr, values], axis).at[index].get(
        mode="promise_in_bounds", unique_indices=True, wrap_negative_indices=False)


# What is known of the places of new slices in the result.
_SORTED: Any = {"unique_indices": True, "indices_are_sorted": True, "mode": "promise_in_bounds"}


@op_jit(static_argnames=("axis",))
def _inserted(arr: Any, places: Any, values: ArrayLike, axis: int) -> Any:
    """The new slices at places that are found by the program."""
    values = _new_slices(arr, places, values, axis)
    size, count = get_aval(arr).shape[axis], get_aval(values).shape[axis]
    places = _places_within(places, size, jnp)
    if get_aval(places).size == 1:  # sooner chosen than gathered
        place = jnp.reshape(places, ())
        along = (size + count, *[1] * (get_aval(arr).ndim - axis - 1))
        before = jnp.reshape(jnp.arange(size + count), along) < place
        out = jnp.where(before, lax.concatenate([arr, values], axis),
                        lax.concatenate([values, arr], axis))
        out = lax.dynamic_update_slice_in_dim(out, values, place, axis)
        return convert(out, dtype_of(arr), get_aval(arr).weak_type)
    turn = jnp.argsort(places, stable=True)
    places = places[turn] + jnp.arange(count)  # in the result
    number = jnp.arange(size + count)
    if type(count) is int and count <= _FEW:  # sooner compared with each than added up
        before = jnp.sum(number[:, None] > places, 1, dtype_of(places))
    else:
        before = jnp.cumsum(jnp.zeros_like(number).at[places].set(1, **_SORTED))
    return _reordered(arr, values, (number - before).at[places].set(size + turn, **_SORTED), axis)


# -- replacement -----------------------------------------------------------------------------------


@op_jit(static_argnames=("wrap", "inplace"))
def fill_diagonal(a: ArrayLike, val: ArrayLike, wrap: bool = False, *, inplace: bool = True
                 ) -> Array:
    """A copy of the array with other elements on its diagonal.

    Args:
      a: array of rank 2, or of more axes of one size.
      val: the elements, which are repeated where they are too few.
      wrap: must be False.
      inplace: must be False, as arrays do not change.

    Returns:
      A new array: the argument stays as it is, unlike with NumPy.

    Raises:
      NotImplementedError: `inplace` or `wrap` is not False.
      ValueError: the array has another shape.

    >>> import pyjx as jax
    >>> jax.numpy.fill_diagonal(jax.numpy.zeros((2, 2)), 1, inplace=False).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    if inplace:
        raise NotImplementedError("JAX arrays are immutable, must use inplace=False")
    if wrap:
        raise NotImplementedError("wrap=True is not implemented, must use wrap=False")
    a, val = operands("fill_diagonal", a, val)
    a = jnp.asarray(a)
    shape = get_aval(a).shape
    if len(shape) < 2:
        raise ValueError("array must be at least 2-d")
    if len(shape) > 2 and len(set(shape)) > 1:
        raise ValueError("All dimensions of input must be of equal length")
    n = min(shape)
    if get_aval(val).ndim:
        if not get_aval(val).size:
            raise ValueError("fill_diagonal: val must not be empty")
        val = jnp.resize(val, n)
    return a.at[(jnp.arange(n),) * len(shape)].set(val)


@op_jit(static_argnames=("inplace",))
def place(arr: ArrayLike, mask: ArrayLike, vals: ArrayLike, *, inplace: bool = True) -> Array:
    """A copy of the array whose elements where a mask holds are given ones, one after the other.

    Args:
      arr: array.
      mask: array of as many elements; true if they are not zero.
      vals: the elements, which are repeated where they are too few.
      inplace: must be False, as arrays do not change.

    Returns:
      A new array: the argument stays as it is, unlike with NumPy.

    Raises:
      ValueError: `inplace` is not False, the sizes differ, or there are no elements.

    >>> import pyjx as jax
    >>> x = jax.numpy.arange(4)
    >>> jax.numpy.place(x, x > 1, jax.numpy.array([7, 8]), inplace=False).tolist()
    [0, 1, 7, 8]
    """
    arr, mask, vals = operands("place", arr, mask, vals)
    if inplace:
        refuse_in_place("place")
    shape = get_aval(arr).shape
    if get_aval(mask).size != get_aval(arr).size:
        raise ValueError("place: arr and mask must be the same size")
    if not get_aval(vals).size:
        raise ValueError("Cannot place values from an empty array")
    chosen = convert(jnp.ravel(mask), np.dtype(np.bool_))
    number = jnp.cumsum(chosen) - 1
    found = jnp.take(jnp.ravel(vals), number % get_aval(vals).size, 0, mode="clip")
    arr = jnp.asarray(arr)
    found = jnp.ravel(arr).at[:].set(found)
    return jnp.where(jnp.reshape(chosen, shape), jnp.reshape(found, shape), arr)


@op_jit(static_argnames=("mode", "inplace"))
def put(a: ArrayLike, ind: ArrayLike, v: ArrayLike, mode: str | None = None, *, inplace: bool = True
       ) -> Array:
    """A copy of the array whose elements at places of the flat array are given ones.

    Args:
      a: array.
      ind: the places; negative ones count from the end.
      v: the elements, which are repeated where they are too few.
      mode: what becomes of places out of bounds: by default the nearest are taken; "wrap" takes the
        remainder, "clip" the nearest, where negative ones mean the first.
      inplace: must be False, as arrays do not change.

    Returns:
      A new array: the argument stays as it is, unlike with NumPy.

    Raises:
      ValueError: `inplace` is not False, or the mode is unknown.
      NotImplementedError: the mode "raise".

    >>> import pyjx as jax
    >>> jax.numpy.put(jax.numpy.zeros(3), jax.numpy.array([0, -1]), 5.0, inplace=False).tolist()
    [5.0, 0.0, 5.0]
    """
    if inplace:
        refuse_in_place("put")
    a, ind, v = operands("put", a, ind, v)
    if mode == "raise":
        raise NotImplementedError("The 'raise' mode to jnp.put is not supported.")
    if mode not in (None, "wrap", "clip"):
        raise ValueError(f"mode should be one of 'wrap' or 'clip'; got {mode=}")
    aval, places, values = get_aval(a), jnp.ravel(roomy(ind)), jnp.ravel(v)
    if not aval.size or not get_aval(places).size or not get_aval(values).size:
        return jnp.asarray(a)
    if mode == "wrap":
        places = jnp.mod(places, aval.size)
    else:
        places = jnp.clip(places, 0 if mode == "clip" else -aval.size, aval.size - 1)
    values = jnp.resize(values, get_aval(places).size)
    return jnp.reshape(jnp.ravel(a).at[places].set(values, mode="drop"), aval.shape)


# -- ends ------------------------------------------------------------------------------------------


def trim_zeros(filt: ArrayLike, trim: str = "fb", axis: AxisLike = None) -> Array:
    """The array without the zeros at its ends.

    Args:
      filt: array, whose values must be known while tracing.
      trim: "f" for the front, "b" for the back, "fb" for both.
      axis: the axes along which it is cut to what is not zero; by default all.

    Returns:
      The part of the array between the first and the last element that is not zero; where it is
      traced, its size is not known, and this raises.

    >>> import pyjx as jax
    >>> jax.numpy.trim_zeros(jax.numpy.array([0, 1, 0, 2, 0])).tolist()
    [1, 0, 2]
    """
    (filt,) = operands("trim_zeros", filt)
    known = concrete_or_error(np.asarray, filt,
                              "Error arose in the `filt` argument of trim_zeros()")
    axes = canonical_axes(axis, known.ndim)
    if not axes:
        return jnp.asarray(filt)
    places = np.nonzero(known)
    cut = [slice(None)] * known.ndim
    for i in axes:
        n = known.shape[i]
        low, high = (places[i].min(), places[i].max() + 1) if len(places[i]) else (n, n)
        front, back = "f" in trim.lower(), "b" in trim.lower()
        cut[i] = slice(low if front else 0, high if back and (low < n or not front) else n)
        if not len(places[i]) and back:
            cut[i] = slice(0, 0)
    return jnp.asarray(filt)[tuple([slice(operator.index(s.start), operator.index(s.stop))
                                    if s.start is not None else s for s in cut])]


# -- choices ---------------------------------------------------------------------------------------


def choose(a: ArrayLike, choices: Sequence[ArrayLike] | Array | np.ndarray, out: None = None,
           mode: str = "raise") -> Array:
    """For each element of `a` the element at its place of that choice whose number it is.

    Args:
      a: array of integers.
      choices: array whose first axis are the choices, or a sequence of arrays; they and `a`
        broadcast against each other.
      out: must be None.
      mode: what becomes of numbers out of range: "raise" refuses them and needs values that are
        known while tracing; "wrap" takes the remainder, "clip" the nearest.

    Returns:
      An array of the shape that the indices and choices are broadcast to.

    Raises:
      ValueError: `a` holds no integers, a number is out of range, or the mode is none of these.

    >>> import pyjx as jax
    >>> jax.numpy.choose(jax.numpy.array([1, 0]), [jax.numpy.array([1, 2]), 10]).tolist()
    [10, 2]
    """
    no_out("choose", out)
    a, *arrays = operands("choose", a, *choices)
    if not dtypes.issubdtype(dtype_of(a), np.integer):
        raise ValueError("`a` array must be integer typed")
    if mode not in ("raise", "wrap", "clip"):
        raise ValueError(f"mode={mode!r} not understood. Must be 'raise', 'wrap', or 'clip'")
    if mode == "raise":
        known = concrete_or_error(
            np.asarray, a, "The error occurred because jnp.choose was jit-compiled with "
            "mode='raise'. Use mode='wrap' or mode='clip' instead.", "")
        if known.size and not (known.min() >= 0 and known.max() < len(arrays)):
            raise ValueError("invalid entry in choice array")
    return _chosen(a, arrays, mode == "wrap")


@numpy_function(static_argnames=("wrap",))
def _chosen(a: ArrayLike, choices: Any, wrap: bool) -> Any:
    choices = promote_dtypes(*choices)
    n, a = len(choices), roomy(a)
    a = jnp.mod(a, n) if wrap else jnp.clip(a, 0, n - 1)
    shape = broadcast_shapes(*[get_aval(x).shape for x in (a, *choices)])
    stacked = lax.stack([stretch(x, shape) for x in choices])
    return convert(jnp.take_along_axis(stacked, stretch(a, shape)[None], 0)[0], dtype_of(stacked))


def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: ArrayLike = 0) -> Array:
    """For each element that of the choice whose condition is the first to hold.

    Args:
      condlist: arrays of booleans, or of numbers, which are true if they are not zero.
      choicelist: as many arrays; all broadcast against each other.
      default: the value where no condition holds.

    Returns:
      An array of the shape that conditions and choices are broadcast to, of the dtype to which the
      choices and `default` promote.

    Raises:
      ValueError: the lists differ in length or are empty.

    >>> import pyjx as jax
    >>> x = jax.numpy.arange(4)
    >>> jax.numpy.select([x < 1, x > 2], [x - 1, x * 10], 7).tolist()
    [-1, 7, 7, 30]
    """
    if len(condlist) != len(choicelist):
        raise ValueError("condlist must have length equal to choicelist "
                         f"({len(condlist)} vs {len(choicelist)})")
    if len(condlist) == 0:
        raise ValueError("condlist must be non-empty")
    check_arraylike("select", *condlist, *choicelist, default)
    return _selected(list(condlist), list(choicelist), default)


@numpy_function
def _selected(conditions: Sequence[ArrayLike], choices: Sequence[ArrayLike],
              default: ArrayLike) -> Any:
    conditions = [as_bool(as_operand(c)) for c in conditions]
    *choices, default = promote_dtypes(*[as_operand(x) for x in (*choices, default)])
    shape = broadcast_shapes(*[get_aval(x).shape for x in (*conditions, *choices, default)])
    out = stretch(default, shape)
    for condition, x in zip(reversed(conditions), reversed(choices), strict=True):
        out = lax.select_n(stretch(condition, shape), out, stretch(x, shape))
    return out


def piecewise(x: ArrayLike, condlist: Sequence[ArrayLike] | Array | np.ndarray,
              funclist: Sequence[Any], *args: Any, **kw: Any) -> Array:
    """A function that is given in pieces: for each element that whose condition is the last to
    hold.

    Args:
      x: array.
      condlist: conditions of the shape of `x`, or that broadcast with it.
      funclist: for each condition a function of a number, or a number; and one more for the
        elements where none holds, which are zero without it. All functions are computed for all
        elements.
      args, kw: further arguments of the functions.

    Returns:
      An array of the dtype of `x`, and of its shape or that of the conditions.

    Raises:
      ValueError: there are too few or too many functions.

    >>> import pyjx as jax
    >>> x = jax.numpy.arange(4.0)
    >>> jax.numpy.piecewise(x, [x < 1, x > 2], [-1, lambda v: v * 10]).tolist()
    [-1.0, 0.0, 0.0, 30.0]
    """
    (x,) = operands("piecewise", x)
    count, given = len(condlist), len(funclist)
    if given not in (count, count + 1):
        raise ValueError(f"with {count} condition(s), either {count} or {count + 1} functions are "
                         f"expected; got {given}")
    masks = [jnp.asarray(as_bool(mask)) for mask in operands("piecewise", *condlist)]
    shape = broadcast_shapes(get_aval(x).shape, *[mask.shape for mask in masks])
    dtype = dtype_of(x)

    def values(piece: ArrayLike | Callable[..., ArrayLike], mask: Array) -> Any:
        if callable(piece):  # no slope comes from the elements of other pieces, be it infinite
            own = jnp.where(mask, x, lax.stop_gradient(x))
            piece = jnp.vectorize(with_arguments(piece, args, kw))(own)
        return stretch(convert(jnp.asarray(piece), dtype), shape)

    later = jnp.zeros((), bool)
    chosen = []
    for mask in reversed(masks):
        chosen.append(mask & ~later)
        later = later | mask
    out = values(funclist[count] if given > count else 0, ~later)
    for mask, piece in zip(reversed(chosen), funclist, strict=False):
        out = jnp.where(mask, values(piece, mask), out)
    return out


def extract(condition: ArrayLike, arr: ArrayLike, *, size: int | None = None,
            fill_value: ArrayLike = 0) -> Array:
    """The elements where a condition holds, as a flat array.

    Args:
      condition: array of as many elements; true if they are not zero. Without `size` its values
        must be known while tracing.
      arr: array.
      size: the number of elements of the result; the surplus is left out, what lacks is
        `fill_value`.
      fill_value: what stands in the places that `size` adds.

    Returns:
      A one-dimensional array of as many elements as are True, or of `size` elements: the latter is
      needed where the condition is traced.

    >>> import pyjx as jax
    >>> x = jax.numpy.arange(4)
    >>> jax.numpy.extract(x > 1, x).tolist()
    [2, 3]
    """
    condition, arr, fill_value = operands("extract", condition, arr, fill_value)
    return jnp.compress(jnp.ravel(condition), jnp.ravel(arr), size=size, fill_value=fill_value)
