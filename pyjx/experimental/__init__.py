"""What may still change."""

from __future__ import annotations

from pyjx.lazy import attach

FAMILIES: dict[str, str] = {
    "pyjx.experimental.earray": "EArray primal_tangent_dtype",
    "pyjx.compat.hi_types": "cur_qdd",
    "pyjx.lax.callbacks": "io_callback",
}

SUBMODULES = (
    "array_serialization buffer_callback checkify colocated_python compilation_cache compute_on "
    "control_deps custom_partitioning fused hijax jax2tf jet key_reuse layout mesh_utils mosaic "
    "multihost_utils ode overlap pallas pjit profiler random rnn roofline scheduling_groups "
    "serialize_executable shard_alike shard_map source_mapper sparse thunky topologies transfer "
    "xla_metadata"
)

__getattr__, __dir__, __all__ = attach(__name__, FAMILIES, SUBMODULES)
