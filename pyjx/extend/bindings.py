"""Names of jaxlib that public modules show, such as the bindings of MLIR."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

from pyjx import jaxlib_api
from pyjx.core.avals import ShapedArray
from pyjx.guards import guard


def _cuda_versions() -> ModuleType | None:
    """What tells the versions of CUDA's libraries: a part of XLA's plugin, where it is installed.

    It loads the libraries, so it is imported for those who ask.
    """
    for package in ("jax_cuda13_plugin", "jax_cuda12_plugin"):
        try:
            return importlib.import_module(f"{package}._versions")
        except ImportError:  # also where there are no libraries that it could load
            continue
    return None


def __getattr__(name: str) -> Any:
    if name == "cuda_versions":
        return _cuda_versions()
    if name == "jaxlib_extension_version":
        return jaxlib_api.submodule("xla_client")._version
    if name == "ifrt_proxy":
        return jaxlib_api.submodule("_ifrt_proxy")
    if name in ("ir", "passmanager"):
        return jaxlib_api.submodule(f"mlir.{name}")
    if name == "ifrt_programs":
        return jaxlib_api.ifrt_programs()
    if name == "JaxIrContext":
        return jaxlib_api.mlir_bindings().ir.Context
    if name == "upstream_dialects":
        registry = jaxlib_api.mlir_bindings().ir.DialectRegistry()
        jaxlib_api.submodule("mlir._mlir_libs._jax_mlir_ext").register_dialects(registry)
        return registry
    if jaxlib_api.has_submodule(f"mlir.dialects.{name}"):
        return jaxlib_api.submodule(f"mlir.dialects.{name}")
    extension = jaxlib_api.submodule("_jax")
    for owner in (extension.mlir, extension):
        if hasattr(owner, name):
            return getattr(owner, name)
    return jaxlib_api.submodule(name)


guard(__getattr__)


def lower_with_sharding_in_types(ctx: Any, op: Any, aval: ShapedArray) -> Any:
    """The value of an operation, which a lowering rule built, with the sharding that its type
    has: a type without one leaves it as it is. pyjx makes constraints of the shardings of types
    before programs are lowered, so there is nothing to add."""
    return op


def get_op_sharding_from_serialized_proto(sharding: bytes) -> Any:
    """The sharding that the bytes of a proto hold."""
    proto = jaxlib_api.OpSharding()
    proto.ParseFromString(sharding)
    return proto


def get_hlo_sharding_from_serialized_proto(sharding: bytes) -> Any:
    """As `get_op_sharding_from_serialized_proto`, as an HLO sharding."""
    return jaxlib_api.HloSharding.from_proto(get_op_sharding_from_serialized_proto(sharding))


def get_serialized_proto_from_hlo_sharding(sharding: Any) -> bytes:
    """The bytes of a sharding."""
    return sharding.to_proto().SerializeToString()  # type: ignore[no-any-return]
