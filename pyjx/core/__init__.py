"""The IR and the one place where interpreters meet."""

from __future__ import annotations

from pyjx.lazy import attach

# What users of `jax.core` ask for, by module.
FAMILIES: dict[str, str] = {
    "pyjx.compat.interpreters": "Trace",
    "pyjx.core.avals": (
        "AbstractToken AbstractValue ShapedArray abstract_token get_aval "
        "pytype_aval_mappings=aval_makers valid_jaxtype=is_valid_value"
    ),
    "pyjx.core.check": "check_jaxpr",
    "pyjx.compat.contexts": (
        "find_top_trace get_opaque_trace_state nonempty_axis_env_DO_NOT_USE trace_ctx "
        "unsafe_am_i_under_a_jit_DO_NOT_USE unsafe_am_i_under_a_vmap_DO_NOT_USE "
        "unsafe_get_axis_names_DO_NOT_USE"
    ),
    "pyjx.core.dimensions": "max_dim min_dim",
    "pyjx.core.dtypes": "primal_dtype_to_tangent_dtype=tangent_dtype",
    "pyjx.core.effects": "Effect Effects NamedAxisEffect no_effects",
    "pyjx.core.jaxpr": (
        "Atom ClosedJaxpr DebugInfo DropVar Jaxpr JaxprEqn Literal ParamDict Var jaxprs_in_params "
        "new_jaxpr_eqn"
    ),
    "pyjx.compat.open_primitives": "CallPrimitive",
    "pyjx.core.primitive": "Primitive",
    "pyjx.core.printer": "JaxprPpContext JaxprPpSettings",
    "pyjx.core.evaluation": "eval_jaxpr jaxpr_as_fun",
    "pyjx.core.scalars": "literalable_types=literal_types",
    "pyjx.core.trace": (
        "Tracer concrete_or_error ensure_compile_time_eval "
        "eval_context=ensure_compile_time_eval is_concrete"
    ),
    "pyjx.errors": "JaxprTypeError InconclusiveDimensionOperation",
}

__getattr__, __dir__, __all__ = attach(__name__, FAMILIES)
