"""Shardings as XLA writes them."""

from __future__ import annotations

from typing import Any

from pyjx import jaxlib_api
from pyjx.jaxlib_api import GSPMDSharding
from pyjx.lazy import directory

__all__ = ["GSPMDSharding", "get_hlo_sharding_from_serialized_proto",
           "get_op_sharding_from_serialized_proto", "get_serialized_proto_from_hlo_sharding"]
__dir__ = directory(__name__, __all__)


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
