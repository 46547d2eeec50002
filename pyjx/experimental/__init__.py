"""What may still change."""

from __future__ import annotations

from pyjx.lazy import attach, views

MODULES: dict[str, tuple[str, dict[str, str]]] = {
    "hijax": ("Types of a library's own: values made of arrays, with operations of their own.", {
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
    }),
    "transfer": ("Transfers of arrays between processes that form no group, by jaxlib's server.", {
        "pyjx.extend.bindings": "TransferConnection TransferServer start_transfer_server",
    }),
}

FAMILIES: dict[str, str] = {
    "pyjx.experimental.earray": "EArray primal_tangent_dtype",
    "pyjx.compat.hi_types": "cur_qdd",
    "pyjx.lax.callbacks": "io_callback",
}

SUBMODULES = views(__name__, MODULES) + (
    " array_serialization buffer_callback checkify colocated_python compilation_cache compute_on "
    "control_deps custom_partitioning fused jax2tf jet key_reuse layout mesh_utils mosaic "
    "multihost_utils ode overlap pallas pjit profiler random rnn roofline scheduling_groups "
    "serialize_executable shard_alike shard_map source_mapper sparse thunky topologies "
    "xla_metadata"
)

__getattr__, __dir__, __all__ = attach(__name__, FAMILIES, SUBMODULES)
