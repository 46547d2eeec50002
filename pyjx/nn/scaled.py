"""Products of matrices that are stored in few bits with a scale for each block."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyjx import lax
from pyjx.core import dtypes
from pyjx.core.avals import get_aval
from pyjx.numpy.axes import numpy_function
from pyjx.numpy.joining import repeated
from pyjx.numpy.promotion import convert, operands

__all__ = ["scaled_matmul"]


def _unpacked(x: Any, scales: Any) -> Any:
    """x times its scales, in float32."""
    single = np.dtype(np.float32)
    block = get_aval(x).shape[-1] // get_aval(scales).shape[-1]
    return lax.mul(convert(x, single), repeated(convert(scales, single), block, 2))


@numpy_function(static_argnames=("preferred_element_type",))
def scaled_matmul(lhs: Any, rhs: Any, lhs_scales: Any, rhs_scales: Any,
                  preferred_element_type: Any = np.float32) -> Any:
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
        raise ValueError("scaled_matmul: expected operands of rank 3, got shapes "
                         f"{a.shape}, {b.shape}, {p.shape}, {q.shape}")
    if a.shape[0] != b.shape[0] or a.shape[2] != b.shape[2]:
        raise ValueError("scaled_matmul: lhs (B, M, K) and rhs (B, N, K) must agree in B and K, "
                         f"got {a.shape} and {b.shape}")
    for name, x, scale in (("lhs", a, p), ("rhs", b, q)):
        if x.shape[:2] != scale.shape[:2] or not scale.shape[2] or x.shape[2] % scale.shape[2]:
            raise ValueError(f"scaled_matmul: {name}_scales must have shape (*, *, K // block) for "
                             f"{name} of shape {x.shape}, got {scale.shape}")
    dtype = dtypes.check_and_canonicalize_user_dtype(preferred_element_type, "scaled_matmul")
    out = lax.dot_general(_unpacked(lhs, lhs_scales), _unpacked(rhs, rhs_scales),
                          (((2,), (2,)), ((0,), (0,))))
    return convert(out, dtype)
