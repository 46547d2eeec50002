"""Attention without kernels, as flash attention computes it: what its kernels are compared with."""

from __future__ import annotations

from typing import Any

from pyjx import numpy as jnp
from pyjx.core.array_type import Array
from pyjx.experimental.pallas.ops.attention_blocks import (
    MASK_VALUE,
    SegmentIds,
    as_float32,
    masked,
)

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
