"""Products of matrices that are stored in few bits with a scale for each block.

The formats are those of the OCP microscaling specification, mxfp8 and mxfp4, whose scales are
powers of two, and NVIDIA's nvfp4, whose scales are float8, with one more scale for the array.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from pyjx import lax
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike, DTypeLike
from pyjx.core.avals import get_aval
from pyjx.engine.types import Value
from pyjx.lax.contractions import dot_shape
from pyjx.lax.elementwise import stretch
from pyjx.numpy import creation
from pyjx.numpy.joining import repeated
from pyjx.numpy.manipulation import permuted
from pyjx.numpy.operands import numpy_function
from pyjx.numpy.promotion import convert, operands
from pyjx.transforms.custom_vjp import custom_vjp

_single = np.dtype(np.float32)


def _unpacked(x: Value, scales: Value) -> Array:
    """x times its scales, in float32."""
    block = get_aval(x).shape[-1] // get_aval(scales).shape[-1]
    return lax.mul(convert(x, _single), repeated(convert(scales, _single), count=block, axis=2))


def _product(lhs: Value, rhs: Value) -> Array:
    return lax.dot_general(lhs, rhs, (((2,), (2,)), ((0,), (0,))))


@numpy_function(static_argnames=("preferred_element_type",))
def scaled_matmul(lhs: ArrayLike, rhs: ArrayLike, lhs_scales: ArrayLike, rhs_scales: ArrayLike,
                  preferred_element_type: DTypeLike | None = np.float32) -> Array:
    """The product of two matrices whose blocks have scales.

    Args:
      lhs: array of shape (B, M, K).
      rhs: array of shape (B, N, K).
      lhs_scales, rhs_scales: arrays of shape (B, M, K // block) and (B, N, K // block): a scale for
        each block of the last axis.
      preferred_element_type: dtype of the result.

    Returns:
      Array of shape (B, M, N).

    Raises:
      ValueError: the shapes do not fit.

    >>> import pyjx as jax
    >>> x, scale = jax.numpy.ones((1, 2, 4)), jax.numpy.full((1, 2, 2), 0.5)
    >>> jax.nn.scaled_matmul(x, x, scale, scale).tolist()
    [[[1.0, 1.0], [1.0, 1.0]]]
    """
    lhs, rhs, lhs_scales, rhs_scales = operands("scaled_matmul", lhs, rhs, lhs_scales, rhs_scales)
    a, b, p, q = (get_aval(x) for x in (lhs, rhs, lhs_scales, rhs_scales))
    if not a.ndim == b.ndim == p.ndim == q.ndim == 3:
        raise ValueError("scaled_matmul requires all inputs to be 3-dimensional arrays, got shapes "
                         f"{a.shape}, {b.shape}, {p.shape}, {q.shape}")
    if a.shape[0] != b.shape[0] or a.shape[2] != b.shape[2]:
        raise ValueError("scaled_matmul: lhs (B, M, K) and rhs (B, N, K) must agree in B and K, "
                         f"got {a.shape} and {b.shape}")
    for name, x, scale in (("lhs", a, p), ("rhs", b, q)):
        if x.shape[:2] != scale.shape[:2] or not scale.shape[2] or x.shape[2] % scale.shape[2]:
            raise ValueError(f"scaled_matmul: {name}_scales must have shape (*, *, K // block) for "
                             f"{name} of shape {x.shape}, got {scale.shape}")
    dtype = dtypes.check_and_canonicalize_user_dtype(preferred_element_type, "scaled_matmul")
    return convert(_product(_unpacked(lhs, lhs_scales), _unpacked(rhs, rhs_scales)), dtype)


# -- rounding to blocks ----------------------------------------------------------------------------


@dataclass
class BlockScaleConfig:
    """How an array is rounded: blocks of `block_size` elements of `data_type` share a scale."""

    mode: str
    block_size: int
    data_type: Any
    scale_type: Any
    global_scale: Any
    infer_only: bool


def get_scaled_dot_general_config(mode: str, global_scale: ArrayLike | None = None
                                 ) -> BlockScaleConfig:
    """The configuration of a format for `scaled_dot_general`.

    Args:
      mode: "mxfp8", "mxfp4" or "nvfp4".
      global_scale: for "nvfp4", an array of one element by which all others are divided; 1 by
        default.

    Returns:
      A `BlockScaleConfig`.

    Raises:
      ValueError: an unknown mode, or a `global_scale` for "mxfp4", or of several numbers.

    >>> import pyjx as jax
    >>> jax.nn.get_scaled_dot_general_config("mxfp8").block_size
    32
    """
    if mode == "nvfp4":
        scale = creation.ones((1,), _single) if global_scale is None else global_scale
        operands("get_scaled_dot_general_config (global_scale)", scale)
        if get_aval(scale).size != 1:
            raise ValueError("get_scaled_dot_general_config: global_scale of nvfp4 must be one "
                             f"number, got an array of the shape {get_aval(scale).shape}. To scale "
                             "parts apart, multiply the operands.")
        return BlockScaleConfig(mode, 16, ml_dtypes.float4_e2m1fn, ml_dtypes.float8_e4m3fn, scale,
                                False)
    if mode not in ("mxfp8", "mxfp4"):
        raise ValueError(f"Unsupported mode: {mode}")
    if mode == "mxfp4" and global_scale is not None:
        raise ValueError("mxfp4 does not use a global_scale; its E8M0 block scales cover the whole "
                         "range. Leave it out, or use nvfp4.")
    data = ml_dtypes.float8_e4m3fn if mode == "mxfp8" else ml_dtypes.float4_e2m1fn
    return BlockScaleConfig(mode, 32, data, ml_dtypes.float8_e8m0fnu, None, False)


def _power_of_two_above(x: Value) -> Array:
    """The least power of two that is not below x >= 0, from 2**-127 on."""
    unsigned = np.dtype(np.uint32)
    bits = lax.bitcast_convert_type(x, unsigned)
    shape = get_aval(bits).shape

    def number(n: int) -> Any:
        return lax.full(shape, n, unsigned)

    exponent = lax.shift_right_logical(bits, number(23))
    fraction = lax.bitwise_and(bits, number(0x7FFFFF))
    tiny = lax.bitwise_and(lax.eq(exponent, number(0)), lax.le(fraction, number(0x400000)))
    up = lax.bitwise_and(lax.gt(fraction, number(0)), lax.ne(exponent, number(254)))
    up = lax.bitwise_and(up, lax.bitwise_not(tiny))
    exponent = lax.select(up, lax.add(exponent, number(1)), exponent)
    power = lax.bitcast_convert_type(lax.shift_left(exponent, number(23)), _single)
    return lax.select(lax.eq(power, lax.full(shape, 0, _single)),
                      lax.full(shape, 2.0 ** -127, _single), power)


def _clipped(x: Value, bound: float) -> Array:
    return lax.clamp(np.float32(-bound), x, np.float32(bound))


def _rounded(x: Value, config: BlockScaleConfig) -> Array:
    """`x` of shape (B, M, K) as it is after a round trip through the format, in float32.

    The largest element of a block becomes the largest number of the data type.
    """
    b, m, k = get_aval(x).shape
    if k % config.block_size:
        raise ValueError(f"scaled_dot_general: the summed axis, of size {k}, is not a multiple of "
                         f"the block size {config.block_size} of {config.mode}")
    blocks = lax.reshape(convert(x, _single), (b, m, k // config.block_size, config.block_size))
    shape = get_aval(blocks).shape
    top = float(dtypes.finfo(config.data_type).max)
    whole = None
    if config.global_scale is not None:
        whole = stretch(lax.reshape(convert(config.global_scale, _single), ()), shape)
        blocks = lax.div(blocks, whole)
    scale = lax.div(lax.reduce_max(lax.abs(blocks), (3,)), lax.full(shape[:3], top, _single))
    if config.scale_type is ml_dtypes.float8_e8m0fnu:
        scale = _power_of_two_above(scale)
    else:
        largest = float(dtypes.finfo(config.scale_type).max)
        scale = convert(convert(_clipped(scale, largest), np.dtype(config.scale_type)), _single)
    wide = lax.broadcast_in_dim(scale, shape, (0, 1, 2))
    data = convert(_clipped(lax.div(blocks, wide), top), np.dtype(config.data_type))
    out = lax.mul(convert(data, _single), wide)
    return lax.reshape(out if whole is None else lax.mul(out, whole), (b, m, k))


def _as_matrices(x: Value, batch: Sequence[int], summed: Sequence[int]
                 ) -> tuple[Array, list[tuple[int, ...]]]:
    """`x` with its axes merged to (batch, rest, summed), and the sizes of the rest."""
    shape = get_aval(x).shape
    rest = [i for i in range(len(shape)) if i not in (*batch, *summed)]
    sizes = [tuple([shape[i] for i in axes]) for axes in (batch, rest, summed)]
    x = permuted(x, (*batch, *rest, *summed))
    return lax.reshape(x, tuple([math.prod(s) for s in sizes])), sizes


def scaled_dot_general(lhs: ArrayLike, rhs: ArrayLike, dimension_numbers: Any,
                       preferred_element_type: DTypeLike | None = np.float32,
                       configs: Sequence[BlockScaleConfig] | None = None,
                       implementation: Any = None) -> Any:
    """`lax.dot_general` of operands that are first rounded to blocks with scales.

    The derivatives are products of rounded arrays as well, but for "nvfp4", where they are those of
    the product that is not rounded.

    Args:
      lhs, rhs: arrays.
      dimension_numbers: ((lhs summed, rhs summed), (lhs batch, rhs batch)) axes.
      preferred_element_type: dtype of the result.
      configs: how to round lhs, rhs and cotangents; see `get_scaled_dot_general_config`. None does
        not round.
      implementation: not used.

    Returns:
      An array of the axes of batches, then those of `lhs` that are left, then those of `rhs`.

    Raises:
      ValueError: the summed axis is not a multiple of the block size, or there are not three
        configurations.

    >>> import pyjx as jax
    >>> configs = [jax.nn.get_scaled_dot_general_config("mxfp8")] * 3
    >>> x = jax.numpy.ones((2, 32))
    >>> jax.nn.scaled_dot_general(x, x, (((1,), (1,)), ((), ())), configs=configs).tolist()
    [[32.0, 32.0], [32.0, 32.0]]
    """
    lhs, rhs = operands("scaled_dot_general", lhs, rhs)
    dtype = dtypes.check_and_canonicalize_user_dtype(preferred_element_type, "scaled_dot_general")
    if configs is None:
        return lax.dot_general(lhs, rhs, dimension_numbers, preferred_element_type=dtype)
    if len(configs) != 3:
        raise ValueError("scaled_dot_general: configs must be three, of lhs, of rhs and of "
                         f"cotangents, got {len(configs)}.")
    (lhs_sum, rhs_sum), (lhs_batch, rhs_batch) = dimension_numbers
    dot_shape(get_aval(lhs), get_aval(rhs), dimension_numbers)
    a, (batch, rows, _) = _as_matrices(lhs, lhs_batch, lhs_sum)
    b, (_, columns, _) = _as_matrices(rhs, rhs_batch, rhs_sum)
    out = _rounding_product(list(configs))(a, b)
    return convert(lax.reshape(out, (*batch, *rows, *columns)), dtype)


def _rounding_product(configs: list[BlockScaleConfig]) -> Any:
    """The product of shapes (B, M, K) and (B, N, K), with its derivative."""
    first, second, third = configs

    @custom_vjp
    def product(a: Value, b: Value) -> Array:
        return _product(_rounded(a, first), _rounded(b, second))

    def forward(a: Value, b: Value) -> tuple[Array, Any]:
        return product(a, b), (a, b)

    def backward(kept: Any, g: Value) -> Any:
        a, b = kept
        turned = [permuted(x, (0, 2, 1)) for x in (a, b, g)]
        pairs = [(g, third, turned[1], second, a), (turned[2], third, turned[0], first, b)]
        return tuple([convert(_product(*(
            (convert(x, _single), convert(y, _single)) if p.mode == "nvfp4" or q.mode == "nvfp4"
            else (_rounded(x, p), _rounded(y, q)))), get_aval(like).dtype)
            for x, p, y, q, like in pairs])

    product.defvjp(forward, backward)
    return product
