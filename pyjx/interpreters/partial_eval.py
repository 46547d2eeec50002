"""Programs: tracing functions, and taking programs apart."""

from __future__ import annotations

from pyjx.lazy import attach

FAMILIES: dict[str, str] = {
    "pyjx.compat.partial_evaluation": (
        "JaxprTracer PartialVal abstract_eval_fun close_jaxpr convert_constvars_jaxpr dce_jaxpr "
        "dce_jaxpr_consts move_binders_to_back partial_eval_jaxpr_nounits "
        "prune_closed_jaxpr_outputs trace_to_jaxpr_dynamic trace_to_jaxpr_nounits"
    ),
    "pyjx.core.trace": "DynamicJaxprTrace=JaxprTrace DynamicJaxprTracer=JaxprTracer",
}

__getattr__, __dir__, __all__ = attach(__name__, FAMILIES)
