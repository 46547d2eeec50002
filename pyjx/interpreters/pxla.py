"""Programs on several devices."""

from __future__ import annotations

from pyjx.lazy import attach

FAMILIES: dict[str, str] = {
    "pyjx.compat.devices": (
        "MeshComputation MeshExecutable create_compile_options "
        "global_aval_to_result_handler global_avals_to_results_handler global_result_handlers "
        "thread_resources"
    ),
    "pyjx.core.meshes": "Mesh",
}

__getattr__, __dir__, __all__ = attach(__name__, FAMILIES)
