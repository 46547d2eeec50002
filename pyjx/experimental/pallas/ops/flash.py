"""Flash attention: attention whose scores are never in memory, forwards and backwards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyjx.core.array_type import Array
from pyjx.experimental.pallas.kernel_calls import interpreted
from pyjx.experimental.pallas.ops.attention_kernels import (
    LANES,
    How,
    Inputs,
    SegmentIds,
    Sizes,
    attention,
    check_block,
)

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

    @property
    def of_gradients(self) -> tuple[Any, Any]:
        """The sizes for the gradients of keys, and of queries, if all of them are there."""
        if not self.has_backward_blocks:
            return None, None
        keys: Any = (self.block_k_major_dkv, self.block_q_major_dkv, self.block_k_dkv,
                     self.block_q_dkv, "block_k_major_dkv", "block_q_major_dkv")
        queries: Any = (self.block_q_dq, self.block_k_major_dq, self.block_q_dq, self.block_k_dq,
                        "block_q_dq", "block_k_major_dq")
        return Sizes(*keys), Sizes(*queries)

    @classmethod
    def get_default(cls, batch_size: int, num_heads: int, q_seq_len: int, kv_len: int,
                    d_model: int) -> BlockSizes:
        """Sizes for any array: 128 queries and keys."""
        return cls(*(LANES,) * 3, 1, *(LANES,) * 7)


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
    check_block("block_b", "batch", sizes.block_b, batch)
    check_block("block_q", "q_seq_len", sizes.block_q, queries)
    check_block("block_k_major", "kv_seq_len", sizes.block_k_major, k.shape[2])
    check_block("block_k", "kv_seq_len", sizes.block_k, k.shape[2])
    how = How(causal, sm_scale, interpreted(), Sizes(
        sizes.block_q, sizes.block_k_major, sizes.block_q, sizes.block_k), *sizes.of_gradients)
    return attention(how, Inputs(q, k, v, ab, segment_ids))[0]


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


def below_or_on_diag(r: Any, r_blk_size: int, c: Any, c_blk_size: int) -> Any:
    """Whether any entry of a block of a matrix is on its diagonal or below.

    Args:
      r, c: the indices of the block.
      r_blk_size, c_blk_size: its sizes.

    >>> below_or_on_diag(0, 128, 1, 128)
    False
    """
    return (r + 1) * r_blk_size > c * c_blk_size
