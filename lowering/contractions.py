"""Lowering of dot_general."""

from __future__ import annotations

from typing import Any

import numpy as np

from lowering.builder import Block
from lowering.rules import rule
from lowering.types import element_type, int_list, tensor_type
from pyjx.core import dtypes
from pyjx.core.avals import ShapedArray
from pyjx.core.jaxpr import JaxprEqn

# What XLA's CPU backend knows.
_CPU_PRESETS = ("DEFAULT", "F16_F16_F16", "F32_F32_F32", "F64_F64_F64", "BF16_BF16_F32",
                "BF16_BF16_F32_X3", "BF16_BF16_F32_X6")


def precision_config(precision: Any) -> str:
    """`[HIGH, DEFAULT]`; the default where `precision` is no pair."""
    lhs, rhs = precision if type(precision) is tuple else ("DEFAULT", "DEFAULT")
    return f"[{lhs}, {rhs}]"


def _is_small_float(aval: Any) -> bool:
    return bool(dtypes.issubdtype(aval.dtype, np.floating) and aval.dtype.itemsize == 1)


class _Algorithm:
    """A dot algorithm by the fields of StableHLO's attribute, and the dtypes it takes."""

    __slots__ = ("lhs", "out", "rhs", "text")

    def __init__(self, lhs: Any, rhs: Any, out: Any, text: str) -> None:
        self.lhs = lhs
        self.rhs = rhs
        self.out = out
        self.text = text


def _attribute(lhs: str, rhs: str, acc: str, counts: tuple[int, int, int], imprecise: bool) -> str:
    return (
        f"<lhs_precision_type = {lhs}, rhs_precision_type = {rhs}, accumulation_type = {acc}, "
        f"lhs_component_count = {counts[0]}, rhs_component_count = {counts[1]}, "
        f"num_primitive_operations = {counts[2]}, "
        f"allow_imprecise_accumulation = {str(imprecise).lower()}>")


def _of_preset(preset: Any, lhs: Any, rhs: Any, out: Any) -> _Algorithm | None:
    """The algorithm of a preset for these dtypes; None for the default one."""
    name = preset.name
    if name == "DEFAULT":
        return None
    takes, gives = preset.supported_lhs_types, preset.supported_output_types

    def stored(dtype: Any) -> Any:
        kinds = takes and [np.dtype(t) for t in takes]
        return dtype if not kinds or dtype in kinds else kinds[0]

    lhs_kind, rhs_kind = stored(lhs), stored(rhs)
    outs = [np.dtype(t) for t in gives(lhs_kind, rhs_kind) or (out,)]
    if name == "BF16_BF16_F32" and lhs_kind == rhs_kind == np.dtype(dtypes.bfloat16):
        outs.append(lhs_kind)
    out_kind = out if out in outs else outs[0]
    if name.startswith("ANY_F8"):
        if not (_is_small_float(ShapedArray((), lhs)) and _is_small_float(ShapedArray((), rhs))):
            raise ValueError(f"The dot algorithm '{name}' requires both inputs to have float8 "
                             f"dtypes. Got {lhs} and {rhs} instead.")
        acc = element_type(np.dtype(preset.accumulation_type or out))
        text = _attribute(element_type(lhs), element_type(rhs), acc, (1, 1, 1),
                          name.endswith("FAST_ACCUM"))
        return _Algorithm(lhs_kind, rhs_kind, out_kind, text)
    kind, _, acc, *times = name.lower().split("_")
    text = _attribute(kind, kind, acc, (1, 1, int(times[0][1:]) if times else 1), False)
    return _Algorithm(lhs_kind, rhs_kind, out_kind, text)


def _type_name(t: Any) -> str:
    return t if t == "tf32" else element_type(np.dtype(t))


def _of_fields(a: Any, lhs: Any, rhs: Any, out: Any) -> _Algorithm:
    counts = (a.lhs_component_count, a.rhs_component_count, a.num_primitive_operations)
    text = _attribute(_type_name(a.lhs_precision_type), _type_name(a.rhs_precision_type),
                      _type_name(a.accumulation_type), counts, a.allow_imprecise_accumulation)
    return _Algorithm(lhs, rhs, out, text)


def _algorithm(precision: Any, platform: str, lhs: Any, rhs: Any, out: Any) -> _Algorithm | None:
    """What a `precision` parameter that is no pair stands for."""
    if precision is None or type(precision) is tuple:
        return None
    is_preset = hasattr(precision, "supported_lhs_types")
    if platform == "cpu" and not (is_preset and precision.name in _CPU_PRESETS):
        raise ValueError(f"The precision '{precision}' is not supported by dot_general on CPU")
    return (_of_preset if is_preset else _of_fields)(precision, lhs, rhs, out)


@rule("dot_general")
def _dot_general(b: Block, eqn: JaxprEqn, lhs: str, rhs: str) -> str:
    x, y = eqn.invars[0].aval, eqn.invars[1].aval
    out = eqn.outvars[0].aval
    params = eqn.params
    algorithm = _algorithm(params["precision"], b.module.platform, x.dtype, y.dtype, out.dtype)
    x_dtype, y_dtype, out_dtype = x.dtype, y.dtype, out.dtype
    attribute = ""
    if algorithm is not None:
        x_dtype, y_dtype, out_dtype = algorithm.lhs, algorithm.rhs, algorithm.out
        attribute = f", algorithm = {algorithm.text}"
    elif x_dtype != y_dtype and not (_is_small_float(x) and _is_small_float(y)):
        x_dtype = y_dtype = out_dtype  # XLA multiplies equal dtypes
    lhs_aval, rhs_aval = x.update(dtype=x_dtype), y.update(dtype=y_dtype)
    lhs = b.convert(lhs, x, lhs_aval)
    rhs = b.convert(rhs, y, rhs_aval)
    (lc, rc), (lb, rb) = params["dimension_numbers"]
    batch = f" batching_dims = {int_list(lb)} x {int_list(rb)}," if lb else ""
    result = ShapedArray(out.shape, out_dtype)
    name = b.line(
        f"stablehlo.dot_general {lhs}, {rhs},{batch} contracting_dims = {int_list(lc)} x "
        f"{int_list(rc)}, precision = {precision_config(params['precision'])}{attribute} : "
        f"({tensor_type(lhs_aval)}, {tensor_type(rhs_aval)}) -> {tensor_type(result)}")
    return b.convert(name, result, out)
