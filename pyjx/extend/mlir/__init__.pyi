# Written by `python -m pyjx.cli.stubs` from the table of pyjx.extend.mlir.

from pyjx.extend.mlir import dialects as dialects
from pyjx.extend.bindings import deserialize_portable_artifact as deserialize_portable_artifact
from pyjx.extend.bindings import hlo_to_stablehlo as hlo_to_stablehlo
from pyjx.extend.bindings import ir as ir
from pyjx.extend.bindings import lower_with_sharding_in_types as lower_with_sharding_in_types
from pyjx.extend.bindings import passmanager as passmanager
from pyjx.extend.bindings import refine_polymorphic_shapes as refine_polymorphic_shapes
from pyjx.extend.bindings import serialize_portable_artifact as serialize_portable_artifact

__all__ = [
    "dialects",
    "deserialize_portable_artifact",
    "hlo_to_stablehlo",
    "ir",
    "lower_with_sharding_in_types",
    "passmanager",
    "refine_polymorphic_shapes",
    "serialize_portable_artifact",
]
