"""Derivatives: tangents, and the rules of primitives."""

from __future__ import annotations

from pyjx.lazy import attach

FAMILIES: dict[str, str] = {
    "pyjx.compat.rule_tables": (
        "defbilinear defjvp defjvp2 deflinear deflinear2 get_primitive_transpose "
        "instantiate_zeros primitive_jvps primitive_transposes zeros_like_aval"
    ),
    "pyjx.compat.derivatives": "backward_pass jvp jvp_jaxpr linearize",
    "pyjx.engine.forward": "JVPTrace JVPTracer",
    "pyjx.engine.tangents": (
        "UndefinedPrimal Zero add_jaxvals=add_tangents add_jaxvals_p=add_any_p add_tangents "
        "is_undefined_primal"
    ),
}

__getattr__, __dir__, __all__ = attach(__name__, FAMILIES)
