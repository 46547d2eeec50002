"""What kernels of attention share: scores of a block of queries and one of keys, which of these see
each other, and numbers that stand once for each row or each column of a block; and attention
without kernels, which they are compared with.

Vectors of a TPU have eight rows of 128 lanes. A number for each row of a block lies in 128 equal
lanes, and one for each column in eight equal rows; kernels read the first of them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pyjx import numpy as jnp
from pyjx.core.array_type import Array
from pyjx.engine.axes import broadcast_in_dim
from pyjx.lax.contractions import dot_general
from pyjx.lax.convert import convert_element_type
from pyjx.lax.creation import broadcasted_iota
from pyjx.numpy.ufuncs import where

# -- blocks ----------------------------------------------------------------------------------------

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
