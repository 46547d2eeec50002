"""Programs that leave the process: functions as StableHLO, with or without symbolic shapes.

    exported = export.export(jax.jit(f))(jax.ShapeDtypeStruct(export.symbolic_shape("b, 4"), "f4"))
    blob = exported.serialize()
    export.deserialize(blob).call(x)

`container.py` describes the bytes; those of `jax.export` are read, too, and written by
`serialize(format="jax")`.
"""

from __future__ import annotations

from pyjx.lazy import attach

FAMILIES: dict[str, str] = {
    "pyjx.core.symbolic.expressions": "is_symbolic_dim",
    "pyjx.core.symbolic.scopes": "SymbolicScope",
    "pyjx.export.reading": "deserialize",
    "pyjx.export.exported": (
        "DisabledSafetyCheck Exported maximum_supported_calling_convention_version "
        "minimum_supported_calling_convention_version"),
    "pyjx.export.exporting": (
        "default_export_platform export symbolic_args_specs symbolic_dim_bounds symbolic_shape"),
    "pyjx.export.trees":
        "register_namedtuple_serialization register_pytree_node_serialization",
}

__getattr__, __dir__, __all__ = attach(__name__, FAMILIES)
