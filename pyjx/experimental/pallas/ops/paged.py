"""Attention of one new token of each sequence to keys and values that lie in pages, by a kernel for
TPUs, and pages of eight bits.

Which pages a sequence has is fetched before: the index maps of blocks read it, so that the pages
of the next step come while one is computed. A step takes several pages, each as a block of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from pyjx import numpy as jnp
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
from pyjx.experimental.pallas.ops.attention_kernels import (
    BY_ROWS,
    LANES,
    MASK_VALUE,
    add_to_rows,
    as_float32,
    begin_rows,
    masked,
    product,
)
from pyjx.experimental.pallas.tpu_kernels import MemorySpace
from pyjx.lax.creation import broadcasted_iota
from pyjx.runtime.abstract import ShapeDtypeStruct
from pyjx.runtime.jit import jit

__all__ = ["MAX_INT8", "QuantizedTensor", "from_int8", "get_quantization_scales",
           "grouped_query_attention_reference", "paged_attention", "quantize_to_int8", "to_int8",
           "unquantize_from_int8"]

# -- pages of eight bits ---------------------------------------------------------------------------

MAX_INT8 = 127.5


class QuantizedTensor(NamedTuple):
    """Values of eight bits, and what the greatest of them along the last axis stands for.

    Args:
      weight: int8.
      scales: float32, with a last axis of one element.
    """

    weight: Any
    scales: Any


def get_quantization_scales(x: Array) -> Array:
    """The greatest absolute values along the last axis, which stays."""
    return jnp.max(jnp.abs(x), -1, keepdims=True)


def to_int8(x: Array, h: Array) -> Array:
    """Values between -h and h as int8."""
    return jnp.clip(jnp.rint(x * (MAX_INT8 / h)), -128, 127).astype(np.int8)


def from_int8(x: Array, h: Array, dtype: DTypeLike = jnp.bfloat16) -> Array:
    """What `to_int8` was given, nearly: of the wider of a dtype and that of `h`."""
    return x.astype(dtype) * h / MAX_INT8


def quantize_to_int8(x: Array) -> QuantizedTensor:
    """An array with eight bits for each element.

    >>> import pyjx.numpy as jnp
    >>> few = quantize_to_int8(jnp.array([[1.0, -2.0, 0.5]]))
    >>> few.weight.tolist(), few.scales.tolist()
    ([[64, -128, 32]], [[2.0]])
    """
    scales = get_quantization_scales(x)
    return QuantizedTensor(to_int8(x, scales), scales)


def unquantize_from_int8(x: QuantizedTensor, dtype: DTypeLike = jnp.bfloat16) -> Array:
    """What `quantize_to_int8` was given, nearly."""
    return from_int8(x.weight, x.scales, dtype)


# -- the function ----------------------------------------------------------------------------------


class _How(Record):
    """What the kernel is made for."""

    pages: int
    soft_cap: float | None
    mask_value: float
    interpret: bool


def paged_attention(q: Array, k_pages: Array | QuantizedTensor, v_pages: Array | QuantizedTensor,
                    lengths: Array, page_indices: Array, *, mask_value: float = MASK_VALUE,
                    attn_logits_soft_cap: float | None = None, pages_per_compute_block: int,
                    megacore_mode: str | None = None, inline_seq_dim: bool = True) -> Array:
    """softmax(q k^T) v for a query of each sequence, whose keys and values lie in pages.

    Elsewhere than on TPUs it runs within `pltpu.force_tpu_interpret_mode()`.

    Args:
      q: queries, of the shape (sequences, heads, size).
      k_pages, v_pages: pages of keys and values, of the shape (key heads, pages, tokens, size), or
        such of eight bits; as many heads of queries use each head of keys.
      lengths: how many tokens each sequence has, int32.
      page_indices: which pages they lie in, int32, of the shape (sequences, pages of a sequence).
      mask_value: what is added to the scores of what is behind the last token.
      attn_logits_soft_cap: the bound that scores come near to, by its tanh.
      pages_per_compute_block: how many pages a step takes; it divides the pages of a sequence.
      megacore_mode: None, "batch" or "kv_head": what two cores share, which the compiler chooses.
      inline_seq_dim: accepted.

    Raises:
      ValueError: shapes or dtypes do not fit.

    >>> import pyjx as jax
    >>> from pyjx.experimental.pallas import tpu as pltpu
    >>> from pyjx.experimental.pallas.ops.tpu.paged_attention import paged_attention
    >>> pages = jax.random.normal(jax.random.key(0), (1, 3, 8, 128))
    >>> with pltpu.force_tpu_interpret_mode():  # one token, the first of the last page
    ...     out = paged_attention(
    ...         jax.numpy.ones((1, 2, 128)), pages, pages, jax.numpy.array([1]),
    ...         jax.numpy.array([[2, 0]]), pages_per_compute_block=1)
    ...
    >>> bool(jax.numpy.allclose(out[0, 1], pages[0, 2, 0]))
    True
    """
    k, v = _parts(k_pages), _parts(v_pages)
    _check(q, k[0], v[0], lengths, page_indices, pages_per_compute_block, megacore_mode)
    how = _How(pages_per_compute_block, attn_logits_soft_cap, mask_value, interpreted())
    return _program(how, q, k, v, lengths, page_indices)  # type: ignore[no-any-return]


def _parts(pages: Any) -> tuple[Array, ...]:
    """The values, and behind those of eight bits what they stand for."""
    return tuple(pages) if isinstance(pages, tuple) else (pages,)


def _check(q: Array, k: Array, v: Array, lengths: Array, indices: Array, pages: int,
           cores: str | None) -> None:
    if k.shape != v.shape:
        raise ValueError(f"k_pages and v_pages must have the same shape. Got {k.shape} and "
                         f"{v.shape}")
    if q.shape[1] % k.shape[0]:
        raise ValueError("Number of Q heads must be divisible by number of KV heads. Got "
                         f"{q.shape[1]} and {k.shape[0]}.")
    if q.shape[2] != k.shape[3]:
        raise ValueError(f"head_dim of Q must be the same as that of K/V. Got {q.shape[2]} and "
                         f"{k.shape[3]}.")
    if pages < 1 or indices.shape[1] % pages:
        raise ValueError("pages_per_compute_block must be divisible by pages per sequence. Got "
                         f"{pages} and {indices.shape[1]}.")
    if lengths.shape != q.shape[:1]:
        raise ValueError("`lengths` and `q` must have the same batch size")
    if indices.shape[0] != q.shape[0]:
        raise ValueError("`page_indices` and `q` must have the same batch size")
    if lengths.dtype != np.int32:
        raise ValueError(f"The dtype of `lengths` must be int32. Got {lengths.dtype}")
    if cores not in (None, "batch", "kv_head"):
        raise ValueError(f"megacore_mode must be one of ['kv_head', 'batch', None]; got {cores!r}.")


# -- the kernel ------------------------------------------------------------------------------------


def _attention(how: _How, q: Array, k: tuple[Array, ...], v: tuple[Array, ...], lengths: Array,
               indices: Array) -> Array:
    batch, heads, size = q.shape
    kv_heads, _, tokens, _ = k[0].shape
    each, steps = heads // kv_heads, indices.shape[1] // how.pages

    def page(n: int, width: int) -> BlockSpec:
        """The n-th page of a step; behind the last token the last ones stay."""
        def place(b: Any, h: Any, i: Any, lengths_ref: Any, indices_ref: Any) -> Any:
            last = jnp.maximum(cdiv(lengths_ref[b], how.pages * tokens) - 1, 0)
            return h, indices_ref[b, jnp.minimum(i, last) * how.pages + n], 0, 0

        return BlockSpec((None, None, tokens, width), place)

    def pages(parts: Sequence[Array]) -> list[Any]:
        return [[page(n, x.shape[3]) for x in parts] for n in range(how.pages)]

    mine = BlockSpec((None, None, each, size), lambda b, h, i, lengths, indices: (b, h, 0, 0))
    number = MemorySpace.VMEM((each, LANES), np.float32)
    run = pallas_call(
        partial(_kernel, how), out_shape=ShapeDtypeStruct((batch, kv_heads, each, size), q.dtype),
        grid_spec=PrefetchScalarGridSpec(
            num_scalar_prefetch=2, grid=(batch, kv_heads, steps),
            in_specs=[mine, pages(k), pages(v)], out_specs=mine,
            scratch_shapes=[number, number, MemorySpace.VMEM((each, size), np.float32)]),
        compiler_params=pltpu.CompilerParams(
            dimension_semantics=("parallel", "parallel", "arbitrary")),
        interpret=how.interpret, name="paged_attention")
    out = run(lengths, indices.astype(np.int32), q.reshape(batch, kv_heads, each, size),
              [[*k]] * how.pages, [[*v]] * how.pages)
    return out.reshape(q.shape)  # type: ignore[no-any-return]


def _kernel(how: _How, lengths_ref: RefLike, _indices_ref: RefLike, q_ref: RefLike,
            k_refs: Sequence[Sequence[RefLike]], v_refs: Sequence[Sequence[RefLike]],
            o_ref: RefLike, top_ref: RefLike, total_ref: RefLike, sum_ref: RefLike) -> None:
    length, tokens = lengths_ref[program_id(0)], k_refs[0][0].shape[0]
    first = program_id(2) * (how.pages * tokens)

    @when(program_id(2) == 0)
    def _() -> None:
        begin_rows(how.mask_value, top_ref, total_ref, sum_ref)

    @when(first < length)
    def _() -> None:
        q = as_float32(q_ref[...])
        k, v = (jnp.concatenate([_values(refs) for refs in pages]) for pages in (k_refs, v_refs))
        scores = product(q, k, BY_ROWS)
        if how.soft_cap is not None:
            scores = jnp.tanh(scores / how.soft_cap) * how.soft_cap
        places = first + broadcasted_iota(np.int32, scores.shape, 1)
        scores = masked(scores, places < length, how.mask_value)
        add_to_rows(scores, v, top_ref, total_ref, sum_ref)

    @when(program_id(2) == num_programs(2) - 1)
    def _() -> None:
        total = total_ref[:, :1]  # 0 for a sequence without tokens
        o_ref[...] = (sum_ref[...] / jnp.where(total == 0, 1, total)).astype(o_ref.dtype)


def _values(refs: Sequence[RefLike]) -> Array:
    """A page as float32."""
    x = as_float32(refs[0][...])
    return x * (refs[1][...] / MAX_INT8) if len(refs) == 2 else x


_program = jit(_attention, static_argnums=0)


# -- the same without kernels ----------------------------------------------------------------------


def grouped_query_attention_reference(queries: Array, k_pages: Any, v_pages: Any, seq_lens: Array,
                                      soft_cap: float | None = None, debug: bool = False) -> Array:
    """Attention of a query of each sequence to all its keys, without kernels.

    Args:
      queries: of the shape (sequences, heads, size).
      k_pages, v_pages: of the shape (sequences, key heads, tokens, size), in order; or such of
        eight bits.
      seq_lens: how many tokens each sequence has.
      soft_cap: the bound that scores come near to.
      debug: accepted.
    """
    k, v = [unquantize_from_int8(x, np.float32) if isinstance(x, QuantizedTensor) else x
            for x in (k_pages, v_pages)]
    batch, heads, size = queries.shape
    grouped = queries.reshape(batch, k.shape[1], heads // k.shape[1], size)
    scores = as_float32(jnp.einsum("bhgd,bhkd->bhgk", grouped, k))
    if soft_cap is not None:
        scores = jnp.tanh(scores / soft_cap) * soft_cap
    seen = jnp.arange(scores.shape[-1]) < seq_lens[:, None, None, None]
    scores = masked(scores, seen)
    weights = jnp.exp(scores - jnp.max(scores, -1, keepdims=True))
    weights = weights / jnp.sum(weights, -1, keepdims=True)
    return jnp.einsum("bhgk,bhkd->bhgd", weights, v).reshape(queries.shape).astype(queries.dtype)
