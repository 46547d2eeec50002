"""What may still change."""

from __future__ import annotations

from pyjx.lazy import attach

FAMILIES: dict[str, str] = {
    "pyjx.lax.callbacks": "io_callback",
}

SUBMODULES = (
    "buffer_callback checkify colocated_python custom_partitioning hijax jet layout mesh_utils "
    "multihost_utils ode pjit random rnn serialize_executable shard_alike shard_map sparse "
    "topologies"
)

__getattr__, __dir__, __all__ = attach(__name__, FAMILIES, SUBMODULES)
