"""Conversion of dtypes and weak types: the operation that derivatives and Jacobians need.

It stands here, and not in `pyjx.lax`, because the transformations make results of given types.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pyjx.core import dtypes
from pyjx.core.array_type import Array
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.dtypes import DType
from pyjx.core.layouts import ShardingLike
from pyjx.core.linearity import TOGETHER
from pyjx.core.primitive import CHEAP, Primitive, register
from pyjx.core.trace import Tracer
from pyjx.engine.recording import converted
from pyjx.engine.rules import elementwise_batch
from pyjx.engine.tangents import Zero
from pyjx.engine.types import Operand, Tangent, Tangents, Value, Values


def stands_for_constant(x: object) -> bool:
    """Whether `x` is a tracer of a value of Python or NumPy, which was not made an array yet."""
    value = x.to_concrete_value() if isinstance(x, Tracer) else None
    return value is not None and not isinstance(value, Array)


def _converts(old: Any, new: Any) -> bool:
    """Whether an extended dtype converts to or from another one."""
    if dtypes.is_extended(old):
        return not dtypes.is_extended(new) and bool(old.converts(new, back=True))
    return bool(new.converts(old, back=False))


def _convert_shape(x: ShapedArray, *, new_dtype: DType, weak_type: bool,
                   sharding: ShardingLike = None) -> ShapedArray:
    extended = dtypes.is_extended(x.dtype) or dtypes.is_extended(new_dtype)
    if extended and x.dtype != new_dtype and not _converts(x.dtype, new_dtype):
        raise ValueError(f"Cannot convert_element_type from {x.dtype} to {new_dtype}: of extended "
                         "dtypes there are conversions to and from the dtype of their data, where "
                         "they allow them.")
    return ShapedArray(x.shape, new_dtype, weak_type)


def _convert_jvp(primals: Values, tangents: Tangents, *, new_dtype: DType, **params: Any
                 ) -> tuple[Value, Tangent]:
    out = convert_element_type_p.bind(*primals, new_dtype=new_dtype, **params)
    (g,) = tangents
    tangent_dtype = dtypes.tangent_dtype(new_dtype)
    if type(g) is Zero or tangent_dtype == dtypes.float0:
        return out, Zero.of_primal(out)
    return out, convert_element_type_p.bind(g, new_dtype=tangent_dtype, **params)


def _convert_data(avals: Sequence[Any], x: Array, *, new_dtype: DType, weak_type: bool,
                  **_: Any) -> Array:
    """The data of an extended dtype are of the dtype that they are converted to or from."""
    return x if dtypes.is_extended(new_dtype) else cast(x, new_dtype, weak_type)


def _convert_transpose(ct: Tangent, x: Operand, **_: Any) -> Tangents:
    return (Zero(x.aval) if type(ct) is Zero else cast(ct, x.aval.dtype, x.aval.weak_type),)


convert_element_type_p = register(Primitive(
    "convert_element_type", moves=True, linear=TOGETHER, shape_rule=_convert_shape,
    jvp=_convert_jvp, record=converted, cost=CHEAP, transpose=_convert_transpose,
    physical=_convert_data,
    printed=lambda params: [(key, params[key]) for key in ("new_dtype", "weak_type")],
))
convert_element_type_p.define(batch=elementwise_batch(convert_element_type_p))


def cast(x: Any, dtype: Any, weak_type: bool = False) -> Any:
    """`x` with the given (canonical) dtype and weak type; itself where it has them already."""
    aval = get_aval(x)
    if aval.dtype == dtype and aval.weak_type == weak_type and type(x) is not np.ndarray and (
            not stands_for_constant(x)):
        return x
    return convert_element_type_p.bind(x, new_dtype=dtype, weak_type=weak_type, sharding=None)
