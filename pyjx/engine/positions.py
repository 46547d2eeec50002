"""Positions along an axis.

They stand here, and not in `pyjx.lax`, because Jacobians map over the vectors of a basis.
"""

from __future__ import annotations

import numpy as np

from pyjx.core import dtypes
from pyjx.core.avals import ShapedArray
from pyjx.core.dtypes import DType
from pyjx.core.layouts import ShardingLike
from pyjx.core.primitive import CHEAP, Primitive, register
from pyjx.engine.rules import jvp_zero


def _iota_shape(*, dtype: DType, shape: tuple[int, ...], dimension: int,
                sharding: ShardingLike = None) -> ShapedArray:
    if not dtypes.issubdtype(dtype, np.number):
        raise TypeError(
            f"iota does not accept dtype {dtypes.name(dtype)}. Accepted dtypes are subtypes of "
            "integer, floating, complexfloating."
        )
    if any(n < 0 for n in shape):
        raise TypeError(f"iota shape must have every element be nonnegative, got {shape}.")
    if not 0 <= dimension < len(shape):
        raise ValueError(
            f"iota dimension must be between 0 and len(shape), got dimension={dimension} "
            f"for shape={shape}"
        )
    return ShapedArray(shape, dtype)


iota_p = register(Primitive("iota", moves=True, shape_rule=_iota_shape, cost=CHEAP))
iota_p.define(jvp=jvp_zero(iota_p), batch=lambda operands, dims, **params: (
    iota_p.bind(**params), None))  # it has no operands, so nothing is ever batched
