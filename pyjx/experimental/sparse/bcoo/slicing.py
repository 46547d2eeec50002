"""Parts of BCOO arrays: slices at fixed and at computed places, and gathers of slices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from pyjx import lax
from pyjx import numpy as jnp
from pyjx.core.avals import get_aval
from pyjx.core.integers import as_ints
from pyjx.core.tracebacks import api_boundary
from pyjx.experimental.sparse.bcoo.array import BCOO
from pyjx.experimental.sparse.bcoo.conversion import as_row
from pyjx.experimental.sparse.bcoo.duplicates import bcoo_sum_duplicates
from pyjx.experimental.sparse.bcoo.shapes import bcoo_squeeze, bcoo_transpose
from pyjx.runtime.operations import op_jit
from pyjx.transforms.vmap import vmap


def _kept(data: Any, indices: Any, keep: Any, moved: Any, sizes: Sequence[int],
          shape: Sequence[int], unique: bool) -> BCOO:
    """The array of the elements for which `keep` holds, at the indices `moved`. Where fewer
    elements than are stored have room in it, they are brought together.

    Indices that were `unique` still are, but for those that are out of bounds now.
    """
    n_batch = get_aval(indices).ndim - 2
    n_dense = get_aval(data).ndim - 1 - n_batch
    limits = jnp.array(sizes, get_aval(indices).dtype)
    indices = jnp.where(keep[..., None], moved, limits)
    mask = keep.reshape(*keep.shape, *[1] * n_dense)
    data = jnp.where(mask, data, jnp.zeros((), data.dtype))
    mat = BCOO._of(data, indices, shape, unique_indices=unique)
    room = math.prod(sizes)
    if mat.nse > room:
        mat = bcoo_sum_duplicates(mat, nse=room)
    return BCOO._of(mat.data, mat.indices, shape, unique_indices=mat.unique_indices)


@api_boundary
def bcoo_slice(mat: BCOO, *, start_indices: Sequence[int], limit_indices: Sequence[int],
               strides: Sequence[int] | None = None) -> BCOO:
    """A part of the array, as `lax.slice` gives it.

    Args:
      mat: BCOO array.
      start_indices: where it starts in each dimension.
      limit_indices: where it ends.
      strides: distances of the elements taken, 1 by default.

    Returns:
      BCOO array that stores as many elements as `mat`, or as many as it has.

    Raises:
      ValueError: the indices do not fit the shape.

    >>> from pyjx.experimental import sparse
    >>> part = sparse.bcoo_slice(sparse.eye(3), start_indices=(1, 0), limit_indices=(3, 3))
    >>> part.todense().tolist()
    [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    starts = as_ints("bcoo_slice", "start_indices", start_indices)
    limits = as_ints("bcoo_slice", "limit_indices", limit_indices)
    steps = (1,) * mat.ndim if strides is None else as_ints("bcoo_slice", "strides", strides)
    if not len(starts) == len(limits) == len(steps) == mat.ndim:
        raise ValueError(f"bcoo_slice: indices must have an entry for each dimension of "
                         f"shape={mat.shape}. Got start_indices={list(starts)}, "
                         f"limit_indices={list(limits)}, strides={list(steps)}")
    if any([not 0 <= a <= b <= n for a, b, n in zip(starts, limits, mat.shape, strict=True)]):
        raise ValueError(f"bcoo_slice: invalid indices. Got start_indices={list(starts)}, "
                         f"limit_indices={list(limits)} and shape={mat.shape}")
    if any([s < 1 for s in steps]):
        raise ValueError(f"bcoo_slice: strides must be positive, got {list(steps)}")
    return _sliced(mat, starts=starts, limits=limits, steps=steps)  # type: ignore[no-any-return]


@op_jit(trees=True, static_argnames=("starts", "limits", "steps"))
def _sliced(mat: BCOO, *, starts: tuple[int, ...], limits: tuple[int, ...], steps: tuple[int, ...]
            ) -> Any:
    n_batch, n_sparse, _, _ = mat._properties()
    end = n_batch + n_sparse
    cuts = [slice(*cut) for cut in zip(starts, limits, steps, strict=True)]
    shape = [len(range(n)[cut]) for n, cut in zip(mat.shape, cuts, strict=True)]

    def batch(x: Any) -> list[slice]:
        # what is the same for all batches stays so
        return [cut if n == full else slice(None) for cut, n, full in
                zip(cuts[:n_batch], x.shape, mat.shape[:n_batch], strict=False)]

    data = mat.data[(*batch(mat.data), slice(None), *cuts[end:])]
    indices = mat.indices[tuple(batch(mat.indices))]
    if shape[n_batch:end] == list(mat.shape[n_batch:end]):
        return BCOO._of(data, indices, shape, unique_indices=mat.unique_indices)
    first, limit, step = (as_row(x[n_batch:end], indices) for x in (starts, limits, steps))
    keep = (indices >= first) & (indices < limit)
    moved = indices - first
    if any([s != 1 for s in steps[n_batch:end]]):
        keep &= moved % step == 0
        moved = moved // step
    return _kept(data, indices, keep.all(-1), moved, shape[n_batch:end], shape,
                 mat.unique_indices)


@api_boundary
def bcoo_dynamic_slice(mat: BCOO, start_indices: Sequence[Any], slice_sizes: Sequence[int]) -> BCOO:
    """A part of the array that starts at computed places, as `lax.dynamic_slice` gives it.

    Args:
      mat: BCOO array.
      start_indices: integer scalars, one for each dimension; negative ones count from the end.
        Those for which the slice would exceed the array are moved.
      slice_sizes: shape of the slice.

    Returns:
      BCOO array that stores as many elements as `mat`, or as many as it has.

    Raises:
      TypeError: the sizes do not fit the shape.

    >>> from pyjx.experimental import sparse
    >>> sparse.bcoo_dynamic_slice(sparse.eye(3), (2, 2), (2, 2)).todense().tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    sizes = as_ints("bcoo_dynamic_slice", "slice_sizes", slice_sizes)
    starts = tuple(start_indices)
    if not len(sizes) == len(starts) == mat.ndim:
        raise TypeError("bcoo_dynamic_slice: start_indices and slice_sizes must have an entry for "
                        f"each dimension of shape {mat.shape}, got {len(starts)} and {len(sizes)}.")
    if any([not 0 <= k <= n for k, n in zip(sizes, mat.shape, strict=True)]):
        raise TypeError("slice slice_sizes must be less than or equal to operand shape, got "
                        f"slice_sizes {sizes} for operand shape {mat.shape}.")
    return _dynamic_slice(mat, [jnp.asarray(i) for i in starts], sizes=sizes)  # type: ignore[no-any-return]


@op_jit(trees=True, static_argnames=("sizes",))
def _dynamic_slice(mat: BCOO, starts: list[Any], *, sizes: tuple[int, ...]) -> Any:
    n_batch, n_sparse, _n_dense, nse = mat._properties()
    end = n_batch + n_sparse
    first = [jnp.clip(jnp.where(i < 0, i + n, i), 0, n - k)
             for i, n, k in zip(starts, mat.shape, sizes, strict=True)]

    def batch(x: Any) -> tuple[list[Any], list[int]]:
        whole = [x.shape[d] == 1 and mat.shape[d] != 1 for d in range(n_batch)]
        return ([jnp.zeros_like(i) if w else i for i, w in zip(first, whole, strict=False)],
                [1 if w else k for k, w in zip(sizes, whole, strict=False)])

    def part(x: Any, places: list[Any], lengths: list[int]) -> Any:
        if tuple(lengths) == x.shape:
            return x
        return lax.dynamic_slice(x, [jnp.asarray(i).astype(jnp.int32) for i in places], lengths)

    places, lengths = batch(mat.data)
    data = part(mat.data, [*places, 0, *first[end:]], [*lengths, nse, *sizes[end:]])
    places, lengths = batch(mat.indices)
    indices = part(mat.indices, [*places, 0, 0], [*lengths, nse, n_sparse])
    if sizes[n_batch:end] == mat.shape[n_batch:end]:
        return BCOO._of(data, indices, sizes, unique_indices=mat.unique_indices)
    start = as_row(jnp.stack([jnp.asarray(i).astype(indices.dtype) for i in first[n_batch:end]]),
                   indices)
    length = as_row(sizes[n_batch:end], indices)
    keep = ((indices >= start) & (indices < start + length)).all(-1)
    return _kept(data, indices, keep, indices - start, sizes[n_batch:end], sizes,
                 mat.unique_indices)


@api_boundary
def bcoo_gather(operand: BCOO, start_indices: Any, dimension_numbers: lax.GatherDimensionNumbers,
                slice_sizes: Sequence[int], *, unique_indices: bool = False,
                indices_are_sorted: bool = False, mode: Any = None, fill_value: Any = None
                ) -> BCOO:
    """Slices of the array, as `lax.gather` gives them.

    Args:
      operand: BCOO array.
      start_indices: integer array; a vector along its last axis says where a slice starts.
      dimension_numbers: what the axes of the arrays mean.
      slice_sizes: shape of a slice.
      unique_indices, indices_are_sorted: not needed here.
      mode: None or "promise_in_bounds".
      fill_value: not used, as slices are in bounds.

    Returns:
      BCOO array whose first batch dimensions are those of `start_indices`, where the result's
      order of dimensions allows that.

    Raises:
      NotImplementedError: another mode, or batching dimensions.

    >>> import pyjx.numpy as jnp
    >>> from pyjx import lax
    >>> from pyjx.experimental import sparse
    >>> rows = lax.GatherDimensionNumbers((1,), (0,), (0,))
    >>> sparse.bcoo_gather(sparse.eye(3), jnp.array([[2], [0]]), rows, (1, 3)).todense().tolist()
    [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """
    if mode is not None:
        parsed = lax.GatherScatterMode.from_any(mode)
        if parsed not in (lax.GatherScatterMode.PROMISE_IN_BOUNDS,):
            raise NotImplementedError(f"bcoo_gather: mode={mode!r} not yet supported.")
    return gathered(operand, start_indices, dimension_numbers, slice_sizes)


def gathered(operand: BCOO, start_indices: Any, numbers: lax.GatherDimensionNumbers,
             slice_sizes: Sequence[int]) -> BCOO:
    """`bcoo_gather`, of slices that are moved where they would exceed the array."""
    if numbers.operand_batching_dims or numbers.start_indices_batching_dims:
        raise NotImplementedError("bcoo_gather: batching dimensions are not supported yet.")
    sizes = as_ints("bcoo_gather", "slice_sizes", slice_sizes)
    mat = _gather(operand, jnp.asarray(start_indices), numbers=numbers, sizes=sizes)
    return _with_axes_at(mat, numbers.offset_dims)


@op_jit(trees=True, static_argnames=("numbers", "sizes"))
def _gather(mat: BCOO, start_indices: Any, *, numbers: Any, sizes: tuple[int, ...]) -> Any:
    """The slices, with the axes of `start_indices` in front."""
    starts = list(jnp.moveaxis(start_indices, -1, 0))

    def one(starts: list[Any]) -> BCOO:
        places = [jnp.zeros((), start_indices.dtype)] * mat.ndim
        for d, start in zip(numbers.start_index_map, starts, strict=True):
            # out of bounds counts from the front here, negative or not
            places[d] = jnp.clip(start, 0, mat.shape[d] - sizes[d])
        part = bcoo_dynamic_slice(mat, places, sizes)
        return bcoo_squeeze(part, dimensions=numbers.collapsed_slice_dims)

    fun: Any = one
    for _ in range(get_aval(start_indices).ndim - 1):
        fun = vmap(fun)
    return fun(starts)


def _with_axes_at(mat: BCOO, offset_dims: Sequence[int]) -> BCOO:
    """The last axes brought to the places `offset_dims`."""
    n = mat.ndim - len(offset_dims)
    front = iter(range(n))
    back = iter(range(n, mat.ndim))
    order = [next(back) if d in offset_dims else next(front) for d in range(mat.ndim)]
    if order == sorted(order):
        return mat
    # axes from in between are no longer the first ones: they become sparse
    stays = next(i for i, d in enumerate(order) if i != d)
    mat = mat.update_layout(n_batch=min(stays, mat.n_batch))
    return bcoo_transpose(mat, permutation=order)
