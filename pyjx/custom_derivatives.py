"""Functions with derivatives that the user gives, and what their rules work with."""

from __future__ import annotations

from pyjx.lazy import attach

FAMILIES = {
    "pyjx.transforms.custom_rules":
        "CustomVJPPrimal SymbolicZero closure_convert custom_gradient custom_jvp "
        "custom_jvp_call_p custom_vjp custom_vjp_call_p custom_vjp_primal_tree_values "
        "zero_from_primal",
    "pyjx.transforms.custom_linear": "linear_call",
}

__getattr__, __dir__ = attach(__name__, FAMILIES)
