"""Programs: tracing functions, and taking programs apart."""

from __future__ import annotations

from pyjx.lazy import attach

FAMILIES: dict[str, str] = {
    "pyjx.compat.partial_evaluation": (
        "JaxprTracer PartialVal abstract_eval_fun close_jaxpr convert_constvars_jaxpr "
        "custom_partial_eval_rules dce_jaxpr dce_jaxpr_call_rule dce_jaxpr_closed_call_rule "
        "dce_jaxpr_consts dce_rules lower_jaxpr lower_jaxpr2 move_binders_to_back new_eqn_recipe "
        "partial_eval_jaxpr_custom_rules partial_eval_jaxpr_nounits prune_closed_jaxpr_outputs "
        "trace_to_jaxpr_dynamic trace_to_jaxpr_nounits"
    ),
    "pyjx.core.trace": "DynamicJaxprTrace DynamicJaxprTracer",
}

__getattr__, __dir__, __all__ = attach(__name__, FAMILIES)
