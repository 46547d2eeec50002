"""Types of a library's own: values that are made of arrays, with operations of their own."""

from __future__ import annotations

from pyjx.lazy import attach

FAMILIES: dict[str, str] = {
    "pyjx.compat.hi_primitives": (
        "HiPrim RefAccum VJPHiPrimitive bdims_at_front jvp_from_lin linearize_from_jvp "
        "unmap_avals vjp_from_jvp vjp_from_lin vmap_rule"
    ),
    "pyjx.compat.hi_types": (
        "AvalMutableQDD AvalQDD HiPrimitive HiPspec HiType MappingSpec MutableHiType "
        "aval_method aval_property control_flow_allowed_effects register_hitype"
    ),
    "pyjx.compat.rule_tables": "instantiate_zeros",
    "pyjx.core.avals": "AbstractRef AbstractValue ShapedArray",
    "pyjx.engine.tangents": "Zero is_undefined_primal",
    "pyjx.lax.references": "TransformedRef",
    "pyjx.transforms.accumulators": "GradAccum NullAccum ValAccum",
}

__getattr__, __dir__, __all__ = attach(__name__, FAMILIES)
