"""The operations that derivatives and derived programs are made of, whatever the user's program is.

They stand here, and not in `pyjx.lax` with their public functions, because the engines and the
transformations make equations of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pyjx.core import dtypes
from pyjx.core.arithmetic import APART, TOGETHER
from pyjx.core.array_type import Array
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.effects import no_effects
from pyjx.core.evaluation import replaced
from pyjx.core.explicit import entries_of
from pyjx.core.jaxpr import JaxprEqn, Var
from pyjx.core.layouts import ShardingLike
from pyjx.core.primitive import CHEAP, Primitive, register
from pyjx.core.source_info import SourceInfo
from pyjx.core.trace import Tracer
from pyjx.engine.recording import converted
from pyjx.engine.rules import elementwise_batch, jvp_zero
from pyjx.engine.tangents import Zero
from pyjx.engine.types import Dims, Operand, Tangent, Tangents, Value, Values

# -- dtypes and weak types -------------------------------------------------------------------------


def stands_for_constant(x: object) -> bool:
    """Whether `x` is a tracer of a value of Python or NumPy, which was not made an array yet."""
    value = x.to_concrete_value() if isinstance(x, Tracer) else None
    return value is not None and not isinstance(value, Array)


def _converts(old: Any, new: Any) -> bool:
    """Whether an extended dtype converts to or from another one."""
    if dtypes.is_extended(old):
        return not dtypes.is_extended(new) and bool(old.converts(new, back=True))
    return bool(new.converts(old, back=False))


def _convert_shape(x: ShapedArray, *, new_dtype: dtypes.DType, weak_type: bool,
                   sharding: ShardingLike = None) -> ShapedArray:
    extended = dtypes.is_extended(x.dtype) or dtypes.is_extended(new_dtype)
    if extended and x.dtype != new_dtype and not _converts(x.dtype, new_dtype):
        raise ValueError(f"Cannot convert_element_type from {x.dtype} to {new_dtype}: of extended "
                         "dtypes there are conversions to and from the dtype of their data, where "
                         "they allow them.")
    return ShapedArray(x.shape, new_dtype, weak_type)


def _convert_jvp(primals: Values, tangents: Tangents, *, new_dtype: dtypes.DType, **params: Any
                 ) -> tuple[Value, Tangent]:
    out = convert_element_type_p.bind(*primals, new_dtype=new_dtype, **params)
    (g,) = tangents
    tangent_dtype = dtypes.tangent_dtype(new_dtype)
    if type(g) is Zero or tangent_dtype == dtypes.float0:
        return out, Zero.of_primal(out)
    return out, convert_element_type_p.bind(g, new_dtype=tangent_dtype, **params)


def _convert_data(avals: Sequence[Any], x: Array, *, new_dtype: dtypes.DType, weak_type: bool,
                  **_: Any) -> Array:
    """The data of an extended dtype are of the dtype that they are converted to or from."""
    return x if dtypes.is_extended(new_dtype) else cast(x, new_dtype, weak_type)


def _convert_transpose(ct: Tangent, x: Operand, **_: Any) -> Tangents:
    return (cast(ct, x.aval.dtype, x.aval.weak_type),)


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


# -- positions along an axis -----------------------------------------------------------------------


def _iota_shape(*, dtype: dtypes.DType, shape: tuple[int, ...], dimension: int,
                sharding: ShardingLike = None) -> ShapedArray:
    if not dtypes.issubdtype(dtype, np.number):
        raise TypeError(f"iota does not accept dtype {dtypes.name(dtype)}. Accepted dtypes are "
                        "subtypes of integer, floating, complexfloating.")
    if any(n < 0 for n in shape):
        raise TypeError(f"iota shape must have every element be nonnegative, got {shape}.")
    if not 0 <= dimension < len(shape):
        raise ValueError("iota dimension must be between 0 and len(shape), got "
                         f"dimension={dimension} for shape={shape}")
    return ShapedArray(shape, dtype)


iota_p = register(Primitive("iota", moves=True, shape_rule=_iota_shape, cost=CHEAP))
iota_p.define(jvp=jvp_zero(iota_p), batch=lambda operands, dims, **params: (
    iota_p.bind(**params), None))  # it has no operands, so nothing is ever batched


# -- values rounded to their own type --------------------------------------------------------------
# Inside a program XLA may compute with more bits than the type of a value has. What is saved has
# the bits of its type, so the forward pass has to go on with these, too: else the backward pass
# would be that of another point. The rules of the primitive stand with `lax.reduce_precision`.


reduce_precision_p = register(Primitive("reduce_precision", linear=TOGETHER, keeps_nans=True))

# Of exponent and mantissa.
_BITS = {np.dtype(dtypes.bfloat16): (8, 7), np.dtype(np.float16): (5, 10)}


def needs_rounding(v: Var) -> bool:
    """Whether XLA may compute a value of this type with more bits."""
    return getattr(v.aval, "dtype", None) in _BITS


def rounded_eqn(source: Var, target: Var, source_info: SourceInfo) -> JaxprEqn:
    """`target` is `source` rounded to its type."""
    exponent, mantissa = _BITS[target.aval.dtype]
    return JaxprEqn(reduce_precision_p, [source], [target],
                    {"exponent_bits": exponent, "mantissa_bits": mantissa}, no_effects, source_info)


# -- values that XLA may not see through -----------------------------------------------------------


def _barrier_jvp(primals: Values, tangents: Tangents) -> Any:
    return optimization_barrier_p.bind(*primals), _barred(tangents)


def _barred(tangents: Tangents) -> list[Any]:
    """Tangents or cotangents behind a barrier of their own, which holds up no primals."""
    known = [t for t in tangents if type(t) is not Zero]
    behind = iter(optimization_barrier_p.bind(*known) if known else ())
    return [t if type(t) is Zero else next(behind) for t in tangents]


def _barrier_batch(operands: Values, dims: Dims) -> Any:
    return optimization_barrier_p.bind(*operands), dims


optimization_barrier_p = register(Primitive(
    "optimization_barrier", moves=True, shape_rule=lambda *avals: avals,
    sharding_rule=lambda outs, *xs: list(map(entries_of, xs)), multiple_results=True,
    jvp=_barrier_jvp, transpose=lambda cts, *operands: _barred(cts), linear=APART,
    batch=_barrier_batch,
))


def barrier_eqn(values: Sequence[Any], behind: dict[Any, Any], source_info: SourceInfo) -> JaxprEqn:
    """A barrier of values, or of what stands in their places behind another one; `behind` gets what
    stands there behind this one."""
    after = [Var(v.aval) for v in values]
    barrier = JaxprEqn(optimization_barrier_p, replaced(values, behind), after, {}, no_effects,
                       source_info)
    behind.update(zip(values, after, strict=True))
    return barrier


# -- names of values, for policies of rematerialization --------------------------------------------


def _name_jvp(primals: Values, tangents: Tangents, *, name: str) -> Any:
    (x,), (t,) = primals, tangents
    return name_p.bind(x, name=name), t


name_p: Primitive = register(Primitive(
    "name", moves=True, shape_rule=lambda x, name: x, jvp=_name_jvp,
    batch=lambda operands, dims, name: (name_p.bind(operands[0], name=name), dims[0]),
    transpose=lambda ct, x, name: [ct], impl=lambda x, name: x,
    decomposition=lambda x, name: x, linear=TOGETHER,
))
