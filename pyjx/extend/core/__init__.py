"""Programs and primitives."""

from __future__ import annotations

from pyjx.lazy import attach

FAMILIES: dict[str, str] = {
    "pyjx.core.avals": "AbstractToken Token get_aval is_valid_value",
    "pyjx.core.check": "check_jaxpr",
    "pyjx.compat.contexts": (
        "TraceTag find_top_trace get_opaque_trace_state nonempty_axis_env_DO_NOT_USE "
        "set_current_trace take_current_trace unsafe_am_i_under_a_jit_DO_NOT_USE "
        "unsafe_am_i_under_a_vmap_DO_NOT_USE unsafe_get_axis_names_DO_NOT_USE"
    ),
    "pyjx.core.effects": "Effect Effects no_effects",
    "pyjx.core.jaxpr": (
        "ClosedJaxpr DebugInfo DropVar Jaxpr JaxprEqn Literal Var jaxprs_in_params new_jaxpr_eqn "
        "subjaxprs"
    ),
    "pyjx.core.evaluation": "jaxpr_as_fun",
    "pyjx.core.trace": "concrete_or_error",
    "pyjx.compat.open_primitives": (
        "CallPrimitive Primitive call_impl create_call_primitive eval_jaxpr_transpose "
        "register_call_primitive_rules"
    ),
    "pyjx.compat.avals": (
        "InconclusiveDimensionOperation array_types gensym mapped_aval "
        "primal_dtype_to_tangent_dtype unmapped_aval valid_jaxtype"
    ),
    "pyjx.errors": "JaxprTypeError",
}

SUBMODULES = "primitives"

__getattr__, __dir__, __all__ = attach(__name__, FAMILIES, SUBMODULES)
