"""Attention."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyjx import lax
from pyjx.core import dtypes
from pyjx.core.array_type import Array, DTypeLike
from pyjx.core.avals import get_aval
from pyjx.core.trace import eager_trace, state
from pyjx.engine.types import Value
from pyjx.lax.common import broadcasts_to
from pyjx.nn.normalization import log_sum_exp, softmax
from pyjx.numpy import creation, ufuncs
from pyjx.numpy.einstein import einsum
from pyjx.numpy.operands import numpy_function
from pyjx.numpy.promotion import convert, literal, operands, size_literal
from pyjx.runtime.operations import body_of

Window = int | tuple[int, int] | None


def _check(name: str, x: Value, shape: tuple[int | None, ...], dtype: DTypeLike) -> None:
    """Raise ValueError unless dtype and sizes of `x` are those given; None stands for any size."""
    if get_aval(x).dtype != dtype:
        raise ValueError(f"{name} dtype should be {dtypes.name(dtype)}, but got "
                         f"{dtypes.name(get_aval(x).dtype)}")
    got = get_aval(x).shape
    if len(got) != len(shape):
        raise ValueError(f"{name} ndim should be {len(shape)}, but got {len(got)}")
    if any(n is not None and m != n for m, n in zip(got, shape, strict=True)):
        raise ValueError(f"{name} shape should be {list(shape)}: but got {got}")


def _allowed_pairs(queries: int, keys: int, is_causal: bool, window: Window) -> Any:
    """The mask of shape (1, 1, queries, keys) of what the positions alone allow, or None."""
    if not is_causal and window is None:
        return None
    row: Any
    column: Any
    if type(queries) is type(keys) is int:
        row, column = np.ogrid[:queries, :keys]
    else:
        row, column = [lax.broadcasted_iota(np.int32, (queries, keys), axis) for axis in (0, 1)]
    allowed: Any = column <= row if is_causal else True
    if window is not None:
        left, right = (window, window) if isinstance(window, int) else window
        allowed &= (column >= row - left) & (column <= row + right)
    return allowed[None, None]


def _within(lengths: Any, size: int, axis: int) -> Any:
    """The mask of shape (batch, 1, size, 1) or (batch, 1, 1, size) of positions below `lengths`."""
    batch = get_aval(lengths).shape[0]
    shape = [batch, 1, 1, 1]
    shape[axis] = size
    place = lax.broadcasted_iota(get_aval(lengths).dtype, shape, axis)
    return lax.lt(place, lax.broadcast_in_dim(lengths, shape, (0,)))


def _grouped(x: Value, groups: int) -> Array:
    """Shape (b, heads, t, s) as (b, kv heads, heads per kv head, t, s); one head serves all."""
    b, n, t, s = get_aval(x).shape
    return lax.reshape(x, (b, 1, 1, t, s) if n == 1 else (b, n // groups, groups, t, s))


def _attend(query: Value, key: Value, value: Value, bias: Value | None, mask: Value | None,
            scale: Value | None, is_causal: bool, query_lengths: Value | None,
            key_lengths: Value | None, window: Window, with_residual: bool) -> Any:
    b, t, n, h = get_aval(query).shape
    s, k = get_aval(key).shape[1:3]
    groups = n // k
    dtype = get_aval(query).dtype
    single = dtypes.promote_types(dtype, np.float32)
    query = lax.reshape(query, (b, t, k, groups, h))
    logits = einsum("btkgh,bskh->bkgts", query, key, preferred_element_type=single)
    if scale is None:
        scale = 1 / np.sqrt(h) if type(h) is int else lax.rsqrt(size_literal(h, single))
    logits = ufuncs.multiply(logits, literal(float(scale), single) if isinstance(
        scale, (int, float)) else convert(scale, single))
    if bias is not None:
        logits = convert(ufuncs.add(logits, _grouped(bias, groups)), single)
    allowed = _combined(mask, _allowed_pairs(t, s, is_causal, window),
                        None if query_lengths is None else _within(query_lengths, t, 2),
                        None if key_lengths is None else _within(key_lengths, s, 3))
    if allowed is not None:
        low = -0.7 * float(dtypes.finfo(single).max)
        logits = ufuncs.where(_grouped(allowed, groups), logits, literal(low, single))
    weights = convert(body_of(softmax)(logits, -1), get_aval(value).dtype)
    out = lax.reshape(einsum("bkgts,bskh->btkgh", weights, value), (b, t, n, h))
    if query_lengths is not None:
        rows = lax.reshape(_within(query_lengths, t, 1), (b, t, 1, 1))
        out = ufuncs.where(rows, out, literal(0.0, get_aval(out).dtype))
    if not with_residual:
        return out
    total = log_sum_exp("dot_product_attention", logits, -1, None, False, False, None)
    residual = lax.transpose(lax.reshape(total, (b, n, t)), (0, 2, 1))
    return out, convert(residual, get_aval(query).dtype)


def _combined(*masks: Any) -> Any:
    """The conjunction of masks of rank 4; None where there is none."""
    out = None
    for mask in masks:
        if mask is None:
            continue
        out = mask if out is None else ufuncs.logical_and(out, mask)
    return out


_compiled = numpy_function(_attend, static_argnames=("is_causal", "window", "with_residual"))


def dot_product_attention(query: Value, key: Value, value: Value, bias: Value | None = None,
                          mask: Value | None = None, *, scale: Value | None = None,
                          is_causal: bool = False, query_seq_lengths: Value | None = None,
                          key_value_seq_lengths: Value | None = None,
                          local_window_size: Window = None, implementation: str | None = None,
                          return_residual: bool = False) -> Any:
    """softmax(scale * query key^T + bias) value for each head (Vaswani et al. 2017).

    Sizes: B batch, T queries, S keys, N heads, K heads of keys and values (N is a multiple of K),
    H features of a head. Axes that are missing, the batch axis first, count as of size 1.

    Args:
      query: array of shape (B, T, N, H).
      key, value: arrays of shape (B, S, K, H).
      bias: added to the logits; it broadcasts to (B, N, T, S).
      mask: boolean, which logits to keep; shape as of `bias`.
      scale: 1 / sqrt(H) by default.
      is_causal: whether query t sees only keys up to t.
      query_seq_lengths, key_value_seq_lengths: shape (B,): how many queries and keys there are.
      local_window_size: (left, right), or one number for both: how far a query sees.
      implementation: None, "xla" or "cudnn"; the result is the same.
      return_residual: whether to return (output, logsumexp of the logits of shape (B, T, N)), both
        of the dtype of `query`.

    Returns:
      Array of the shape and dtype of `query`. Softmax is taken in at least float32.

    Raises:
      ValueError: shapes do not fit, or an unknown implementation.

    >>> import pyjx as jax
    >>> x = jax.numpy.ones((2, 3, 4, 5))
    >>> jax.nn.dot_product_attention(x, x, x).shape
    (2, 3, 4, 5)
    """
    given = map(creation.of_list, (query, key, value))
    query, key, value = operands("dot_product_attention", *given)
    if implementation not in (None, "xla", "cudnn"):
        raise ValueError(f"Unsupported implementation option: {implementation}. It is 'xla', "
                         "'cudnn' or None.")
    shape = get_aval(query).shape
    query, key, value = (_of_rank_4(x) for x in (query, key, value))
    dtype = get_aval(key).dtype
    for name, x in (("query", query), ("key", key)):
        _check(name, x, (None, None, None, None), dtype)
    b, _, _, h = get_aval(key).shape
    _check("value", value, get_aval(key).shape, dtype)
    _check("query", query, (b, None, None, h), dtype)
    _, t, n, _ = get_aval(query).shape
    mask = creation.of_list(mask)
    if mask is not None and get_aval(mask).dtype != np.bool_:
        raise ValueError(f"mask dtype should be bool, but got {dtypes.name(get_aval(mask).dtype)}")
    if scale is not None and dtypes.issubdtype(get_aval(scale).dtype, np.complexfloating):
        raise TypeError(f"dot_product_attention: scale must be a real number, got {scale}")
    k = get_aval(key).shape[2]
    if n % k:
        raise ValueError(f"The number of query heads must be a multiple of key/value heads, but "
                         f"got {n} vs {k}")
    logits_shape = (b, n, t, get_aval(key).shape[1])
    bias = _of_logits("bias", bias, logits_shape)
    mask = _of_logits("mask", mask, logits_shape)
    lengths = [_lengths("query_seq_lengths", query_seq_lengths, b),
               _lengths("key_value_seq_lengths", key_value_seq_lengths, b)]
    run = _attend if state.dynamic is not eager_trace else _compiled
    out = run(query, key, value, bias, mask, scale, is_causal, lengths[0], lengths[1],
              local_window_size, return_residual)
    if len(shape) == 4:
        return out
    if return_residual:
        return lax.reshape(out[0], shape), lax.reshape(out[1], shape[:-1])
    return lax.reshape(out, shape)


def _of_rank_4(x: Any) -> Array:
    """`x` with axes of size 1 for those that are missing before its own."""
    return lax.expand_dims(x, range(4 - get_aval(x).ndim)) if get_aval(x).ndim < 4 else x


def _of_logits(name: str, x: Any, shape: tuple[int, ...]) -> Array | None:
    """A bias or mask with the rank of the logits, to whose shape it must broadcast."""
    if x is None:
        return None
    (x,) = operands("dot_product_attention", creation.of_list(x))
    given = get_aval(x).shape
    if not broadcasts_to(given, shape):
        raise ValueError(f"dot_product_attention: {name} must broadcast to the logits, of shape "
                         f"(batch, heads, queries, keys) = {shape}; got shape {given}")
    return lax.expand_dims(x, range(len(shape) - len(given)))


def _lengths(name: str, x: Any, batch: int) -> Array | None:
    """How many positions of each sequence there are."""
    if x is None:
        return None
    (x,) = operands(name, creation.of_list(x))
    aval = get_aval(x)
    if aval.ndim != 1:
        raise ValueError(f"{name} ndim should be 1, but got {aval.ndim}")
    if not dtypes.issubdtype(aval.dtype, np.integer):
        raise ValueError(f"{name} dtype should be int32, but got {dtypes.name(aval.dtype)}")
    if aval.shape != (batch,):
        raise ValueError(f"{name} shape should be ({batch},), but got {aval.shape}")
    return x
