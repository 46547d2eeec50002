"""Flash attention: attention whose scores are never in memory, forwards and backwards.

Each program of the forward kernel has a block of queries, and goes over the blocks of keys with the
greatest score so far, the sum of the exponentials and that of the values times these. Backwards the
weights are made again from the greatest score and the sum: one kernel goes over the queries for
the gradients of keys and values, with keys as rows, so that nothing has to be transposed, and
another one over the keys for those of queries and of the bias.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from pyjx import configuration
from pyjx import numpy as jnp
from pyjx.core.array_type import Array
from pyjx.core.records import Record
from pyjx.experimental.pallas import tpu as pltpu
from pyjx.experimental.pallas.in_kernels import cdiv, when
from pyjx.experimental.pallas.kernel_calls import pallas_call
from pyjx.experimental.pallas.kernel_grids import BlockSpec, RefLike, num_programs, program_id
from pyjx.experimental.pallas.ops.attention_blocks import (
    BY_ROWS,
    LANES,
    MASK_VALUE,
    SUBLANES,
    SegmentIds,
    across,
    as_float32,
    down,
    masked,
    product,
    visible,
)
from pyjx.experimental.pallas.tpu_kernels import MemorySpace
from pyjx.runtime.abstract import ShapeDtypeStruct
from pyjx.runtime.jit import jit
from pyjx.transforms.custom_vjp import custom_vjp

Part = RefLike | None  # of what may not be given

__all__ = ["BlockSizes", "below_or_on_diag", "flash_attention"]


@dataclass(frozen=True)
class BlockSizes:
    """How many queries and keys the kernels of flash attention take at a time.

    Args:
      block_q, block_k_major: of queries and keys that a program of the forward kernel gets.
      block_k: how many keys of those it computes at once.
      block_b: how many batches a program may get.
      block_q_major_dkv, block_k_major_dkv, block_q_dkv, block_k_dkv: the same for the gradients of
        keys and values.
      block_q_dq, block_k_major_dq, block_k_dq: those for that of queries.

    Raises:
      ValueError: what is computed at once does not divide what a program gets.

    >>> from pyjx.experimental.pallas.ops.tpu.flash_attention import BlockSizes
    >>> BlockSizes(block_q=256, block_k_major=512, block_k=256, block_b=1).has_backward_blocks
    False
    """

    block_q: int
    block_k_major: int
    block_k: int
    block_b: int
    block_q_major_dkv: int | None = None
    block_k_major_dkv: int | None = None
    block_k_dkv: int | None = None
    block_q_dkv: int | None = None
    block_k_major_dq: int | None = None
    block_k_dq: int | None = None
    block_q_dq: int | None = None

    def __post_init__(self) -> None:
        for inner, outer in (("block_k", "block_k_major"), ("block_q_dkv", "block_q_major_dkv"),
                             ("block_k_dkv", "block_k_major_dkv"),
                             ("block_k_dq", "block_k_major_dq")):
            part, whole = getattr(self, inner), getattr(self, outer)
            if part is None or whole is None:
                continue
            if part > whole:
                raise ValueError(f"{inner}={part} should be smaller than {outer}={whole}")
            if part < 1 or whole % part:
                raise ValueError(f"{inner}={part} should divide {outer}={whole}")

    @property
    def has_backward_blocks(self) -> bool:
        """Whether all sizes that gradients need are there."""
        return None not in (
            self.block_q_major_dkv, self.block_k_major_dkv, self.block_q_dkv, self.block_k_dkv,
            self.block_k_major_dq, self.block_k_dq, self.block_q_dq)

    @classmethod
    def get_default(cls, batch_size: int, num_heads: int, q_seq_len: int, kv_len: int,
                    d_model: int) -> BlockSizes:
        """Sizes for any array: 128 queries and keys."""
        return cls(*(LANES,) * 3, 1, *(LANES,) * 7)


class _How(Record):
    """What the kernels are made for."""

    causal: bool
    scale: float
    sizes: BlockSizes
    interpret: bool


# -- the function ----------------------------------------------------------------------------------


def flash_attention(q: Array, k: Array, v: Array, ab: Array | None = None,
                    segment_ids: SegmentIds | None = None, *, causal: bool = False,
                    sm_scale: float = 1.0, block_sizes: BlockSizes | None = None,
                    debug: bool = False) -> Array:
    """softmax((q k^T + ab) * sm_scale) v for each head, by kernels for TPUs that keep the scores of
    a few queries and keys at a time. Gradients, too, are kernels.

    Elsewhere it runs within `pltpu.force_tpu_interpret_mode()`.

    Args:
      q: queries, of the shape (batch, heads, queries, size).
      k, v: keys and values, of the shape (batch, heads, keys, size).
      ab: what is added to the scores, of the shape (batch, heads, queries, keys).
      segment_ids: which queries see which keys: those of their own segment.
      causal: whether the i-th query sees the keys up to the i-th alone.
      sm_scale: what scores are multiplied by, 1 / sqrt(size) most often.
      block_sizes: of how many queries and keys; 128 each by default.
      debug: accepted.

    Raises:
      ValueError: shapes do not fit, or lengths are not multiples of the block sizes.

    >>> import pyjx as jax
    >>> from pyjx.experimental.pallas import tpu as pltpu
    >>> from pyjx.experimental.pallas.ops.tpu.flash_attention import flash_attention
    >>> q = jax.random.normal(jax.random.key(0), (1, 2, 128, 64))
    >>> with pltpu.force_tpu_interpret_mode():
    ...     out = flash_attention(q, q, q, causal=True, sm_scale=64 ** -0.5)
    ...
    >>> bool(jax.numpy.allclose(out[:, :, 0], q[:, :, 0]))  # the first query sees the first key
    True
    """
    _check_shapes(q, k, v, ab, segment_ids)
    batch, heads, queries, size = q.shape
    sizes = block_sizes or BlockSizes.get_default(batch, heads, queries, k.shape[2], size)
    _check_block("block_b", "batch", sizes.block_b, batch)
    _check_block("block_q", "q_seq_len", sizes.block_q, queries)
    _check_block("block_k_major", "kv_seq_len", sizes.block_k_major, k.shape[2])
    _check_block("block_k", "kv_seq_len", sizes.block_k, k.shape[2])
    how = _How(causal, sm_scale, sizes, configuration.interpret_kernels.value)
    return _attention_program(how, q, k, v, ab, segment_ids)  # type: ignore[no-any-return]


def _check_shapes(q: Array, k: Array, v: Array, ab: Array | None, ids: SegmentIds | None) -> None:
    for name, x in (("q", q), ("k", k), ("v", v)):
        if x.ndim != 4:
            raise ValueError(f"flash_attention: {name} has the shape {x.shape}. Expected (batch, "
                             "heads, length, size); put a 1 for an axis that it lacks.")
    for what, axis in (("Batch size mismatch: got {}, {} and {}", 0),
                       ("Head count mismatch: got {}, {}, {}", 1)):
        found = [x.shape[axis] for x in (q, k, v)]
        if len({*found}) > 1:
            raise ValueError(f"{what.format(*found)} (for q, k, v respectively)")
    batch, heads, queries, size = q.shape
    keys = k.shape[2]
    if k.shape[3] != size:
        raise ValueError(f"Model dimension mismatch: got {size} and {k.shape[3]} (for q and k "
                         "respectively)")
    if v.shape[3] != size:
        raise NotImplementedError("V model dimension unequal to KV model dimension unsupported")
    if v.shape[2] != keys:
        raise ValueError(f"KV sequence length mismatch: got {keys} and {v.shape[2]}")
    if ab is not None and ab.shape != (batch, heads, queries, keys):
        raise ValueError(
            f"Attention bias shape mismatch: expected (batch_size={batch}, num_heads={heads}, "
            f"q_seq_len={queries}, kv_seq_len={keys}), got {ab.shape}")
    for name, own, x, n in () if ids is None else (("Q", "q", ids.q, queries),
                                                   ("KV", "kv", ids.kv, keys)):
        if x.shape != (batch, n):
            raise ValueError(f"{name} segment ids shape mismatch: expected (batch_size={batch}, "
                             f"{own}_seq_len={n},), got {x.shape}")


def _check_block(name: str, of: str, block: int, length: int) -> None:
    if block > length:
        raise ValueError(f"{name}={block} should be smaller or equal to {of}={length}")
    if block < 1 or length % block:
        raise ValueError(f"{of}={length} should be divisible by {name}={block}")


@partial(custom_vjp, nondiff_argnums=(0,))
def _attention(how: _How, q: Array, k: Array, v: Array, ab: Array | None,
               ids: SegmentIds | None) -> Array:
    return _forward(how, q, k, v, ab, ids, residuals=False)[0]


def _attention_forward(how: _How, q: Array, k: Array, v: Array, ab: Array | None,
                       ids: SegmentIds | None) -> tuple[Array, Any]:
    if not how.sizes.has_backward_blocks:
        raise ValueError("Program is being differentiated, but not all backward blocks are "
                         "specified")
    out, top, total = _forward(how, q, k, v, ab, ids, residuals=True)
    return out, (q, k, v, ab, ids, out, top[..., 0], total[..., 0])


def _attention_backward(how: _How, saved: Any, ct: Array) -> Any:
    q, k, v, ab, ids, out, top, total = saved
    dots = jnp.sum(as_float32(out) * as_float32(ct), -1)
    rows = _Rows(top, 1 / total, dots)
    dk, dv = _keys_gradients(how, q, k, v, ab, ids, ct, rows)
    dq, dab = _queries_gradients(how, q, k, v, ab, ids, ct, rows)
    return dq, dk, dv, dab, None


_attention.defvjp(_attention_forward, _attention_backward)
_attention_program = jit(_attention, static_argnums=0)


# -- blocks ----------------------------------------------------------------------------------------


class _Rows(Record):
    """Numbers for each query, of the shape (batch, heads, queries): the greatest score, one by the
    sum of the exponentials, and the sum of the result times its cotangent."""

    top: Array
    shrink: Array
    dots: Array

    def along(self, lay: Callable[[Array], Array]) -> list[Array]:
        return [lay(x) for x in (self.top, self.shrink, self.dots)]




def _ids_specs(ids: SegmentIds | None, rows: int, columns: int, row: Callable[..., Any],
               column: Callable[..., Any]) -> Any:
    """Specs of the segments of rows and of columns, whose blocks are at those indices."""
    if ids is None:
        return None, None
    return (BlockSpec((None, rows, LANES), lambda b, h, *at: (b, row(*at), 0)),
            BlockSpec((None, SUBLANES, columns), lambda b, h, *at: (b, 0, column(*at))))


def _parts(whole: int, part: int) -> Iterator[slice]:
    return (slice(start, start + part) for start in range(0, whole, part))


def _read(ref: Part, *part: slice) -> Any:
    """A part of a block that may not be there."""
    return None if ref is None else ref[part]


def _params() -> Any:
    return pltpu.CompilerParams(
        dimension_semantics=("parallel", "parallel", "parallel", "arbitrary"))


def below_or_on_diag(r: Any, r_blk_size: int, c: Any, c_blk_size: int) -> Any:
    """Whether any entry of a block of a matrix is on its diagonal or below.

    Args:
      r, c: the indices of the block.
      r_blk_size, c_blk_size: its sizes.

    >>> below_or_on_diag(0, 128, 1, 128)
    False
    """
    return (r + 1) * r_blk_size > c * c_blk_size


# -- forwards --------------------------------------------------------------------------------------


def _forward(how: _How, q: Array, k: Array, v: Array, ab: Array | None, ids: SegmentIds | None, *,
             residuals: bool) -> list[Array]:
    """The result, and with `residuals` the greatest score and the sum for each query, in lanes."""
    batch, heads, queries, size = q.shape
    rows, columns = how.sizes.block_q, how.sizes.block_k_major

    def key(i: Any, j: Any) -> Any:  # where nothing is computed, no other block is fetched
        return jnp.minimum(j, cdiv((i + 1) * rows, columns) - 1) if how.causal else j

    mine = BlockSpec((None, None, rows, size), lambda b, h, i, j: (b, h, i, 0))
    keys = BlockSpec((None, None, columns, size), lambda b, h, i, j: (b, h, key(i, j), 0))
    bias = BlockSpec((None, None, rows, columns), lambda b, h, i, j: (b, h, i, key(i, j)))
    lanes = BlockSpec((None, None, rows, LANES), lambda b, h, i, j: (b, h, i, 0))
    number = ShapeDtypeStruct((batch, heads, queries, LANES), np.float32)
    run = pallas_call(
        partial(_forward_kernel, how),
        out_shape=[ShapeDtypeStruct(q.shape, q.dtype), *[number] * 2 * residuals],
        grid=(batch, heads, queries // rows, k.shape[2] // columns),
        in_specs=[mine, keys, keys, None if ab is None else bias,
                  *_ids_specs(ids, rows, columns, lambda i, j: i, key)],
        out_specs=[mine, *[lanes] * 2 * residuals],
        scratch_shapes={"top_ref": MemorySpace.VMEM((rows, LANES), np.float32),
                        "total_ref": MemorySpace.VMEM((rows, LANES), np.float32),
                        "sum_ref": MemorySpace.VMEM((rows, size), np.float32)},
        compiler_params=_params(), interpret=how.interpret, name="flash_attention")
    laid = (None, None) if ids is None else (down(ids.q), across(ids.kv))
    return run(q, k, v, ab, *laid)  # type: ignore[no-any-return]


def _forward_kernel(how: _How, q_ref: RefLike, k_ref: RefLike, v_ref: RefLike, ab_ref: Part,
                    q_ids_ref: Part, k_ids_ref: Part, o_ref: RefLike, *saved: RefLike, top_ref:
                    RefLike, total_ref: RefLike, sum_ref: RefLike) -> None:
    rows, columns = q_ref.shape[0], k_ref.shape[0]
    row, column = program_id(2) * rows, program_id(3) * columns

    @when(program_id(3) == 0)
    def _() -> None:
        top_ref[...] = jnp.full_like(top_ref, MASK_VALUE)
        total_ref[...] = jnp.zeros_like(total_ref)
        sum_ref[...] = jnp.zeros_like(sum_ref)

    def part(at: slice) -> None:
        scores = product(q_ref[...], k_ref[at, :], BY_ROWS)
        scores = _scored(how, scores, ab_ref, q_ids_ref, k_ids_ref, slice(None), at, row,
                         column + at.start, query_axis=0)
        old = top_ref[:, :1]
        top = jnp.maximum(old, jnp.max(scores, 1, keepdims=True))
        weights, shrink = jnp.exp(scores - top), jnp.exp(old - top)
        total = total_ref[:, :1] * shrink + jnp.sum(weights, 1, keepdims=True)
        sum_ref[...] = sum_ref[...] * shrink + product(weights.astype(v_ref.dtype), v_ref[at, :])
        top_ref[...] = jnp.broadcast_to(top, top_ref.shape)
        total_ref[...] = jnp.broadcast_to(total, total_ref.shape)

    @_where_visible(how, row + rows - 1, column)
    def _() -> None:
        for at in _parts(columns, how.sizes.block_k):
            part(at)

    @when(program_id(3) == num_programs(3) - 1)
    def _() -> None:
        o_ref[...] = (sum_ref[...] / total_ref[:, :1]).astype(o_ref.dtype)
        for ref, value in zip(saved, (top_ref, total_ref), strict=False):
            ref[...] = value[...]


def _where_visible(how: _How, last_query: Array, first_key: Array) -> Callable[..., None]:
    """Run the decorated function if any of the queries sees any of the keys."""
    return when(last_query >= first_key if how.causal else True)


def _scored(how: _How, scores: Array, ab_ref: Part, row_ids_ref: Part, column_ids_ref: Part, rows:
            slice, columns: slice, row: Any, column: Any, *, query_axis: int) -> Array:
    """Products of queries and keys, with what is added, times the scale, and masked.

    Args:
      how, ab_ref, row_ids_ref, column_ids_ref: what they are made of.
      scores: the products.
      rows, columns: of which part of the blocks.
      row, column: the positions of the first row and column in the arrays.
      query_axis: whether rows are queries, 0, or columns, 1.
    """
    if ab_ref is not None:
        scores = scores + as_float32(ab_ref[rows, columns])
    if how.scale != 1:
        scores = scores * how.scale
    return masked(scores, visible(
        scores.shape, row, column, query_axis=query_axis, causal=how.causal,
        row_ids=_read(row_ids_ref, rows, slice(1)),
        column_ids=_read(column_ids_ref, slice(1), columns)))


# -- backwards -------------------------------------------------------------------------------------


def _keys_gradients(how: _How, q: Array, k: Array, v: Array, ab: Array | None,
                    ids: SegmentIds | None, ct: Array, numbers: _Rows) -> Any:
    """The gradients of keys and values, of which each program has a block as its rows."""
    batch, heads, keys, size = k.shape
    rows, columns = how.sizes.block_k_major_dkv, how.sizes.block_q_major_dkv
    assert rows is not None and columns is not None
    _check_block("block_k_major_dkv", "kv_seq_len", rows, keys)
    _check_block("block_q_major_dkv", "q_seq_len", columns, q.shape[2])

    def query(i: Any, j: Any) -> Any:
        return jnp.maximum(j, jnp.minimum(i * rows // columns, q.shape[2] // columns - 1)) \
            if how.causal else j

    mine = BlockSpec((None, None, rows, size), lambda b, h, i, j: (b, h, i, 0))
    queries = BlockSpec((None, None, columns, size), lambda b, h, i, j: (b, h, query(i, j), 0))
    bias = BlockSpec((None, None, rows, columns), lambda b, h, i, j: (b, h, i, query(i, j)))
    each = BlockSpec((None, None, SUBLANES, columns), lambda b, h, i, j: (b, h, 0, query(i, j)))
    space = MemorySpace.VMEM((rows, size), np.float32)
    run = pallas_call(
        partial(_keys_kernel, how),
        out_shape=[ShapeDtypeStruct(k.shape, k.dtype), ShapeDtypeStruct(v.shape, v.dtype)],
        grid=(batch, heads, keys // rows, q.shape[2] // columns),
        in_specs=[queries, mine, mine, queries, each, each, each, None if ab is None else bias,
                  *_ids_specs(ids, rows, columns, lambda i, j: i, query)],
        out_specs=[mine, mine], scratch_shapes=[space, space], compiler_params=_params(),
        interpret=how.interpret, name="flash_attention_dkv")
    laid = (None, None) if ids is None else (down(ids.kv), across(ids.q))
    turned = None if ab is None else jnp.swapaxes(ab, 2, 3)
    return run(q, k, v, ct, *numbers.along(across), turned, *laid)


def _keys_kernel(how: _How, q_ref: RefLike, k_ref: RefLike, v_ref: RefLike, ct_ref: RefLike,
                 top_ref: RefLike, shrink_ref: RefLike, dots_ref: RefLike, ab_ref: Part, k_ids_ref:
                 Part, q_ids_ref: Part, dk_ref: RefLike, dv_ref: RefLike, dk_sum_ref: RefLike,
                 dv_sum_ref: RefLike) -> None:
    rows, columns = k_ref.shape[0], q_ref.shape[0]
    row, column = program_id(2) * rows, program_id(3) * columns

    @when(program_id(3) == 0)
    def _() -> None:
        dk_sum_ref[...] = jnp.zeros_like(dk_sum_ref)
        dv_sum_ref[...] = jnp.zeros_like(dv_sum_ref)

    def part(keys: slice, queries: slice) -> None:
        q, ct = q_ref[queries, :], ct_ref[queries, :]
        scores = _scored(how, product(k_ref[keys, :], q, BY_ROWS), ab_ref, k_ids_ref, q_ids_ref,
                         keys, queries, row + keys.start, column + queries.start, query_axis=1)
        weights = jnp.exp(scores - top_ref[:1, queries]) * shrink_ref[:1, queries]
        dv_sum_ref[keys, :] += product(weights.astype(ct.dtype), ct)
        slopes = product(v_ref[keys, :], ct, BY_ROWS) - dots_ref[:1, queries]
        slopes = weights * slopes * how.scale
        dk_sum_ref[keys, :] += product(slopes.astype(q.dtype), q)

    @_where_visible(how, column + columns - 1, row)
    def _() -> None:
        for queries in _parts(columns, how.sizes.block_q_dkv or columns):
            for keys in _parts(rows, how.sizes.block_k_dkv or rows):
                part(keys, queries)

    @when(program_id(3) == num_programs(3) - 1)
    def _() -> None:
        dk_ref[...] = dk_sum_ref[...].astype(dk_ref.dtype)
        dv_ref[...] = dv_sum_ref[...].astype(dv_ref.dtype)


def _queries_gradients(how: _How, q: Array, k: Array, v: Array, ab: Array | None,
                       ids: SegmentIds | None, ct: Array, numbers: _Rows) -> Any:
    """The gradients of queries, of which each program has a block, and of the bias, or None."""
    batch, heads, queries, size = q.shape
    rows, columns = how.sizes.block_q_dq, how.sizes.block_k_major_dq
    assert rows is not None and columns is not None
    _check_block("block_q_dq", "q_seq_len", rows, queries)
    _check_block("block_k_major_dq", "kv_seq_len", columns, k.shape[2])

    def key(i: Any, j: Any) -> Any:
        return jnp.minimum(j, cdiv((i + 1) * rows, columns) - 1) if how.causal else j

    mine = BlockSpec((None, None, rows, size), lambda b, h, i, j: (b, h, i, 0))
    keys = BlockSpec((None, None, columns, size), lambda b, h, i, j: (b, h, key(i, j), 0))
    each = BlockSpec((None, None, rows, LANES), lambda b, h, i, j: (b, h, i, 0))
    bias = BlockSpec((None, None, rows, columns), lambda b, h, i, j: (b, h, i, j))
    dab = None if ab is None else ShapeDtypeStruct(ab.shape, ab.dtype)
    run = pallas_call(
        partial(_queries_kernel, how), out_shape=[ShapeDtypeStruct(q.shape, q.dtype), dab],
        grid=(batch, heads, queries // rows, k.shape[2] // columns),
        in_specs=[mine, keys, keys, mine, each, each, each, None if ab is None else bias,
                  *_ids_specs(ids, rows, columns, lambda i, j: i, key)],
        out_specs=[mine, None if ab is None else bias],
        scratch_shapes=[MemorySpace.VMEM((rows, size), np.float32)], compiler_params=_params(),
        interpret=how.interpret, name="flash_attention_dq")
    laid = (None, None) if ids is None else (down(ids.q), across(ids.kv))
    return run(q, k, v, ct, *numbers.along(down), ab, *laid)


def _queries_kernel(how: _How, q_ref: RefLike, k_ref: RefLike, v_ref: RefLike, ct_ref: RefLike,
                    top_ref: RefLike, shrink_ref: RefLike, dots_ref: RefLike, ab_ref: Part,
                    q_ids_ref: Part, k_ids_ref: Part, dq_ref: RefLike, dab_ref: Part, sum_ref:
                    RefLike) -> None:
    rows, columns = q_ref.shape[0], k_ref.shape[0]
    row, column = program_id(2) * rows, program_id(3) * columns

    @when(program_id(3) == 0)
    def _() -> None:
        sum_ref[...] = jnp.zeros_like(sum_ref)

    if dab_ref is not None and how.causal:
        dab_ref[...] = jnp.zeros_like(dab_ref)

    def part(keys: slice) -> None:
        k = k_ref[keys, :]
        scores = _scored(how, product(q_ref[...], k, BY_ROWS), ab_ref, q_ids_ref, k_ids_ref,
                         slice(None), keys, row, column + keys.start, query_axis=0)
        weights = jnp.exp(scores - top_ref[:, :1]) * shrink_ref[:, :1]
        slopes = product(ct_ref[...], v_ref[keys, :], BY_ROWS) - dots_ref[:, :1]
        slopes = weights * slopes * how.scale
        if dab_ref is not None:
            dab_ref[:, keys] = slopes.astype(dab_ref.dtype)
        sum_ref[...] += product(slopes.astype(k.dtype), k)

    @_where_visible(how, row + rows - 1, column)
    def _() -> None:
        for keys in _parts(columns, how.sizes.block_k_dq or columns):
            part(keys)

    @when(program_id(3) == num_programs(3) - 1)
    def _() -> None:
        dq_ref[...] = sum_ref[...].astype(dq_ref.dtype)
