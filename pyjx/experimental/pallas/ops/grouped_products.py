"""Products by kernels: of groups of rows, each with a matrix of its own, for TPUs (megablox); and
the simplest, by blocks.

Rows are cut into tiles, whatever groups they are of. A step of a kernel is a tile and one of the
groups in it: a tile with parts of two groups is visited twice, one time after the other. Which
these are is made of the sizes of the groups and fetched before, so that the grid is as long as
there are steps; rows of other groups are masked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from pyjx import numpy as jnp
from pyjx.core import dtypes
from pyjx.core.array_type import Array, DTypeLike
from pyjx.core.records import Record
from pyjx.experimental.pallas import tpu as pltpu
from pyjx.experimental.pallas.in_kernels import cdiv, when
from pyjx.experimental.pallas.kernel_calls import interpreted, pallas_call
from pyjx.experimental.pallas.kernel_grids import (
    BlockSpec,
    PrefetchScalarGridSpec,
    RefLike,
    num_programs,
    program_id,
)
from pyjx.experimental.pallas.ops.attention_kernels import BY_ROWS, PLAIN, product
from pyjx.experimental.pallas.tpu_kernels import MemorySpace
from pyjx.lax.contractions import dot
from pyjx.lax.creation import broadcasted_iota
from pyjx.runtime.abstract import ShapeDtypeStruct
from pyjx.runtime.jit import jit
from pyjx.transforms.custom_vjp import custom_vjp

__all__ = ["gmm", "make_group_metadata", "tgmm"]

Tiling = tuple[int, int, int] | Callable[[int, int, int], tuple[int, int, int] | None] | None


class _How(Record):
    """What the kernels are made for."""

    dtype: Any
    tiling: Tiling
    transpose: bool
    interpret: bool

    def tiles(self, m: int, k: int, n: int) -> tuple[int, int, int]:
        """How many rows, sums and columns a step takes."""
        found = self.tiling(m, k, n) if callable(self.tiling) else self.tiling
        if found is None:
            raise ValueError(f"No tuned tiling found for (m, k, n) = ({m}, {k}, {n})")
        if m % found[0]:
            raise ValueError(f"{m} must be divisible by x-dimension tile size ({found[0]}).")
        return found


# -- the functions ---------------------------------------------------------------------------------


def gmm(lhs: Array, rhs: Array, group_sizes: Array, preferred_element_type: DTypeLike = np.float32,
        tiling: Tiling = (128, 128, 128), group_offset: Array | None = None,
        existing_out: Array | None = None, transpose_rhs: bool = False,
        interpret: bool = False) -> Array:
    """The product of each group of rows with the matrix of the group. It has gradients.

    Args:
      lhs: float32 or bfloat16, of the shape (rows, k), the rows of a group together.
      rhs: a matrix for each group, of the shape (groups, k, n).
      group_sizes: how many rows each group has, int32. Rows behind the last group have no known
        values in the result.
      preferred_element_type: the dtype of the result.
      tiling: how many rows, sums and columns a step takes, or a function of all these that says so;
        the first divides the number of rows.
      group_offset: which group the first matrix is of, a scalar, where there are fewer matrices
        than groups; rows of other groups are 0.
      existing_out: what the result is where no group of the matrices has rows.
      transpose_rhs: whether the matrices have the shape (groups, n, k).
      interpret: make XLA's operations of the kernel, on any platform.

    Raises:
      ValueError: ranks, sizes or dtypes do not fit, or tiles do not divide the rows.

    >>> import pyjx.numpy as jnp
    >>> from pyjx.experimental.pallas.ops.tpu.megablox import gmm
    >>> rhs = jnp.stack([jnp.full((8, 4), 1.0), jnp.full((8, 4), 2.0)])
    >>> out = gmm(jnp.ones((16, 8)), rhs, jnp.array([10, 6]), tiling=(8, 8, 4), interpret=True)
    >>> out[8:12, 0].tolist()
    [8.0, 8.0, 16.0, 16.0]
    """
    _check(lhs, rhs, group_sizes, ("lhs", 2), ("rhs", 3))
    if lhs.shape[1] != rhs.shape[2 if transpose_rhs else 1]:
        raise ValueError(f"gmm: rows of lhs have {lhs.shape[1]} elements, and the matrices of rhs "
                         f"{rhs.shape[2 if transpose_rhs else 1]} to multiply them with.")
    how = _How(dtypes.dtype(preferred_element_type), tiling, transpose_rhs,
               interpret or interpreted())
    start = _offset(group_offset)
    if existing_out is not None and existing_out.dtype != how.dtype:
        raise ValueError("Existing output dtype must match preferred_element_type.")
    return _gmm_program(how, lhs, rhs, group_sizes, start,  # type: ignore[no-any-return]
                        existing_out)


def tgmm(lhs: Array, rhs: Array, group_sizes: Array,
         preferred_element_type: DTypeLike = np.float32, tiling: Tiling = (128, 128, 128),
         group_offset: Array | None = None, num_actual_groups: int | None = None,
         existing_out: Array | None = None, interpret: bool = False) -> Array:
    """The product of the columns of each group with the rows of the group: a matrix for each.

    Args:
      lhs: float32 or bfloat16, of the shape (k, rows).
      rhs: of the shape (rows, n).
      group_sizes: how many rows each group has, int32.
      preferred_element_type: the dtype of the result.
      tiling: how many rows, entries of k and of n a step takes, as of `gmm`.
      group_offset: the first group of the result.
      num_actual_groups: how many groups the result has; all by default.
      existing_out: what the products are added to.
      interpret: make XLA's operations of the kernel, on any platform.

    >>> import pyjx.numpy as jnp
    >>> from pyjx.experimental.pallas.ops.tpu.megablox.gmm import tgmm
    >>> out = tgmm(jnp.ones((4, 16)), jnp.ones((16, 4)), jnp.array([10, 6]), tiling=(8, 4, 4),
    ...            interpret=True)
    >>> out[:, 0, 0].tolist()
    [10.0, 6.0]
    """
    _check(lhs, rhs, group_sizes, ("lhs", 2), ("rhs", 2))
    if lhs.shape[1] != rhs.shape[0]:
        raise ValueError(f"tgmm: lhs has {lhs.shape[1]} columns and rhs {rhs.shape[0]} rows. These "
                         "are multiplied: give both as many.")
    how = _How(dtypes.dtype(preferred_element_type), tiling, False, interpret or interpreted())
    groups = num_actual_groups or group_sizes.shape[0]
    return _tgmm_program(how, groups, lhs, rhs, group_sizes,  # type: ignore[no-any-return]
                         _offset(group_offset), existing_out)


def _check(lhs: Array, rhs: Array, sizes: Array, *ranks: tuple[str, int]) -> None:
    for (name, rank), x in zip(ranks, (lhs, rhs), strict=True):
        if x.ndim != rank:
            raise ValueError(f"Expected {rank}-tensor for '{name}' but got {x.ndim}-tensor.")
        if x.dtype not in (np.float32, dtypes.bfloat16):
            raise ValueError(f"Expected bfloat16 or float32 array but got {x.dtype}.")
    if sizes.dtype not in (np.int32, np.uint32):
        raise ValueError(f"Expected 32-bit integer 'group_sizes' but got {sizes.dtype}.")


def _offset(group_offset: Array | None) -> Array:
    if group_offset is None:
        return jnp.zeros((), np.int32)
    if group_offset.shape:
        raise ValueError(f"group_offset must be a ()-shaped array. Got: {group_offset.shape}.")
    return group_offset


# -- steps -----------------------------------------------------------------------------------------


def make_group_metadata(*, group_sizes: Array, m: int, tm: int, start_group: Array,
                        num_nonzero_groups: int, visit_empty_groups: bool = True
                        ) -> tuple[tuple[Array, Array, Array], Array]:
    """The steps of a kernel on groups of rows.

    Args:
      group_sizes: how many rows each group has.
      m: how many rows there are.
      tm: how many rows a tile has.
      start_group: the first group that counts.
      num_nonzero_groups: how many groups from it on count.
      visit_empty_groups: whether there is a step for a group without rows.

    Returns:
      `(where groups begin, with the end; the group of each step; the tile of each step)`, and how
      many steps there are: what is behind them has no meaning.

    >>> import pyjx.numpy as jnp
    >>> (_, groups, tiles), steps = make_group_metadata(
    ...     group_sizes=jnp.array([3, 5]), m=8, tm=4, start_group=0, num_nonzero_groups=2)
    >>> groups.tolist(), tiles.tolist(), int(steps)
    ([0, 1, 1], [0, 0, 1], 3)
    """
    count, tiles = group_sizes.shape[0], m // tm
    ends: Any = jnp.cumsum(group_sizes).astype(np.int32)
    begins = ends - group_sizes.astype(np.int32)
    offsets = jnp.concatenate([jnp.zeros(1, np.int32), ends])
    ids = jnp.arange(count, dtype=np.int32)
    first = begins // tm
    visits = jnp.where(ends > begins, cdiv(ends, tm) - first, int(visit_empty_groups))
    visits = jnp.where((ids >= start_group) & (ids < start_group + num_nonzero_groups), visits, 0)
    steps = jnp.arange(tiles + count - 1, dtype=np.int32)
    groups = jnp.repeat(ids, visits, total_repeat_length=steps.shape[0])
    before = (jnp.cumsum(visits) - visits).astype(np.int32)
    places = jnp.clip(first[groups] + steps - before[groups], 0, tiles - 1)
    return (offsets, groups, places), jnp.sum(visits).astype(np.int32)


def _in_group(offsets_ref: RefLike, groups_ref: RefLike, tiles_ref: RefLike, step: Array,
              shape: Sequence[int], axis: int) -> Array:
    """Which entries of a tile are of the group of a step; its rows lie along an axis."""
    group = groups_ref[step]
    rows = broadcasted_iota(np.int32, tuple(shape), axis) + tiles_ref[step] * shape[axis]
    return (rows >= offsets_ref[group]) & (rows < offsets_ref[group + 1])


def _of_sums(x: Array, axis: int, k: int) -> Array:
    """A block, 0 where it sticks out of an axis of k elements over which sums go."""
    size = x.shape[axis]
    if k % size == 0:
        return x
    places = broadcasted_iota(np.int32, x.shape, axis) + program_id(2) * size
    return jnp.where(places < k, x, jnp.zeros_like(x))


def _common(a: Array, b: Array) -> tuple[Array, Array]:
    """Both as bfloat16 if they are, or as float32."""
    dtype = dtypes.bfloat16 if a.dtype == b.dtype == dtypes.bfloat16 else np.float32
    return a.astype(dtype), b.astype(dtype)


# -- products of rows ------------------------------------------------------------------------------


def _gmm(how: _How, lhs: Array, rhs: Array, sizes: Array, start: Array,
         existing: Array | None) -> Array:
    m, k = lhs.shape
    groups, n = rhs.shape[0], rhs.shape[1 if how.transpose else 2]
    tm, tk, tn = how.tiles(m, k, n)
    if existing is not None and existing.shape != (m, n):
        raise ValueError(f"gmm: existing_out has the shape {existing.shape}; expected ({m}, {n}), "
                         "that of the result.")
    metadata, steps = make_group_metadata(group_sizes=sizes, m=m, tm=tm, start_group=start,
                                          num_nonzero_groups=groups, visit_empty_groups=False)

    def matrix(i: Any, t: Any, j: Any, offsets: Any, groups: Any, tiles: Any, start: Any) -> Any:
        return (groups[t] - start[0], *((i, j) if how.transpose else (j, i)))

    out = BlockSpec((tm, tn), lambda i, t, j, offsets, groups, tiles, start: (tiles[t], i))
    spec = PrefetchScalarGridSpec(
        num_scalar_prefetch=4, grid=(cdiv(n, tn), steps, cdiv(k, tk)),
        in_specs=[BlockSpec((tm, tk), lambda i, t, j, offsets, groups, tiles, start: (tiles[t], j)),
                  BlockSpec((None, tn, tk) if how.transpose else (None, tk, tn), matrix),
                  None if existing is None else out],
        out_specs=out, scratch_shapes=[MemorySpace.VMEM((tm, tn), np.float32)])
    run = pallas_call(
        partial(_gmm_kernel, how, k), out_shape=ShapeDtypeStruct((m, n), how.dtype), grid_spec=spec,
        input_output_aliases={} if existing is None else {6: 0}, interpret=how.interpret,
        compiler_params=pltpu.CompilerParams(
            dimension_semantics=("parallel", "arbitrary", "arbitrary")), name="gmm")
    found = run(*metadata, start[None], lhs, rhs, existing)
    if existing is None and groups < sizes.shape[0]:
        return jnp.where(_rows_of(metadata[0], start, groups, m)[:, None], found, 0)
    return found  # type: ignore[no-any-return]


def _gmm_kernel(how: _How, k: int, offsets_ref: RefLike, groups_ref: RefLike, tiles_ref: RefLike,
                _start_ref: RefLike, lhs_ref: RefLike, rhs_ref: RefLike,
                existing_ref: RefLike | None, out_ref: RefLike, sum_ref: RefLike) -> None:
    step = program_id(1)

    if existing_ref is not None:
        @when((step == 0) | (tiles_ref[jnp.maximum(step - 1, 0)] != tiles_ref[step]))
        def begin() -> None:
            out_ref[...] = existing_ref[...]

    @when(program_id(2) == 0)
    def _() -> None:
        sum_ref[...] = jnp.zeros_like(sum_ref)

    lhs, rhs = _common(_of_sums(lhs_ref[...], 1, k),
                       _of_sums(rhs_ref[...], 1 if how.transpose else 0, k))
    sum_ref[...] += product(lhs, rhs, BY_ROWS if how.transpose else PLAIN)

    @when(program_id(2) == num_programs(2) - 1)
    def _() -> None:
        mine = _in_group(offsets_ref, groups_ref, tiles_ref, step, out_ref.shape, 0)
        out_ref[...] = jnp.where(mine, sum_ref[...].astype(out_ref.dtype), out_ref[...])


def _rows_of(offsets: Array, start: Array, groups: int, m: int) -> Array:
    """Which rows are of the groups from `start` on."""
    rows = jnp.arange(m, dtype=np.int32)
    return (rows >= offsets[start]) & (rows < offsets[start + groups])


# -- products of columns with rows -----------------------------------------------------------------


def _tgmm(how: _How, groups: int, lhs: Array, rhs: Array, sizes: Array, start: Array,
          existing: Array | None) -> Array:
    (k, m), n = lhs.shape, rhs.shape[1]
    tm, tk, tn = how.tiles(m, k, n)
    if existing is not None and (existing.shape, existing.dtype) != ((groups, k, n), how.dtype):
        raise ValueError(f"tgmm: existing_out is {existing.dtype}{list(existing.shape)}; expected "
                         f"{how.dtype}{[groups, k, n]}, as the result.")
    metadata, steps = make_group_metadata(
        group_sizes=sizes, m=m, tm=tm, start_group=start, num_nonzero_groups=groups)
    out = BlockSpec((None, tk, tn), lambda i, j, t, offsets, groups, tiles, start: (
        groups[t] - start[0], j, i))
    spec = PrefetchScalarGridSpec(
        num_scalar_prefetch=4, grid=(cdiv(n, tn), cdiv(k, tk), steps),
        in_specs=[BlockSpec((tk, tm), lambda i, j, t, offsets, groups, tiles, start: (j, tiles[t])),
                  BlockSpec((tm, tn), lambda i, j, t, offsets, groups, tiles, start: (tiles[t], i)),
                  None if existing is None else out],
        out_specs=out, scratch_shapes=[MemorySpace.VMEM((tk, tn), np.float32)])
    run = pallas_call(
        _tgmm_kernel, out_shape=ShapeDtypeStruct((groups, k, n), how.dtype), grid_spec=spec,
        input_output_aliases={} if existing is None else {6: 0}, interpret=how.interpret,
        compiler_params=pltpu.CompilerParams(
            dimension_semantics=("parallel", "arbitrary", "arbitrary")), name="tgmm")
    return run(*metadata, start[None], lhs, rhs, existing)  # type: ignore[no-any-return]


def _tgmm_kernel(offsets_ref: RefLike, groups_ref: RefLike, tiles_ref: RefLike, _start_ref: RefLike,
                 lhs_ref: RefLike, rhs_ref: RefLike, existing_ref: RefLike | None, out_ref: RefLike,
                 sum_ref: RefLike) -> None:
    step, last = program_id(2), num_programs(2) - 1
    group = groups_ref[step]

    @when((step == 0) | (groups_ref[jnp.maximum(step - 1, 0)] != group))
    def _() -> None:
        sum_ref[...] = jnp.zeros_like(sum_ref)

    @when(offsets_ref[group + 1] > offsets_ref[group])
    def _() -> None:
        parts = [jnp.where(_in_group(offsets_ref, groups_ref, tiles_ref, step, ref.shape, axis),
                           ref[...], jnp.zeros_like(ref[...]))
                 for ref, axis in ((lhs_ref, 1), (rhs_ref, 0))]
        sum_ref[...] += product(*_common(*parts))

    @when((step == last) | (groups_ref[jnp.minimum(step + 1, last)] != group))
    def _() -> None:
        total = sum_ref[...]
        if existing_ref is not None:
            total = total + existing_ref[...].astype(np.float32)
        out_ref[...] = total.astype(out_ref.dtype)


# -- gradients -------------------------------------------------------------------------------------


def _gmm_forward(how: _How, lhs: Array, rhs: Array, sizes: Array, start: Array,
                 existing: Array | None) -> tuple[Array, Any]:
    return _gmm(how, lhs, rhs, sizes, start, existing), (lhs, rhs, sizes, start, existing is None)


def _gmm_backward(how: _How, saved: Any, ct: Array) -> Any:
    lhs, rhs, sizes, start, alone = saved
    back = how._replace(dtype=lhs.dtype, transpose=not how.transpose)
    lhs_ct = _gmm(back, ct, rhs, sizes, start, None)
    rhs_ct = _tgmm(how._replace(dtype=rhs.dtype), rhs.shape[0], lhs.T, ct, sizes, start, None)
    if how.transpose:
        rhs_ct = jnp.swapaxes(rhs_ct, 1, 2)
    existing_ct = None
    if not alone:
        offsets = jnp.concatenate([jnp.zeros(1, np.int32), jnp.cumsum(sizes)])
        mine = _rows_of(offsets, start, rhs.shape[0], lhs.shape[0])
        existing_ct = jnp.where(mine[:, None], 0, ct)
    return lhs_ct, rhs_ct, None, None, existing_ct


_gmm_with_gradients = custom_vjp(_gmm, nondiff_argnums=(0,))
_gmm_with_gradients.defvjp(_gmm_forward, _gmm_backward)
_gmm_program = jit(_gmm_with_gradients, static_argnums=0)
_tgmm_program = jit(_tgmm, static_argnums=(0, 1))


# -- simple products -------------------------------------------------------------------------------


def matmul_kernel(x_tile_ref: RefLike, y_tile_ref: RefLike, o_tile_ref: RefLike,
                  acc_ref: RefLike) -> None:
    """The kernel of `matmul`, whose last axis of the grid goes over the sums."""
    @when(program_id(2) == 0)
    def _() -> None:
        acc_ref[...] = jnp.zeros_like(acc_ref)

    acc_ref[...] += dot(x_tile_ref[...], y_tile_ref[...], preferred_element_type=acc_ref.dtype)

    @when(program_id(2) == num_programs(2) - 1)
    def _() -> None:
        o_tile_ref[...] = acc_ref[...].astype(o_tile_ref.dtype)


def matmul(x: Array, y: Array, *, block_shape: tuple[int, int], block_k: int = 256,
           out_dtype: DTypeLike | None = None, debug: bool = False) -> Array:
    """A product of matrices, by a kernel for TPUs.

    Elsewhere it runs within `pltpu.force_tpu_interpret_mode()`.

    Args:
      x, y: matrices.
      block_shape: how many rows and columns of the result a program computes.
      block_k: how many sums it takes at a time; it divides their number.
      out_dtype: the dtype of the result, that of both by default.
      debug: accepted.

    Raises:
      TypeError: they have two dtypes, and no `out_dtype` is given.
      ValueError: the shapes do not fit.

    >>> import pyjx.numpy as jnp
    >>> from pyjx.experimental.pallas import tpu as pltpu
    >>> from pyjx.experimental.pallas.ops.tpu.matmul import matmul
    >>> with pltpu.force_tpu_interpret_mode():
    ...     out = matmul(jnp.ones((16, 256)), jnp.ones((256, 128)), block_shape=(8, 128))
    ...
    >>> float(out[0, 0])
    256.0
    """
    (m, k), (inner, n) = x.shape, y.shape
    if out_dtype is None and x.dtype != y.dtype:
        raise TypeError("Cannot deduce output dtype for different input dtypes: "
                        f"{x.dtype}, {y.dtype}")
    rows, columns, sums = *block_shape, min(block_k, k)
    if k != inner or k % sums:
        raise ValueError(f"matmul: x has {k} columns and y {inner} rows, block_k is {block_k}. "
                         "Give as many of both, and a block_k that divides them.")
    kept = np.int32 if x.dtype.kind in "iu" else np.float32
    run = pallas_call(
        matmul_kernel, grid=(cdiv(m, rows), cdiv(n, columns), k // sums),
        out_shape=ShapeDtypeStruct((m, n), dtypes.dtype(out_dtype or x.dtype)),
        in_specs=[BlockSpec((rows, sums), lambda i, j, s: (i, s)),
                  BlockSpec((sums, columns), lambda i, j, s: (s, j))],
        out_specs=BlockSpec((rows, columns), lambda i, j, s: (i, j)),
        scratch_shapes=[MemorySpace.VMEM((rows, columns), kept)],
        compiler_params=pltpu.CompilerParams(
            dimension_semantics=("parallel", "parallel", "arbitrary")),
        name="matmul")
    return run(x, y)  # type: ignore[no-any-return]


def double_kernel(x_ref: RefLike, y_ref: RefLike) -> None:
    """The kernel of `double`."""
    y_ref[...] = x_ref[...] * 2


def double(x: Array) -> Array:
    """Twice an array, by a kernel."""
    run = pallas_call(double_kernel, ShapeDtypeStruct(x.shape, x.dtype), name="double")
    return run(x)  # type: ignore[no-any-return]
