"""Slices at static and at computed positions, and their updates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pyjx.core import dtypes
from pyjx.core.arithmetic import FIRST, FIRST_TWO
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import ShapedArray, cotangent_aval, get_aval
from pyjx.core.bounded import BoundedDict
from pyjx.core.explicit import Entries, entries_of, resized
from pyjx.core.integers import as_axis, as_int, as_ints, as_shape
from pyjx.core.named_axes import Axis
from pyjx.core.primitive import Primitive, register
from pyjx.core.scalars import scalar_constant, wrapped_constant
from pyjx.core.specs import reshard_first
from pyjx.core.trace import eager_trace, state
from pyjx.core.value_texts import shortened
from pyjx.engine.axes import at_front, batch_along, broadcast_in_dim
from pyjx.engine.tangents import add_tangents, full_aval, is_undefined_primal, zeros_like
from pyjx.engine.types import BatchDims, Dims, Operand, Tangent, Tangents, Value, Values
from pyjx.errors import ShardingTypeError
from pyjx.lax.common import check_same_dtypes
from pyjx.lax.common import operand as _operand
from pyjx.lax.compare import lt, rem, select, select_n
from pyjx.lax.convert import convert_element_type
from pyjx.lax.elementwise import add
from pyjx.lax.indexing import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
    gather,
    gather_p,
)
from pyjx.lax.joining import concatenate, unstack
from pyjx.lax.scattering import scatter_p
from pyjx.lax.shapes import expand_dims, insert, squeeze
from pyjx.runtime.operations import op_jit

# -- starts ----------------------------------------------------------------------------------------

_programs = BoundedDict(2048, "programs that slice")


def _at_once(fun: Callable[..., Any], *static: Any) -> Callable[..., Any]:
    """`fun` with its last arguments given, as one program where nothing is being traced."""
    if state.dynamic is not eager_trace:
        return lambda *args: fun(*args, *static)
    key = (fun, *static)
    program: Callable[..., Any] | None = _programs.get(key)
    if program is None:
        program = _programs[key] = op_jit(lambda *args: fun(*args, *static))
    return program


def _checked_starts(name: str, shape: tuple[int, ...], starts: Any) -> list[Value]:
    """The starts with Python integers of the dtype that the others have, where that has them."""
    label = name + " (start_indices)"
    if not isinstance(starts, (tuple, list)):
        starts = _operand(label, starts)
        got = get_aval(starts).shape
        if len(got) != 1:
            if got:
                _check_count(name, got[0], shape)
            said = got or "a scalar: give one for each axis, such as (i, j)"
            raise ValueError(f"{name}: Slice indices must be a 1D sequence, got {said}")
        _check_count(name, got[0], shape)
        return starts
    _check_count(name, len(starts), shape)
    starts = [_operand(label, s, i) for i, s in enumerate(starts)]
    for s in starts:
        if type(s) is not int:
            dtype = get_aval(s).dtype
            if dtypes.issubdtype(dtype, np.integer):
                return [_of_dtype(s, dtype) if type(s) is int else s for s in starts]
    return starts


def _of_dtype(start: int, dtype: dtypes.DType) -> Any:
    """A Python integer of a dtype that has it; of the default one its low bits."""
    limits = dtypes.iinfo(dtype)
    fits = limits.min <= start <= limits.max or dtype == dtypes.default_int_dtype()
    return wrapped_constant(start, dtype) if fits else start


def _check_count(name: str, count: int, shape: tuple[int, ...]) -> None:
    if count != len(shape):
        raise ValueError(f"{name}: Length of slice indices must match number of operand "
                         f"dimensions ({count} vs {shape})")


def _starts(shape: tuple[int, ...], starts: Any, allow_negative: bool | tuple[bool, ...]
            ) -> list[Value]:
    """The starts as scalars of one dtype, those that count from the end made positive."""
    if not isinstance(starts, (tuple, list)):
        starts = unstack(starts)
    if isinstance(allow_negative, bool):
        allow_negative = (allow_negative,) * len(shape)
    out = []
    for s, n, wrap in zip(starts, shape, allow_negative, strict=True):
        dtype = get_aval(s).dtype
        if dtypes.issubdtype(dtype, np.integer) and _any_above(
                shape, dtypes.iinfo(dtype).max):
            # The sizes do not fit the narrow dtype, so neither would their sum with a start.
            s = convert_element_type(s, np.int32)
        out.append(_start(s, n, wrap))
    return out


def _any_above(shape: tuple[int, ...], limit: int) -> bool:
    """Whether a size is above a limit; symbolic ones, which have 32 bits, may be."""
    return any([n > limit if type(n) is int else limit < 2**31 - 1 for n in shape])


def _flags(name: str, allow_negative: bool | Sequence[bool], ndim: int) -> bool | tuple[bool, ...]:
    if isinstance(allow_negative, (int, np.bool_)) and allow_negative in (0, 1):
        return bool(allow_negative)
    if not isinstance(allow_negative, (tuple, list)) or len(allow_negative) != ndim:
        raise TypeError(f"{name}: allow_negative_indices must be a bool or a sequence of {ndim} "
                        f"bools, one for each axis, got {allow_negative!r}")
    return tuple([bool(a) for a in allow_negative])


def _start(s: Value, n: int, wrap: bool) -> Value:
    if type(s) is int:
        if s < 0:
            if not wrap:
                raise ValueError(f"Index {s} is out of bounds for dimension {n} if "
                                 "allow_negative_indices=False")
            s += n
        return wrapped_constant(s, dtypes.default_int_dtype())
    if isinstance(s, np.integer):
        return scalar_constant(s + n, s.dtype) if wrap and s < 0 else s
    aval = get_aval(s)
    if not wrap or not dtypes.issubdtype(aval.dtype, np.signedinteger):
        return s
    negative = lt(s, scalar_constant(0, aval.dtype))
    strong = convert_element_type(s, aval.dtype) if aval.weak_type else s
    return select_n(negative, s, add(strong, scalar_constant(n, aval.dtype)))


# -- dynamic_slice ---------------------------------------------------------------------------------


def _check_starts(name: str, x: ShapedArray, starts: tuple[ShapedArray, ...]) -> None:
    _check_count(name, len(starts), x.shape)
    if any(s.shape for s in starts):
        raise TypeError(f"start_indices arguments to {name} must be scalars,  got indices "
                        f"({', '.join(map(repr, starts))})")
    if starts:
        dtype = starts[0].dtype
        if not dtypes.issubdtype(dtype, np.integer) or any(s.dtype != dtype for s in starts):
            got = ", ".join([dtypes.name(s.dtype) for s in starts])
            raise TypeError(
                f"index arguments to {name} must be integers of the same type, got: {got}")


def _dynamic_slice_shape(x: ShapedArray, *starts: ShapedArray, slice_sizes: tuple[int, ...]
                         ) -> ShapedArray:
    _check_starts("dynamic_slice", x, starts)
    if len(slice_sizes) != x.ndim:
        raise TypeError(
            "dynamic_slice slice_sizes must have length equal to the number of dimensions of the "
            f"operand, got slice_sizes {slice_sizes} for operand shape {x.shape}.")
    if any(n > size for n, size in zip(slice_sizes, x.shape, strict=True)):
        raise TypeError("dynamic_slice slice_sizes must be less than or equal to operand shape, "
                        f"got slice_sizes {slice_sizes} for operand shape {x.shape}.")
    if any(n < 0 for n in slice_sizes):
        raise TypeError("dynamic_slice slice_sizes must be greater than or equal to zero, "
                        f"got slice_sizes of {slice_sizes}.")
    return x.update(shape=slice_sizes)


def _dynamic_slice_transpose(ct: Tangent, x: Operand, *starts: Operand, slice_sizes: tuple[int, ...]
                             ) -> Tangents:
    zeros = full_aval(cotangent_aval(x.aval).update(dtype=get_aval(ct).dtype), 0)
    return [dynamic_update_slice_p.bind(zeros, ct, *starts), *[None] * len(starts)]


def _dynamic_slice_accumulate(totals: Tangents, ct: Tangent, x: Operand, *starts: Operand,
                              slice_sizes: tuple[int, ...]) -> Tangents:
    total = totals[0]
    part = add_tangents(dynamic_slice_p.bind(total, *starts, slice_sizes=slice_sizes), ct)
    return [dynamic_update_slice_p.bind(total, part, *starts), *[None] * len(starts)]


def _stacked_starts(starts: Values, dims: Dims, along: Axis) -> Array:
    """Starts, some of them batched, as an array of shape (batch, number of starts)."""
    columns = [expand_dims(at_front(s, d, along), (1,)) for s, d in zip(starts, dims, strict=True)]
    return concatenate(columns, 1)


def _dynamic_slice_batch(operands: Values, dims: BatchDims, *, slice_sizes: tuple[int, ...]
                         ) -> tuple[Value, int]:
    (x, *starts), (d, *start_dims) = operands, dims
    if all(s is None for s in start_dims):
        zero = scalar_constant(0, get_aval(starts[0]).dtype if starts else np.int32)
        starts.insert(d, zero)
        sizes = insert(slice_sizes, d, get_aval(x).shape[d])
        return dynamic_slice_p.bind(x, *starts, slice_sizes=sizes), d
    indices = _stacked_starts(starts, start_dims, batch_along(operands, dims))
    axes = tuple(range(len(starts)))
    return gather_p.batch(  # type: ignore[misc]
        (x, indices), (d, 0), dimension_numbers=GatherDimensionNumbers(axes, (), axes),
        slice_sizes=slice_sizes, unique_indices=True, indices_are_sorted=True,
        mode=GatherScatterMode.CLIP, fill_value=None,
    )


dynamic_slice_p = register(Primitive(
    "dynamic_slice", moves=True, rearranges=True, shape_rule=_dynamic_slice_shape,
    sharding_rule=resized("dynamic_slice"),
    transpose=_dynamic_slice_transpose, accumulate=_dynamic_slice_accumulate,
    batch=_dynamic_slice_batch,
    linear=FIRST,
))


def _sliced(x: Value, starts: Any, sizes: tuple[int, ...], allow_negative: bool | tuple[bool, ...]
            ) -> Array:
    starts = _starts(get_aval(x).shape, starts, allow_negative)
    return dynamic_slice_p.bind(x, *starts, slice_sizes=sizes)


def dynamic_slice(operand: ArrayLike, start_indices: Any, slice_sizes: Sequence[int], *,
                  allow_negative_indices: bool | Sequence[bool] = True) -> Array:
    """The part of the operand of a static size at a computed position.

    A slice that would reach beyond the operand is moved until it fits.

    Args:
      operand: an array.
      start_indices: for each axis the first position: integers or integer scalars of one dtype,
        or an array of them.
      slice_sizes: the shape of the result.
      allow_negative_indices: whether negative starts count from the end; one answer, or one for
        each axis. Where it is known that none is negative, False saves three operations.

    Raises:
      ValueError: there is not one start for each axis.
      TypeError: the starts are not integers of one dtype, or the slice is larger than the operand.

    >>> import pyjx as jax
    >>> jax.lax.dynamic_slice(jax.numpy.arange(5), (3,), (3,)).tolist()
    [2, 3, 4]

    The position may depend on traced values, the size may not:

    >>> window = jax.jit(lambda x, i: jax.lax.dynamic_slice(x, (i,), (2,)))
    >>> window(jax.numpy.arange(5), 1).tolist()
    [1, 2]
    """
    operand = _operand("dynamic_slice", operand)
    shape = get_aval(operand).shape
    sizes = as_shape("dynamic_slice", "slice_sizes", slice_sizes)
    flags = _flags("dynamic_slice", allow_negative_indices, len(shape))
    return _at_once(_sliced, sizes, flags)(
        operand, _checked_starts("dynamic_slice", shape, start_indices))


def dynamic_slice_in_dim(operand: Value, start_index: ArrayLike, slice_size: int, axis: int = 0, *,
                         allow_negative_indices: bool = True) -> Array:
    """The part of the operand of size `slice_size` at a computed position along one axis.

    Args:
      operand: an array.
      start_index: an integer scalar, which may be traced. A part that would reach beyond the end
        begins earlier.
      slice_size: the size of the part, a Python int.
      axis: the axis.
      allow_negative_indices: whether a negative position counts from the end; without that less is
        computed.

    Raises:
      ValueError: the axis is out of range.
      TypeError: the start is no integer scalar, or the slice is larger than the operand.

    >>> import pyjx as jax
    >>> jax.lax.dynamic_slice_in_dim(jax.numpy.arange(5), 1, 2).tolist()
    [1, 2]
    """
    shape = get_aval(_operand("dynamic_slice_in_dim", operand)).shape
    axis = as_axis("dynamic_slice_in_dim", "axis", axis, len(shape))
    starts: list[Any] = [0] * len(shape)
    sizes = list(shape)
    starts[axis] = start_index
    sizes[axis] = as_int("dynamic_slice_in_dim", "slice_size", slice_size)
    return dynamic_slice(operand, starts, sizes, allow_negative_indices=allow_negative_indices)


def dynamic_index_in_dim(operand: ArrayLike, index: Any, axis: int = 0, keepdims: bool = True, *,
                         allow_negative_indices: bool = True) -> Array:
    """The slice of size 1 at a computed position along one axis, without that axis if wanted.

    Args:
      operand: an array.
      index: an integer scalar, which may be traced; what is out of range is moved inside.
      axis: the axis.
      keepdims: whether the axis stays, with size 1.
      allow_negative_indices: whether a negative position counts from the end; without that less is
        computed.

    Raises:
      ValueError: the axis is out of range.
      TypeError: the position is no integer scalar.

    >>> import pyjx as jax
    >>> int(jax.lax.dynamic_index_in_dim(jax.numpy.arange(5), 2, keepdims=False))
    2
    """
    out = dynamic_slice_in_dim(operand, index, 1, axis,
                               allow_negative_indices=allow_negative_indices)
    return out if keepdims else squeeze(out, (axis,))


# -- dynamic_update_slice --------------------------------------------------------------------------


def _update_shape(x: ShapedArray, update: ShapedArray, *starts: ShapedArray) -> ShapedArray:
    if update.ndim != x.ndim:
        raise TypeError("dynamic_update_slice update must have the same rank as operand, got "
                        f"update shape {update.shape} for operand shape {x.shape}.")
    _check_starts("dynamic_update_slice", x, starts)
    if any(n > size for n, size in zip(update.shape, x.shape, strict=True)):
        raise TypeError("dynamic_update_slice update shape must be smaller than operand shape, got "
                        f"update shape {update.shape} for operand shape {x.shape}.")
    check_same_dtypes("dynamic_update_slice", x, update)
    return x.strip_weak_type()


def _update_transpose(ct: Tangent, x: Operand, update: Operand, *starts: Operand) -> Sequence[Any]:
    ct_x = ct_update = None
    if is_undefined_primal(x):
        aval = cotangent_aval(update.aval if is_undefined_primal(update) else get_aval(update))
        ct_x = dynamic_update_slice_p.bind(
            ct, full_aval(aval.update(dtype=get_aval(ct).dtype), 0), *starts)
    if is_undefined_primal(update):
        ct_update = dynamic_slice_p.bind(ct, *starts, slice_sizes=update.aval.shape)
    return [ct_x, ct_update, *[None] * len(starts)]


def _update_batch(operands: Values, dims: Dims) -> tuple[Value, int | None]:
    (x, update, *starts), (d, d_update, *start_dims) = operands, dims
    along = batch_along(operands, dims)
    if all(s is None for s in start_dims):
        zero = scalar_constant(0, get_aval(starts[0]).dtype if starts else np.int32)
        return dynamic_update_slice_p.bind(
            at_front(x, d, along), at_front(update, d_update, along), zero, *starts
        ), 0
    indices = _stacked_starts(starts, start_dims, along)
    axes = tuple(range(len(starts)))
    return scatter_p.batch(  # type: ignore[misc]
        (x, indices, update), (d, 0, d_update),
        dimension_numbers=ScatterDimensionNumbers(axes, (), axes), indices_are_sorted=True,
        unique_indices=True, mode=GatherScatterMode.CLIP, update_jaxpr=None, update_consts=(),
    )


def _update_sharding(out: ShapedArray, x: ShapedArray, update: ShapedArray, *starts: ShapedArray
                     ) -> Entries:
    one = all([n == 1 for n in update.shape])  # which is on every device
    if entries_of(x) != entries_of(update) and not one:
        raise ShardingTypeError(
            "dynamic_update_slice operand sharding must be equal to update sharding, got operand "
            f"sharding {x.str_short(mesh_axis_types=True)} and update sharding "
            f"{update.str_short(mesh_axis_types=True)}. {reshard_first('one of them')}")
    return entries_of(x)


dynamic_update_slice_p = register(Primitive(
    "dynamic_update_slice", moves=True, in_place=True, shape_rule=_update_shape,
    sharding_rule=_update_sharding, transpose=_update_transpose, batch=_update_batch,
    linear=FIRST_TWO,
))


def _updated(x: Value, update: Value, starts: Any, allow_negative: bool | tuple[bool, ...]
             ) -> Array:
    return dynamic_update_slice_p.bind(
        x, update, *_starts(get_aval(x).shape, starts, allow_negative))


def dynamic_update_slice(operand: ArrayLike, update: ArrayLike, start_indices: Any, *,
                         allow_negative_indices: bool | Sequence[bool] = True) -> Array:
    """The operand with the part at a computed position replaced by `update`.

    An update that would reach beyond the operand is moved until it fits.

    Args:
      operand: an array.
      update: an array of the same dtype and rank, along no axis larger than the operand.
      start_indices: as for `dynamic_slice`.
      allow_negative_indices: as for `dynamic_slice`.

    Raises:
      ValueError: there is not one start for each axis.
      TypeError: the starts are not integers of one dtype, or the update does not fit the operand.

    >>> import pyjx as jax
    >>> jnp = jax.numpy
    >>> jax.lax.dynamic_update_slice(jnp.zeros(4), jnp.ones(2), (1,)).tolist()
    [0.0, 1.0, 1.0, 0.0]
    """
    operand = _operand("dynamic_update_slice", operand)
    update = _operand("dynamic_update_slice", update, 1)
    shape = get_aval(operand).shape
    flags = _flags("dynamic_update_slice", allow_negative_indices, len(shape))
    return _at_once(_updated, flags)(
        operand, update, _checked_starts("dynamic_update_slice", shape, start_indices))


def dynamic_update_slice_in_dim(operand: Value, update: Any, start_index: ArrayLike, axis: int, *,
                                allow_negative_indices: bool = True) -> Array:
    """The operand with the part at a computed position along one axis replaced by `update`.

    Args:
      operand: an array.
      update: an array of the operand's dtype and number of axes, along none of them larger.
      start_index: an integer scalar, which may be traced. A part that would reach beyond the end
        begins earlier.
      axis: the axis.
      allow_negative_indices: whether a negative position counts from the end; without that less is
        computed.

    Raises:
      ValueError: the axis is out of range.
      TypeError: the start is no integer scalar, or the update does not fit the operand.

    >>> import pyjx as jax
    >>> jnp = jax.numpy
    >>> jax.lax.dynamic_update_slice_in_dim(jnp.zeros(4), jnp.ones(2), 2, 0).tolist()
    [0.0, 0.0, 1.0, 1.0]
    """
    ndim = get_aval(_operand("dynamic_update_slice_in_dim", operand)).ndim
    starts: list[Any] = [0] * ndim
    starts[as_axis("dynamic_update_slice_in_dim", "axis", axis, ndim)] = start_index
    return dynamic_update_slice(operand, update, starts,
                                allow_negative_indices=allow_negative_indices)


def dynamic_update_index_in_dim(operand: ArrayLike, update: ArrayLike, index: Any, axis: int, *,
                                allow_negative_indices: bool = True) -> Array:
    """The operand with the slice at a computed position along one axis replaced by `update`.

    Args:
      operand: an array.
      update: an array of the operand's shape without the axis, or with size 1 there.
      index: an integer scalar.
      axis: the axis.
      allow_negative_indices: whether a negative position counts from the end.

    Raises:
      ValueError: the axis is out of range.
      TypeError: the position is no integer scalar, or the update does not fit the operand.

    >>> import pyjx as jax
    >>> jnp = jax.numpy
    >>> jax.lax.dynamic_update_index_in_dim(jnp.zeros(3), 1.0, 1, 0).tolist()
    [0.0, 1.0, 0.0]
    """
    ndim = get_aval(_operand("dynamic_update_index_in_dim", operand)).ndim
    axis = as_axis("dynamic_update_index_in_dim", "axis", axis, ndim)
    if get_aval(_operand("dynamic_update_index_in_dim", update, 1)).ndim != ndim:
        update = expand_dims(update, (axis,))
    return dynamic_update_slice_in_dim(operand, update, index, axis,
                                       allow_negative_indices=allow_negative_indices)


# -- index_take ------------------------------------------------------------------------------------


_index_dtypes = dtypes.integer_dtypes - {np.dtype(np.uint64)} | {np.dtype(np.bool_)}


def _check_index_vectors(idxs: Any, axes: tuple[int, ...]) -> None:
    if isinstance(idxs, (tuple, list)) and not idxs:
        raise ValueError("index_take: idxs must hold a vector of indices for each axis, got none")
    if not isinstance(idxs, (tuple, list)) or len(idxs) != len(axes):
        raise TypeError("index_take: idxs must be a sequence of vectors, one for each of axes "
                        f"{axes}, got {shortened(idxs)}")
    avals = [get_aval(_operand("index_take (idxs)", x, i)) for i, x in enumerate(idxs)]
    first = avals[0]
    if first.ndim != 1 or any(a.shape != first.shape or a.dtype != first.dtype for a in avals) \
            or first.dtype not in _index_dtypes:
        got = ", ".join([a.str_short() for a in avals])
        large = ", and not of uint64" if any([a.dtype == np.uint64 for a in avals]) else ""
        raise TypeError("index_take: idxs must be vectors of integers, all of one size and dtype"
                        f"{large}, got {got}")


def index_take(src: Any, idxs: Sequence[Any], axes: Sequence[int]) -> Array:
    """The slices of `src` at the given positions along `axes`, side by side along a new first axis.

    Args:
      src: an array.
      idxs: for each of `axes` a vector of integers, taken modulo the axis' size.
      axes: the axes that are indexed; they are not in the result.

    Raises:
      TypeError: the indices are not vectors of integers.
      ValueError: there are none.

    >>> import pyjx as jax
    >>> jnp = jax.numpy
    >>> jax.lax.index_take(jnp.arange(6).reshape(3, 2), (jnp.array([0, -1]),), (0,)).tolist()
    [[0, 1], [4, 5]]
    """
    shape = get_aval(_operand("index_take", src)).shape
    axes = tuple([as_axis("index_take", "axes", a, len(shape))
                  for a in as_ints("index_take", "axes", axes)])
    _check_index_vectors(idxs, axes)
    indices = concatenate([expand_dims(i, (1,)) for i in idxs], 1)
    if get_aval(indices).dtype == np.bool_:  # numbers, not a mask
        indices = convert_element_type(indices, np.int32)
    aval = get_aval(indices)
    sizes = broadcast_in_dim(np.array([shape[a] for a in axes], aval.dtype), aval.shape, (1,))
    rest = rem(indices, sizes)
    indices = select(lt(rest, zeros_like(rest)), add(rest, sizes), rest)
    slice_sizes = [1 if i in axes else n for i, n in enumerate(shape)]
    dnums = GatherDimensionNumbers(offset_dims=tuple(range(1, len(shape) - len(axes) + 1)),
                                   collapsed_slice_dims=tuple(sorted(axes)), start_index_map=axes)
    return gather(src, indices, dnums, slice_sizes, mode=GatherScatterMode.PROMISE_IN_BOUNDS)
