"""The IR and the one place where interpreters meet."""

from __future__ import annotations

from pyjx.lazy import attach

# What users of `jax.core` ask for, by module.
FAMILIES: dict[str, str] = {
    "pyjx.core.avals": "AbstractToken AbstractValue ShapedArray abstract_token get_aval",
    "pyjx.core.check": "JaxprTypeError check_jaxpr",
    "pyjx.core.dimensions": "max_dim min_dim",
    "pyjx.core.effects": "Effect Effects NamedAxisEffect no_effects",
    "pyjx.core.jaxpr": (
        "Atom ClosedJaxpr DebugInfo DropVar Jaxpr JaxprEqn Literal ParamDict Var"
    ),
    "pyjx.core.primitive": "Primitive",
    "pyjx.core.trace": (
        "Trace Tracer concrete_or_error ensure_compile_time_eval "
        "eval_context=ensure_compile_time_eval eval_jaxpr is_concrete "
        "jaxpr_as_fun"
    ),
}

__getattr__, __dir__, __all__ = attach(__name__, FAMILIES)
