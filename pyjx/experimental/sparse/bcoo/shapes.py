"""BCOO arrays rearranged: transposed, reshaped, broadcast, joined, summed, sliced, gathered.

But for `bcoo_transpose` these are plain functions, each compiled as one program."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from pyjx import lax
from pyjx import numpy as jnp
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.integers import as_ints, as_shape
from pyjx.experimental.sparse.bcoo.array import BCOO
from pyjx.experimental.sparse.bcoo.buffers import (
    as_row,
    batch_to_sparse,
    bcoo_sum_duplicates,
    in_bounds,
)
from pyjx.experimental.sparse.formats import SparseInfo, defined_by, function, stretched
from pyjx.jaxlib_api import Sharding
from pyjx.runtime.operations import op_jit
from pyjx.transforms.vmap import vmap


def as_axes(name: str, axes: Any, ndim: int) -> tuple[int, ...]:
    """Different axis numbers of an array of rank `ndim`, counted from the front."""
    given = as_ints(name, "dimensions", axes)
    if any([not -ndim <= a < ndim for a in given]):
        raise ValueError(f"{name}: dimensions {given} are out of bounds for an array of rank "
                         f"{ndim}.")
    positive = tuple([a % ndim for a in given])
    if len(set(positive)) < len(positive):
        raise ValueError(f"{name}: dimensions {given} are not unique.")
    return positive


# -- bcoo_transpose --------------------------------------------------------------------------------


def _parts(permutation: Sequence[int], n_batch: int, n_dense: int
           ) -> tuple[list[int], list[int], list[int]]:
    """The permutations of the batch, of the sparse and of the dense dimensions."""
    first_dense = len(permutation) - n_dense
    return (list(permutation[:n_batch]), [p - n_batch for p in permutation[n_batch:first_dense]],
            [p - first_dense for p in permutation[first_dense:]])


def _transpose(data: ArrayLike, indices: ArrayLike, *, permutation: tuple[int, ...],
               spinfo: SparseInfo) -> list[Any]:
    n_batch = get_aval(indices).ndim - 2
    n_dense = get_aval(data).ndim - 1 - n_batch
    batch, inner, dense = _parts(permutation, n_batch, n_dense)
    data = jnp.transpose(data, (*batch, n_batch, *[n_batch + 1 + p for p in dense]))
    indices = jnp.transpose(indices, (*batch, n_batch, n_batch + 1))
    if inner != sorted(inner):
        indices = indices[..., jnp.array(inner)]
    return [data, indices]


bcoo_transpose_p = defined_by("bcoo_transpose", _transpose, "permutation", "spinfo",
                              multiple_results=True)


@function
def bcoo_transpose(mat: BCOO, *, permutation: Sequence[int]) -> BCOO:
    """The array with its dimensions in another order.

    Args:
      mat: BCOO array.
      permutation: which dimension of `mat` each of the result is. Batch, sparse and dense
        dimensions stay among themselves.

    Raises:
      NotImplementedError: they do not.
      TypeError: it is no permutation.

    >>> from pyjx.experimental import sparse
    >>> sparse.bcoo_transpose(sparse.eye(2, 3), permutation=(1, 0)).shape
    (3, 2)
    """
    perm = as_ints("bcoo_transpose", "permutation", permutation)
    lax.transpose_p.out_avals((ShapedArray(mat.shape, mat.dtype),), {"permutation": perm})
    n_batch, _n_sparse, n_dense, _ = mat._properties()
    batch, _, dense = _parts(perm, n_batch, n_dense)
    if sorted(batch) != list(range(n_batch)):
        raise NotImplementedError("transpose permutation cannot permute batch axes with non-batch "
                                  f"axes; got permutation {perm}, with n_batch={n_batch}.")
    if sorted(dense) != list(range(n_dense)):
        raise NotImplementedError("transpose permutation cannot permute dense axes with non-dense "
                                  f"axes; got permutation {perm}, with n_dense={n_dense}.")
    data, indices = bcoo_transpose_p.bind(
        jnp.asarray(mat.data), jnp.asarray(mat.indices), permutation=perm, spinfo=mat._info)
    unmoved = list(perm) == list(range(mat.ndim))
    return BCOO._of(data, indices, [mat.shape[p] for p in perm],
                    indices_sorted=mat.indices_sorted and unmoved,
                    unique_indices=mat.unique_indices)


# -- bcoo_reshape ----------------------------------------------------------------------------------


def bcoo_reshape(mat: BCOO, *, new_sizes: Sequence[int], dimensions: Sequence[int] | None = None,
                 sharding: Sharding | None = None) -> BCOO:
    """The array with its elements, in row-major order, in another shape.

    Args:
      mat: BCOO array.
      new_sizes: the new shape. The batch dimensions, the sparse and the dense ones each keep their
        number of elements; leading ones of the sparse dimensions become batch dimensions.
      dimensions: the order in which the dimensions of `mat` are read.
      sharding: not used on one device.

    Raises:
      ValueError: the kinds of dimensions would mix, or the sizes do not match.

    >>> from pyjx.experimental import sparse
    >>> sparse.bcoo_reshape(sparse.eye(2), new_sizes=(4,)).indices.tolist()
    [[0], [3]]
    """
    sizes = as_shape("bcoo_reshape", "new_sizes", new_sizes)
    if dimensions is not None:
        perm = as_ints("bcoo_reshape", "dimensions", dimensions)
        if perm != tuple(range(mat.ndim)):
            mat = bcoo_transpose(mat, permutation=perm)
    n_batch, n_sparse, n_dense, _ = mat._properties()
    end = n_batch + n_sparse
    batch_size, dense_size = math.prod(mat.shape[:n_batch]), math.prod(mat.shape[end:])
    last = len(sizes)
    if n_dense:
        while last and (math.prod(sizes[last:]) != dense_size or last == len(sizes)):
            last -= 1
    first = last
    while first and math.prod(sizes[:first]) != batch_size:
        first -= 1
    if math.prod(sizes[:first]) != batch_size:
        raise ValueError("bcoo_reshape: new shape cannot mix batch and sparse dimensions; got "
                         f"shape={mat.shape} new_shape={sizes} with n_batch={n_batch}")
    if (math.prod(sizes[last:]) != dense_size
            or math.prod(sizes[first:last]) != math.prod(mat.shape[n_batch:end])):
        raise ValueError("bcoo_reshape: new shape cannot mix sparse and dense dimensions; got "
                         f"shape={mat.shape} new_shape={sizes} with n_dense={n_dense}")
    return _reshaped(mat, sizes=sizes, first=first, last=last)  # type: ignore[no-any-return]


@op_jit(trees=True, static_argnames=("sizes", "first", "last"))
def _reshaped(mat: BCOO, *, sizes: tuple[int, ...], first: int, last: int) -> Any:
    n_batch, n_sparse, _, _nse = mat._properties()

    def batched(x: Array) -> Any:
        before = get_aval(x).shape[:n_batch]
        if math.prod(before) != math.prod(sizes[:first]):
            x = stretched(x, mat.shape[:n_batch])
        return x.reshape(*sizes[:first], *get_aval(x).shape[n_batch:])

    data, indices = batched(mat.data), batched(mat.indices)
    old, new = mat.shape[n_batch:n_batch + n_sparse], sizes[first:last]
    data = data.reshape(*data.shape[:first + 1], *sizes[last:])
    if old != new:
        inside = in_bounds(indices, old)
        flat = jnp.zeros(indices.shape[:-1], indices.dtype)
        for axis, n in enumerate(old):
            flat = flat * n + indices[..., axis]
        columns = [jnp.where(inside, flat // math.prod(new[i + 1:]) % max(n, 1), n)
                   for i, n in enumerate(new)]
        if columns:
            indices = jnp.stack(columns, -1).astype(indices.dtype)
        else:
            outside = ~inside.reshape(*inside.shape, *[1] * (len(sizes) - last))
            data = jnp.where(outside, jnp.zeros((), data.dtype), data)
            indices = jnp.zeros((*indices.shape[:-1], 0), indices.dtype)
    return BCOO._of(data, indices, sizes)


# -- bcoo_broadcast_in_dim -------------------------------------------------------------------------


def bcoo_broadcast_in_dim(mat: BCOO, *, shape: Sequence[int], broadcast_dimensions: Sequence[int],
                          sharding: Sharding | None = None) -> BCOO:
    """The array with further dimensions along which it is the same.

    New dimensions in front of the sparse ones are batch dimensions, those behind the first dense
    one are dense. Others are sparse; along them each element is stored as often as they are long.

    Args:
      mat: BCOO array.
      shape: that of the result.
      broadcast_dimensions: which dimension of the result each of `mat` is, ascending.
      sharding: not used on one device.

    Raises:
      ValueError: the shapes or dimensions do not fit.

    >>> from pyjx.experimental import sparse
    >>> M = sparse.eye(2)
    >>> sparse.bcoo_broadcast_in_dim(M, shape=(3, 2, 2), broadcast_dimensions=(1, 2))
    BCOO(float32[3, 2, 2], nse=2, n_batch=1)
    """
    new = as_shape("bcoo_broadcast_in_dim", "shape", shape)
    dims = as_ints("bcoo_broadcast_in_dim", "broadcast_dimensions", broadcast_dimensions)
    if (len(dims) != mat.ndim or list(dims) != sorted(set(dims))
            or any([not 0 <= d < len(new) for d in dims])
            or any([n not in (1, new[d]) for n, d in zip(mat.shape, dims, strict=True)])):
        raise ValueError(f"bcoo_broadcast_in_dim: an array of shape {mat.shape} does not fit into "
                         f"shape={new} with broadcast_dimensions={dims}.")
    n_batch, n_sparse, n_dense, _ = mat._properties()
    last = dims[n_batch + n_sparse] if n_dense else len(new)
    first = dims[n_batch] if n_sparse else last
    short = list(new)
    for d in range(first, last):
        short[d] = mat.shape[dims.index(d)] if d in dims else 1
    out = _broadcast(mat, shape=tuple(short), dims=dims, first=first, last=last)
    for d in range(first, last):
        if short[d] != new[d]:
            out = _repeated(out, axis=d, length=new[d])
    return out  # type: ignore[no-any-return]


@op_jit(trees=True, static_argnames=("shape", "dims", "first", "last"))
def _broadcast(mat: BCOO, *, shape: tuple[int, ...], dims: tuple[int, ...], first: int, last: int
               ) -> Any:
    n_batch, n_sparse, _n_dense, nse = mat._properties()

    def batch(x: Array) -> list[int]:
        return [x.shape[dims.index(d)] if d in dims[:n_batch] else shape[d] for d in range(first)]

    dense = [d - last + first + 1 for d in dims[n_batch + n_sparse:]]
    data = lax.broadcast_in_dim(mat.data, (*batch(mat.data), nse, *shape[last:]),
                                (*dims[:n_batch], first, *dense))
    zeros = jnp.zeros(mat.indices.shape[:-1], mat.indices.dtype)
    columns = [mat.indices[..., dims.index(d) - n_batch] if d in dims else zeros
               for d in range(first, last)]
    indices = jnp.stack(columns, -1) if columns else mat.indices[..., :0]
    indices = lax.broadcast_in_dim(indices, (*batch(indices), nse, last - first),
                                   (*dims[:n_batch], first, first + 1))
    return BCOO._of(data, indices, shape, unique_indices=mat.unique_indices)


@op_jit(trees=True, static_argnames=("axis", "length"))
def _repeated(mat: BCOO, *, axis: int, length: int) -> Any:
    """The array with a sparse dimension of length 1 made longer."""
    n_batch, nse = mat.n_batch, mat.nse
    data = jnp.repeat(mat.data, length, n_batch, total_repeat_length=nse * length)
    indices = jnp.repeat(mat.indices, length, n_batch, total_repeat_length=nse * length)
    places = jnp.tile(jnp.arange(length, dtype=indices.dtype), nse)
    column = indices[..., axis - n_batch]
    indices = indices.at[..., axis - n_batch].set(
        jnp.where(column < 1, places, jnp.full_like(column, length)))
    return BCOO._of(data, indices, [*mat.shape[:axis], length, *mat.shape[axis + 1:]],
                    unique_indices=mat.unique_indices)


# -- bcoo_concatenate ------------------------------------------------------------------------------


def bcoo_concatenate(operands: Sequence[BCOO], *, dimension: int) -> BCOO:
    """BCOO arrays joined along a batch or a sparse dimension.

    Args:
      operands: BCOO arrays of one layout, whose shapes are equal but for `dimension`.
      dimension: number of the dimension.

    Raises:
      NotImplementedError: it is a dense one.
      TypeError, ValueError: the arrays do not go together.

    >>> from pyjx.experimental import sparse
    >>> sparse.bcoo_concatenate([sparse.eye(2), sparse.eye(2)], dimension=1)
    BCOO(float32[2, 4], nse=4)
    """
    operands = list(operands)
    if not all([isinstance(x, BCOO) for x in operands]):
        raise ValueError("bcoo_concatenate: expected operands to be a sequence of BCOO arrays. "
                         f"Got {operands}")
    if not operands:
        raise ValueError("concatenate requires a non-empty sequences of arrays")
    first = operands[0]
    (axis,) = as_axes("bcoo_concatenate", (dimension,), first.ndim)
    lax.concatenate_p.out_avals(  # which refuses what does not fit
        tuple([ShapedArray(x.shape, x.dtype) for x in operands]), {"dimension": axis})
    if len({x.n_batch for x in operands}) > 1:
        raise ValueError("bcoo_concatenate requires inputs to have matching batch dimensions.")
    if len({x.n_dense for x in operands}) > 1:
        raise ValueError("bcoo_concatenate requires inputs to have matching nse dimensions.")
    if axis >= first.n_batch + first.n_sparse:
        raise NotImplementedError("Concatenation along dense dimensions.")
    return _concatenated(operands, axis=axis)  # type: ignore[no-any-return]


@op_jit(trees=True, static_argnames=("axis",))
def _concatenated(operands: Sequence[BCOO], *, axis: int) -> Any:
    n_batch = operands[0].n_batch
    total = sum([x.shape[axis] for x in operands])
    shape = (*operands[0].shape[:axis], total, *operands[0].shape[axis + 1:])
    batch = shape[:n_batch]
    if axis < n_batch:
        nse = max([x.nse for x in operands])
        padded = [_padded(x, nse) for x in operands]
        full = [(*batch[:axis], x.shape[axis], *batch[axis + 1:]) for x in operands]
        data = [stretched(x.data, b) for x, b in zip(padded, full, strict=True)]
        indices = [stretched(x.indices, b) for x, b in zip(padded, full, strict=True)]
        return BCOO._of(jnp.concatenate(data, axis), jnp.concatenate(indices, axis), shape)
    offset = 0
    moved = []
    for x in operands:
        column, n = axis - n_batch, x.shape[axis]
        old = x.indices[..., column]
        inside = (old >= 0) & (old < n)
        moved.append(x.indices.at[..., column].set(jnp.where(inside, old + offset, total)))
        offset += n
    data = [stretched(x.data, batch) for x in operands]
    return BCOO._of(jnp.concatenate(data, n_batch),
                    jnp.concatenate([stretched(i, batch) for i in moved], n_batch), shape)


def _padded(mat: BCOO, nse: int) -> BCOO:
    """The array with `nse` elements stored, of which the last may be padding."""
    n_batch, n_sparse, n_dense, before = mat._properties()
    more = nse - before
    if not more:
        return mat
    data = jnp.pad(mat.data, [(0, 0)] * n_batch + [(0, more)] + [(0, 0)] * n_dense)
    sizes = as_row(mat._sparse_shape, mat.indices)
    padding = jnp.broadcast_to(sizes, (*mat.indices.shape[:n_batch], more, n_sparse))
    return BCOO._of(data, jnp.concatenate([mat.indices, padding], n_batch), mat.shape)


# -- bcoo_squeeze, bcoo_rev, bcoo_reduce_sum -------------------------------------------------------


def bcoo_squeeze(arr: BCOO, *, dimensions: Sequence[int]) -> BCOO:
    """The array without some dimensions of length 1.

    Raises:
      ValueError: the length of one is not 1, or there is no such dimension.

    >>> from pyjx.experimental import sparse
    >>> sparse.bcoo_squeeze(sparse.eye(1, 3), dimensions=(0,)).shape
    (3,)
    """
    dims = as_axes("bcoo_squeeze", dimensions, arr.ndim)
    if any([arr.shape[d] != 1 for d in dims]):
        lax.squeeze_p.out_avals((ShapedArray(arr.shape, arr.dtype),), {"dimensions": dims})
    return _squeezed(arr, dims=dims)  # type: ignore[no-any-return]


@op_jit(trees=True, static_argnames=("dims",))
def _squeezed(mat: BCOO, *, dims: tuple[int, ...]) -> Any:
    n_batch, n_sparse, _, _ = mat._properties()
    end = n_batch + n_sparse
    batch = [d for d in dims if d < n_batch]
    mat = _without_columns(mat, [d - n_batch for d in dims if n_batch <= d < end])
    data = lax.squeeze(mat.data, [*batch, *[d - n_sparse + 1 for d in dims if d >= end]])
    return BCOO._of(data, lax.squeeze(mat.indices, batch),
                    [n for d, n in enumerate(mat.shape) if d not in dims], mat.indices_sorted,
                    mat.unique_indices)


def _without_columns(mat: BCOO, dropped: Sequence[int]) -> BCOO:
    """The buffers without some of the indices; elements that are out of bounds there become
    zero."""
    if not dropped:
        return mat
    n_batch, n_sparse, n_dense, _ = mat._properties()
    kept = [i for i in range(n_sparse) if i not in dropped]
    inside = in_bounds(mat.indices[..., jnp.array(dropped)],
                       [mat.shape[n_batch + i] for i in dropped])
    data = jnp.where(inside.reshape(*inside.shape, *[1] * n_dense), mat.data,
                     jnp.zeros((), mat.data.dtype))
    indices = mat.indices[..., jnp.array(kept, int)]
    return BCOO._of(data, indices, mat.shape, mat.indices_sorted, mat.unique_indices)


def bcoo_rev(operand: BCOO, dimensions: Sequence[int]) -> BCOO:
    """The array with the order of its elements reversed along some dimensions.

    >>> from pyjx.experimental import sparse
    >>> sparse.bcoo_rev(sparse.eye(2), (0,)).indices.tolist()
    [[1, 0], [0, 1]]
    """
    return _reversed(operand, dims=as_axes("bcoo_rev", dimensions, operand.ndim))  # type: ignore[no-any-return]


@op_jit(trees=True, static_argnames=("dims",))
def _reversed(mat: BCOO, *, dims: tuple[int, ...]) -> Any:
    n_batch, n_sparse, _, _ = mat._properties()
    end = n_batch + n_sparse

    def of(x: Any, axes: list[int]) -> Any:
        return lax.rev(x, axes) if axes else x

    batch = [d for d in dims if d < n_batch]
    data = of(mat.data, [*batch, *[d - n_sparse + 1 for d in dims if d >= end]])
    indices = of(mat.indices, batch)
    flipped = [n_batch <= d < end and d in dims for d in range(n_batch, end)]
    if any(flipped):
        last = as_row([n - 1 for n in mat.shape[n_batch:end]], indices)
        inside = in_bounds(indices, mat.shape[n_batch:end])[..., None]
        turned = inside & as_row(flipped, indices).astype(bool)
        indices = jnp.where(turned, last - indices, indices)
    return BCOO._of(data, indices, mat.shape)


def bcoo_reduce_sum(mat: BCOO, *, axes: Sequence[int]) -> BCOO:
    """The sum over some dimensions.

    Args:
      mat: BCOO array.
      axes: numbers of the dimensions.

    Returns:
      BCOO array in which indices may occur more than once.

    >>> import pyjx.numpy as jnp
    >>> from pyjx.experimental import sparse
    >>> sparse.bcoo_reduce_sum(sparse.eye(3), axes=(0,)).todense().tolist()
    [1.0, 1.0, 1.0]
    """
    return _sum(mat, axes=as_axes("bcoo_reduce_sum", axes, mat.ndim))  # type: ignore[no-any-return]


@op_jit(trees=True, static_argnames=("axes",))
def _sum(mat: BCOO, *, axes: tuple[int, ...]) -> Any:
    n_batch, n_sparse, _, _ = mat._properties()
    end = n_batch + n_sparse
    shape = [n for d, n in enumerate(mat.shape) if d not in axes]
    mat = _without_columns(mat, [d - n_batch for d in axes if n_batch <= d < end])
    data = mat.data.sum([d - n_sparse + 1 for d in axes if d >= end], dtype=mat.data.dtype)
    batch = [d for d in axes if d < n_batch]
    mat = batch_to_sparse(BCOO._of(data, mat.indices, mat.shape), batch, as_index=False)
    return BCOO._of(mat.data, mat.indices, shape)


def _kept(data: Array, indices: ArrayLike, keep: Any, moved: Any, sizes: Sequence[int],
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

    def batch(x: Array) -> list[slice]:
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
    return _kept(data, indices, keep.all(-1), moved, shape[n_batch:end], shape, mat.unique_indices)


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

    def batch(x: Array) -> tuple[list[Any], list[int]]:
        whole = [x.shape[d] == 1 and mat.shape[d] != 1 for d in range(n_batch)]
        return ([jnp.zeros_like(i) if w else i for i, w in zip(first, whole, strict=False)],
                [1 if w else k for k, w in zip(sizes, whole, strict=False)])

    def part(x: Array, places: list[Any], lengths: list[int]) -> Any:
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


def bcoo_gather(operand: BCOO, start_indices: Any, dimension_numbers: lax.GatherDimensionNumbers,
                slice_sizes: Sequence[int], *, unique_indices: bool = False,
                indices_are_sorted: bool = False, mode: Any = None, fill_value: Any = None) -> BCOO:
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
