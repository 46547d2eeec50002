"""Kernels of attention whose scores are never in memory, forwards and backwards; what they share
with others, and attention without kernels, which they are compared with.

Each program of the forward kernel has a block of queries, and goes over the blocks of keys with the
greatest score so far, the sum of the exponentials and that of the values times these. Backwards the
weights are made again from the greatest score and the sum: one kernel goes over the queries for
the gradients of keys and values, with keys as rows, so that nothing has to be transposed, and
another one over the keys for those of queries and of the bias.

Which queries see which keys is said by their order, by segments, and by tables of blocks, of which
those that nobody sees are neither fetched nor computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from pyjx import numpy as jnp
from pyjx.core.array_type import Array
from pyjx.core.avals import get_aval
from pyjx.core.places import joined
from pyjx.core.primitive import vary
from pyjx.core.records import Record
from pyjx.engine.axes import broadcast_in_dim
from pyjx.experimental.pallas import tpu as pltpu
from pyjx.experimental.pallas.in_kernels import cdiv, when
from pyjx.experimental.pallas.kernel_calls import pallas_call
from pyjx.experimental.pallas.kernel_grids import (
    BlockSpec,
    PrefetchScalarGridSpec,
    RefLike,
    num_programs,
    program_id,
)
from pyjx.experimental.pallas.tpu_kernels import MemorySpace
from pyjx.lax.contractions import dot_general
from pyjx.lax.convert import convert_element_type
from pyjx.lax.creation import broadcasted_iota
from pyjx.numpy.ufuncs import where
from pyjx.runtime.abstract import ShapeDtypeStruct
from pyjx.runtime.jit import jit
from pyjx.transforms.custom_vjp import custom_vjp
from pyjx.tree_util import tree_leaves, tree_map

# -- what kernels of attention share ---------------------------------------------------------------

# Vectors of a TPU have eight rows of 128 lanes. A number for each row of a block lies in 128 equal
# lanes, and one for each column in eight equal rows; kernels read the first of them.

LANES = 128
SUBLANES = 8
# What is added to the score of a key that a query does not see: it leaves no other bit of it.
MASK_VALUE = -0.7 * float(np.finfo(np.float32).max)
# Products of rows with rows: the last axes are those that are summed.
BY_ROWS = (((1,), (1,)), ((), ()))
# Products of matrices.
PLAIN = (((1,), (0,)), ((), ()))


class SegmentIds(NamedTuple):
    """Which segment each query and each key is of: queries see the keys of their own.

    Args:
      q: integers, of the shape (batch, queries).
      kv: the same of keys.
    """

    q: Any
    kv: Any


def product(a: Array, b: Array, dimensions: Any = PLAIN) -> Array:
    """A product whose sums are float32."""
    return dot_general(a, b, dimensions, preferred_element_type=np.float32)


def down(x: Array) -> Array:
    """Numbers along the last axis as those of rows."""
    return broadcast_in_dim(x, (*x.shape, LANES), range(x.ndim))


def across(x: Array) -> Array:
    """Numbers along the last axis as those of columns."""
    *outer, n = x.shape
    return broadcast_in_dim(x, (*outer, SUBLANES, n), (*range(x.ndim - 1), x.ndim))


def visible(shape: tuple[int, ...], row: Any, column: Any, *, query_axis: int, causal: bool,
            row_ids: Array | None, column_ids: Array | None) -> Array | None:
    """Which entries of a block of scores count: a mask, or None for all.

    Args:
      shape: that of the block.
      row, column: the positions of its first row and column.
      query_axis: whether its rows are queries, 0, or its columns, 1.
      causal: whether queries see no later keys.
      row_ids, column_ids: the segments of rows, a column of them, and of columns, a row of them.
    """
    seen = None
    if causal:
        rows = row + broadcasted_iota(np.int32, shape, 0)
        columns = column + broadcasted_iota(np.int32, shape, 1)
        seen = rows >= columns if query_axis == 0 else columns >= rows
    if row_ids is not None and column_ids is not None:
        same = row_ids == column_ids
        seen = same if seen is None else seen & same
    return seen


def masked(scores: Array, seen: Array | None, mask_value: float = MASK_VALUE) -> Array:
    """Scores, of which those that do not count are as little as can be."""
    return scores if seen is None else scores + where(seen, 0.0, mask_value)


def as_float32(x: Array) -> Array:
    return convert_element_type(x, np.float32)


# -- attention without kernels ---------------------------------------------------------------------

__all__ = ["mha_reference", "mha_reference_bwd", "mha_reference_no_custom_vjp"]


def _plain_scores(q: Array, k: Array, ab: Array | None, ids: SegmentIds | None, causal: bool,
                  mask_value: float, scale: float) -> Array:
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k)
    if ab is not None:
        scores = scores + ab
    scores = scores * scale
    seen = None
    if ids is not None:
        seen = ids.q[:, None, :, None] == ids.kv[:, None, None, :]
    if causal:
        earlier = jnp.tri(q.shape[2], k.shape[2], dtype=bool)[None, None]
        seen = earlier if seen is None else seen & earlier
    return masked(scores, seen, mask_value)


def mha_reference_no_custom_vjp(q: Array, k: Array, v: Array, ab: Array | None = None,
                                segment_ids: SegmentIds | None = None, *, causal: bool = False,
                                mask_value: float = MASK_VALUE, sm_scale: float = 1.0,
                                save_residuals: bool = False) -> Any:
    """What `flash_attention` computes, without kernels.

    Args:
      q, k, v, ab, segment_ids, causal, sm_scale: as of `flash_attention`.
      mask_value: what is added to the score of a key that a query does not see.
      save_residuals: whether the sums of the exponentials and the greatest scores come, too.
    """
    scores = _plain_scores(q, k, ab, segment_ids, causal, mask_value, sm_scale)
    top = jnp.max(scores, -1)
    weights = jnp.exp(scores - top[..., None])
    total = jnp.sum(weights, -1)
    out = jnp.einsum("bhqk,bhkd->bhqd", weights / total[..., None], v).astype(q.dtype)
    return (out, total, top) if save_residuals else out


def mha_reference(q: Array, k: Array, v: Array, ab: Array | None,
                  segment_ids: SegmentIds | None = None, causal: bool = False,
                  mask_value: float = MASK_VALUE, sm_scale: float = 1.0) -> Array:
    """What `flash_attention` computes, without kernels.

    Args:
      q, k, v, ab, segment_ids, causal, sm_scale: as of `flash_attention`.
      mask_value: what is added to the score of a key that a query does not see.
    """
    return mha_reference_no_custom_vjp(  # type: ignore[no-any-return]
        q, k, v, ab, segment_ids, causal=causal, mask_value=mask_value, sm_scale=sm_scale)


def mha_reference_bwd(q: Array, k: Array, v: Array, ab: Array | None,
                      segment_ids: SegmentIds | None, o: Array, l: Array, m: Array,  # noqa: E741
                      do: Array, causal: bool = False, mask_value: float = MASK_VALUE,
                      sm_scale: float = 1.0) -> tuple[Array, Array, Array, Array | None]:
    """The gradients of queries, keys, values and the bias, without kernels.

    Args:
      q, k, v, ab, segment_ids, causal, mask_value, sm_scale: as of `mha_reference`.
      o: the result.
      l, m: the sums of the exponentials, and the greatest scores.
      do: the cotangent of the result.
    """
    scores = _plain_scores(q, k, ab, segment_ids, causal, mask_value, sm_scale)
    weights = jnp.exp(scores - m[..., None]) / l[..., None]
    dots = jnp.sum(as_float32(o) * as_float32(do), -1, keepdims=True)
    slopes = weights * (jnp.einsum("bhqd,bhkd->bhqk", do, v) - dots) * sm_scale
    return (jnp.einsum("bhqk,bhkd->bhqd", slopes, k).astype(q.dtype),
            jnp.einsum("bhqk,bhqd->bhkd", slopes, q).astype(k.dtype),
            jnp.einsum("bhqk,bhqd->bhkd", weights, do).astype(v.dtype),
            None if ab is None else slopes.astype(ab.dtype))


# -- the kernels -----------------------------------------------------------------------------------

Part = RefLike | None  # of what may not be given


class Sizes(Record):
    """How many queries and keys a program of a kernel gets, and how many of the inner ones, or of
    both, it computes at once."""

    rows: int
    columns: int
    rows_at_once: int
    columns_at_once: int
    row_name: str = ""  # what the caller calls them
    column_name: str = ""


def check_block(name: str, of: str, block: int, length: int) -> None:
    if block > length:
        raise ValueError(f"{name}={block} should be smaller or equal to {of}={length}")
    if block < 1 or length % block:
        raise ValueError(f"{of}={length} should be divisible by {name}={block}")


class How(Record):
    """What the kernels are made for; without sizes of backward kernels there are no gradients.
    `sums` says whether those of the exponentials are a result."""

    causal: bool
    scale: float
    interpret: object
    forward: Sizes
    keys: Sizes | None
    queries: Sizes | None
    soft_cap: float | None = None
    sums: bool = False
    mask_value: float = MASK_VALUE
    name: str = "flash_attention"


class Blocks(Record):
    """Tables of the blocks of scores, each of the shape (some heads, blocks of queries, blocks of
    keys): what is seen of a block, nothing 0, a part 1 or all 2; which block is fetched in its
    turn; and which of `masks`, int8 of the shape (any, rows, columns), says the part."""

    seen: Array
    fetched: Array
    masked: Array
    masks: Array


class Tables(Record):
    """The tables of the three kernels. Those of keys have rows and columns of masks exchanged."""

    forward: Blocks | None
    keys: Blocks | None
    queries: Blocks | None


class Inputs(Record):
    """What attention is of: queries (batch, heads, queries, size), keys and values of as many heads
    or of groups of these, a bias of all scores, segments, and tables."""

    q: Array
    k: Array
    v: Array
    ab: Array | None = None
    ids: SegmentIds | None = None
    tables: Tables | None = None


# -- the function ----------------------------------------------------------------------------------


@partial(custom_vjp, nondiff_argnums=(0,))
def _attention(how: How, given: tuple[Any, ...]) -> tuple[Array, Array | None]:
    out, *numbers = _forward(how, Inputs(*given), residuals=how.sums)
    return out, _sums(*numbers) if how.sums else None


def _attention_forward(how: How, given: tuple[Any, ...]) -> tuple[Any, Any]:
    if how.keys is None or how.queries is None:
        raise ValueError("Program is being differentiated, but not all backward blocks are "
                         "specified")
    out, top, total = _forward(how, Inputs(*given), residuals=True)
    saved = given, out, top[..., 0], total[..., 0]
    return (out, _sums(top, total) if how.sums else None), saved


def _sums(top: Array, total: Array) -> Array:
    """The logarithm of the sum of the exponentials of each query's scores."""
    return top[..., 0] + jnp.log(total[..., 0])


def _attention_backward(how: How, saved: Any, cts: Any) -> Any:
    given, out, top, total = saved
    inputs, (ct, ct_sums) = Inputs(*given), cts
    dots = jnp.sum(as_float32(out) * as_float32(ct), -1)
    if ct_sums is not None:
        dots = dots - ct_sums
    blocks = inputs.tables and inputs.tables.forward
    rows = _Rows(top, _shrink(how, blocks, top, total), dots)
    dk, dv = _keys_gradients(how, inputs, ct, rows)
    dq, dab = _queries_gradients(how, inputs, ct, rows)
    return ((dq, dk, dv, dab, None, None),)


_attention.defvjp(_attention_forward, _attention_backward)
_program = jit(_attention, static_argnums=0)


def attention(how: How, given: Inputs) -> tuple[Array, Array | None]:
    """softmax((q k^T + ab) * scale) v, and, if they are asked for, the logarithms of the sums of
    exponentials for each query, float32 of the shape (batch, heads, queries)."""
    axes = joined(list(map(get_aval, tree_leaves(tuple(given)))))
    alike = tree_map(lambda x: vary(x, axes), tuple(given))  # so gradients are summed over a mesh
    return _program(how, alike)  # type: ignore[no-any-return]


# -- blocks of a call ------------------------------------------------------------------------------


class _Rows(Record):
    """Numbers for each query, of the shape (batch, heads, queries): the greatest score, one by the
    sum of the exponentials, and the sum of the result times its cotangent."""

    top: Array
    shrink: Array
    dots: Array

    def along(self, lay: Callable[[Array], Array]) -> list[Array]:
        return [lay(x) for x in (self.top, self.shrink, self.dots)]


class _Kernel:
    """What the programs of a kernel get: blocks of scores whose rows are queries, or keys if
    `turned`, and what is known of them by tables."""

    def __init__(self, how: How, sizes: Sizes | None, given: Inputs, blocks: Blocks | None,
                 turned: bool = False) -> None:
        assert sizes is not None
        batch, heads, queries, _ = given.q.shape
        (own, length), (of, others) = [("q_seq_len", queries), ("kv_seq_len", given.k.shape[2])][
            ::-1 if turned else 1]
        check_block(sizes.row_name, own, sizes.rows, length)
        check_block(sizes.column_name, of, sizes.columns, others)
        self.how, self.sizes, self.blocks, self._turned = how, sizes, blocks, turned
        self._grid = batch, heads, length // sizes.rows, others // sizes.columns
        self.group = heads // given.k.shape[1]
        self._heads = 1 if blocks is None else heads // blocks.seen.shape[0]
        self._ids = given.ids and (given.ids[::-1] if turned else given.ids)

    def _entry(self, table: Any, h: Any, i: Any, j: Any) -> Any:
        """That of a table, whose rows are queries, for a program."""
        return table[(h // self._heads, *((j, i) if self._turned else (i, j)))]

    def _block(self, h: Any, i: Any, j: Any, *tables: Any) -> Any:
        """Which block of columns a program fetches: where nothing is computed, none is fetched."""
        rows, columns = self.sizes.rows, self.sizes.columns
        if tables:
            return self._entry(tables[1], h, i, j)
        if not self.how.causal:
            return j
        if self._turned:
            return jnp.maximum(j, jnp.minimum(i * rows // columns, self._grid[3] - 1))
        return jnp.minimum(j, cdiv((i + 1) * rows, columns) - 1)

    def own(self, size: int) -> BlockSpec:
        """Rows of the program's own, the i-th block of them; keys are shared by heads."""
        group = self.group if self._turned else 1
        return BlockSpec((None, None, self.sizes.rows, size),
                         lambda b, h, i, *_: (b, h // group, i, 0))

    def results(self, size: int) -> BlockSpec:
        """The same rows of what each head has for itself."""
        return BlockSpec((None, None, self.sizes.rows, size), lambda b, h, i, *_: (b, h, i, 0))

    def others(self, size: int) -> BlockSpec:
        """Rows that stand as columns of the scores, of the block that a program fetches."""
        group = 1 if self._turned else self.group
        return BlockSpec((None, None, self.sizes.columns, size),
                         lambda b, h, *at: (b, h // group, self._block(h, *at), 0))

    def numbers(self) -> BlockSpec:
        """Numbers for each column, of that block."""
        return BlockSpec((None, None, SUBLANES, self.sizes.columns),
                         lambda b, h, *at: (b, h, 0, self._block(h, *at)))

    def scores(self) -> BlockSpec:
        """What is added to scores, of that block."""
        return BlockSpec((None, None, self.sizes.rows, self.sizes.columns),
                         lambda b, h, i, *at: (b, h, i, self._block(h, i, *at)))

    def _behind(self, scores: BlockSpec | None) -> list[BlockSpec | None]:
        """Specs of what stands behind the arguments: the bias, the segments of rows, the i-th block
        of them, and of columns, and the masks."""
        rows, columns = self.sizes.rows, self.sizes.columns
        ids: list[BlockSpec | None] = [None, None] if self._ids is None else [
            BlockSpec((None, rows, LANES), lambda b, h, i, *_: (b, i, 0)),
            BlockSpec((None, SUBLANES, columns), lambda b, *at: (b, 0, self._block(*at)))]
        return [scores, *ids, None if self.blocks is None else BlockSpec(
            (None, rows, columns),
            lambda b, h, i, j, *tables: (self._entry(tables[2], h, i, j), 0, 0))]

    def call(self, kernel: Callable[..., None], name: str, out_shape: Any, in_specs: list[Any],
             scores: BlockSpec | None, out_specs: Any, scratch: Any) -> Callable[..., Any]:
        """The function that runs a kernel on arguments and the bias, before which the kernel gets
        tables, and behind which segments and masks."""
        tables = self.blocks and [self.blocks.seen, self.blocks.fetched, self.blocks.masked]
        params = pltpu.CompilerParams(
            dimension_semantics=("parallel", "parallel", "parallel", "arbitrary"))
        run = pallas_call(
            partial(kernel, self), out_shape=out_shape,
            grid_spec=PrefetchScalarGridSpec(len(tables or ()), self._grid,
                                             [*in_specs, *self._behind(scores)], out_specs,
                                             scratch),
            compiler_params=params, interpret=self.how.interpret, name=f"{self.how.name}{name}")
        masks = None if self.blocks is None else self.blocks.masks
        ids = (None, None) if self._ids is None else (down(self._ids[0]), across(self._ids[1]))
        return lambda *args: run(*tables or (), *args, *ids, masks)

    def split(self, refs: Sequence[Any]) -> tuple[Any, Any, Any, Sequence[Any]]:
        """In a kernel: what is seen of the program's block of scores, None without tables, the
        positions of its first row and column, and the references behind those to tables."""
        row, column = program_id(2) * self.sizes.rows, program_id(3) * self.sizes.columns
        if self.blocks is None:
            return None, row, column, refs
        seen = self._entry(refs[0], program_id(1), program_id(2), program_id(3))
        return seen, row, column, refs[3:]


def _parts(whole: int, part: int) -> Iterator[slice]:
    return (slice(start, start + part) for start in range(0, whole, part))


def _read(ref: Part, *part: slice) -> Any:
    """A part of a block that may not be there."""
    return None if ref is None else ref[part]


# -- forwards --------------------------------------------------------------------------------------


def _forward(how: How, given: Inputs, residuals: bool) -> list[Array]:
    """The result, and with `residuals` the greatest score and the sum for each query, in lanes."""
    q, k, v, ab, _, tables = given
    kernel = _Kernel(how, how.forward, given, tables and tables.forward)
    size, out_size, rows = q.shape[-1], v.shape[-1], how.forward.rows
    number = ShapeDtypeStruct((*q.shape[:3], LANES), np.float32)
    run = kernel.call(
        _forward_kernel, "",
        [ShapeDtypeStruct((*q.shape[:3], out_size), q.dtype), *[number] * 2 * residuals],
        [kernel.own(size), kernel.others(size), kernel.others(out_size)],
        None if ab is None else kernel.scores(),
        [kernel.own(out_size), *[kernel.own(LANES)] * 2 * residuals],
        {"top_ref": MemorySpace.VMEM((rows, LANES), np.float32),
         "total_ref": MemorySpace.VMEM((rows, LANES), np.float32),
         "sum_ref": MemorySpace.VMEM((rows, out_size), np.float32)})
    return run(q, k, v, ab)  # type: ignore[no-any-return]


def begin_rows(mask_value: float, top_ref: RefLike, total_ref: RefLike, sum_ref: RefLike) -> None:
    """Let rows of scores have no column yet."""
    top_ref[...] = jnp.full_like(top_ref, mask_value)
    total_ref[...] = jnp.zeros_like(total_ref)
    sum_ref[...] = jnp.zeros_like(sum_ref)


def add_to_rows(scores: Array, v: Array, top_ref: RefLike, total_ref: RefLike, sum_ref: RefLike
                ) -> None:
    """Add columns to rows of scores: to their maximum, and to the sums, relative to that, of the
    weights and of the weighted values."""
    old = top_ref[:, :1]
    top = jnp.maximum(old, jnp.max(scores, 1, keepdims=True))
    weights, shrink = jnp.exp(scores - top), jnp.exp(old - top)
    total = total_ref[:, :1] * shrink + jnp.sum(weights, 1, keepdims=True)
    sum_ref[...] = sum_ref[...] * shrink + product(weights.astype(v.dtype), v)
    top_ref[...] = jnp.broadcast_to(top, top_ref.shape)
    total_ref[...] = jnp.broadcast_to(total, total_ref.shape)


def _forward_kernel(kernel: _Kernel, *refs: Any, top_ref: RefLike, total_ref: RefLike,
                    sum_ref: RefLike) -> None:
    seen, row, column, (q_ref, k_ref, v_ref, ab_ref, q_ids_ref, k_ids_ref, mask_ref, o_ref,
                        *saved) = kernel.split(refs)
    how, sizes = kernel.how, kernel.sizes

    @when(program_id(3) == 0)
    def _() -> None:
        begin_rows(how.mask_value, top_ref, total_ref, sum_ref)

    def part(at: slice) -> None:
        scores, _ = _scored(how, product(q_ref[...], k_ref[at, :], BY_ROWS), seen, (
            ab_ref, q_ids_ref, k_ids_ref, mask_ref), slice(None), at, row, column + at.start, 0)
        add_to_rows(scores, v_ref[at, :], top_ref, total_ref, sum_ref)

    @_where_visible(how, seen, row + sizes.rows - 1, column)
    def _() -> None:
        for at in _parts(sizes.columns, sizes.columns_at_once):
            part(at)

    @when(program_id(3) == num_programs(3) - 1)
    def _() -> None:
        shrink = _shrink(how, kernel.blocks, top_ref[:, :1], total_ref[:, :1])
        o_ref[...] = (sum_ref[...] * shrink).astype(o_ref.dtype)
        for ref, value in zip(saved, (top_ref, total_ref), strict=False):
            ref[...] = value[...]


def _shrink(how: How, blocks: Blocks | None, top: Array, total: Array) -> Array:
    """One by the sum of a query's exponentials; 0 for one that sees nothing by a table."""
    if blocks is None:
        return 1 / total
    return jnp.where(top > how.mask_value / 2, 1 / total, 0.0)


def _where_visible(how: How, seen: Any, last_query: Array, first_key: Array) -> Callable[..., None]:
    """Run the decorated function if any of the queries sees any of the keys."""
    if seen is not None:
        return when(seen > 0)
    return when(last_query >= first_key if how.causal else True)


def _scored(how: How, scores: Array, seen: Any, parts: Sequence[Part], rows: slice, columns: slice,
            row: Any, column: Any, query_axis: int) -> tuple[Array, Array | float]:
    """Products of queries and keys, with what is added, times the scale, capped, and masked; and
    their slopes with respect to what the scale makes of them.

    Args:
      how: what they are made for.
      scores: the products.
      seen: what is seen of the block.
      parts: the blocks of the bias, of the segments of rows and of columns, and of the mask.
      rows, columns: of which part of the blocks.
      row, column: the positions of the first row and column in the arrays.
      query_axis: whether rows are queries, 0, or columns, 1.
    """
    ab_ref, row_ids_ref, column_ids_ref, mask_ref = parts
    slopes: Array | float = 1.0
    if ab_ref is not None:
        scores = scores + as_float32(ab_ref[rows, columns])
    if how.scale != 1:
        scores = scores * how.scale
    if how.soft_cap is not None:
        capped = jnp.tanh(scores / how.soft_cap)
        scores, slopes = how.soft_cap * capped, 1 - capped * capped
    if mask_ref is not None:
        in_mask = mask_ref[rows, columns].astype(np.int32) + jnp.where(seen == 2, 1, 0)
        scores = masked(scores, in_mask > 0, how.mask_value)
    return masked(scores, visible(
        scores.shape, row, column, query_axis=query_axis, causal=how.causal,
        row_ids=_read(row_ids_ref, rows, slice(1)),
        column_ids=_read(column_ids_ref, slice(1), columns)), how.mask_value), slopes


# -- backwards -------------------------------------------------------------------------------------


def _keys_gradients(how: How, given: Inputs, ct: Array, numbers: _Rows) -> Any:
    """The gradients of keys and values, of which each program has a block as its rows."""
    q, k, v, ab, _, tables = given
    kernel = _Kernel(how, how.keys, given, tables and tables.keys, turned=True)
    size, out_size, rows, group = q.shape[-1], v.shape[-1], kernel.sizes.rows, kernel.group
    # Those of each head: those that share keys are summed below.
    shapes = [ShapeDtypeStruct((*q.shape[:2], *x.shape[2:]), x.dtype if group == 1 else np.float32)
              for x in (k, v)]
    run = kernel.call(
        _keys_kernel, "_dkv", shapes,
        [kernel.others(size), kernel.own(size), kernel.own(out_size), kernel.others(out_size),
         *[kernel.numbers()] * 3], None if ab is None else kernel.scores(),
        [kernel.results(size), kernel.results(out_size)],
        [MemorySpace.VMEM((rows, n), np.float32) for n in (size, out_size)])
    turned = None if ab is None else jnp.swapaxes(ab, 2, 3)
    found = run(q, k, v, ct, *numbers.along(across), turned)
    if group == 1:
        return found
    return [jnp.sum(x.reshape(*k.shape[:2], group, *x.shape[2:]), 2).astype(like.dtype)
            for x, like in zip(found, (k, v), strict=True)]


def _keys_kernel(kernel: _Kernel, *refs: Any) -> None:
    seen, row, column, (q_ref, k_ref, v_ref, ct_ref, top_ref, shrink_ref, dots_ref, ab_ref,
                        k_ids_ref, q_ids_ref, mask_ref, dk_ref, dv_ref, dk_sum_ref, dv_sum_ref
                        ) = kernel.split(refs)
    how, sizes = kernel.how, kernel.sizes

    @when(program_id(3) == 0)
    def _() -> None:
        dk_sum_ref[...] = jnp.zeros_like(dk_sum_ref)
        dv_sum_ref[...] = jnp.zeros_like(dv_sum_ref)

    def part(keys: slice, queries: slice) -> None:
        q, ct = q_ref[queries, :], ct_ref[queries, :]
        scores, inner = _scored(how, product(k_ref[keys, :], q, BY_ROWS), seen, (
            ab_ref, k_ids_ref, q_ids_ref, mask_ref), keys, queries, row + keys.start,
            column + queries.start, 1)
        weights = jnp.exp(scores - top_ref[:1, queries]) * shrink_ref[:1, queries]
        dv_sum_ref[keys, :] += product(weights.astype(ct.dtype), ct)
        slopes = product(v_ref[keys, :], ct, BY_ROWS) - dots_ref[:1, queries]
        slopes = weights * slopes * inner * how.scale
        dk_sum_ref[keys, :] += product(slopes.astype(q.dtype), q)

    @_where_visible(how, seen, column + sizes.columns - 1, row)
    def _() -> None:
        for queries in _parts(sizes.columns, sizes.columns_at_once):
            for keys in _parts(sizes.rows, sizes.rows_at_once):
                part(keys, queries)

    @when(program_id(3) == num_programs(3) - 1)
    def _() -> None:
        dk_ref[...] = dk_sum_ref[...].astype(dk_ref.dtype)
        dv_ref[...] = dv_sum_ref[...].astype(dv_ref.dtype)


def _queries_gradients(how: How, given: Inputs, ct: Array, numbers: _Rows) -> Any:
    """The gradients of queries, of which each program has a block, and of the bias, or None."""
    q, k, v, ab, _, tables = given
    kernel = _Kernel(how, how.queries, given, tables and tables.queries)
    size, out_size, sizes = q.shape[-1], v.shape[-1], kernel.sizes
    # Of the bias all blocks are read, as those of its gradient are written.
    bias = None if ab is None else BlockSpec((None, None, sizes.rows, sizes.columns),
                                             lambda b, h, i, j, *_: (b, h, i, j))
    dab = None if ab is None else ShapeDtypeStruct(ab.shape, ab.dtype)
    run = kernel.call(
        _queries_kernel, "_dq", [ShapeDtypeStruct(q.shape, q.dtype), dab],
        [kernel.own(size), kernel.others(size), kernel.others(out_size), kernel.own(out_size),
         *[kernel.own(LANES)] * 3], bias, [kernel.own(size), bias],
        [MemorySpace.VMEM((sizes.rows, size), np.float32)])
    return run(q, k, v, ct, *numbers.along(down), ab)


def _queries_kernel(kernel: _Kernel, *refs: Any) -> None:
    seen, row, column, (q_ref, k_ref, v_ref, ct_ref, top_ref, shrink_ref, dots_ref, ab_ref,
                        q_ids_ref, k_ids_ref, mask_ref, dq_ref, dab_ref, sum_ref
                        ) = kernel.split(refs)
    how, sizes = kernel.how, kernel.sizes

    @when(program_id(3) == 0)
    def _() -> None:
        sum_ref[...] = jnp.zeros_like(sum_ref)

    if dab_ref is not None and how.causal:
        dab_ref[...] = jnp.zeros_like(dab_ref)

    def part(keys: slice) -> None:
        k = k_ref[keys, :]
        scores, inner = _scored(how, product(q_ref[...], k, BY_ROWS), seen, (
            ab_ref, q_ids_ref, k_ids_ref, mask_ref), slice(None), keys, row, column + keys.start, 0)
        weights = jnp.exp(scores - top_ref[:, :1]) * shrink_ref[:, :1]
        slopes = product(ct_ref[...], v_ref[keys, :], BY_ROWS) - dots_ref[:, :1]
        slopes = weights * slopes * inner * how.scale
        if dab_ref is not None:
            dab_ref[:, keys] = slopes.astype(dab_ref.dtype)
        sum_ref[...] += product(slopes.astype(k.dtype), k)

    @_where_visible(how, seen, row + sizes.rows - 1, column)
    def _() -> None:
        for keys in _parts(sizes.columns, sizes.columns_at_once):
            part(keys)

    @when(program_id(3) == num_programs(3) - 1)
    def _() -> None:
        dq_ref[...] = sum_ref[...].astype(dq_ref.dtype)
