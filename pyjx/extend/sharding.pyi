# Written by `python -m pyjx.cli.stubs` from the table of pyjx.extend.sharding.

from pyjx.extend.bindings import get_hlo_sharding_from_serialized_proto as get_hlo_sharding_from_serialized_proto
from pyjx.extend.bindings import get_op_sharding_from_serialized_proto as get_op_sharding_from_serialized_proto
from pyjx.extend.bindings import get_serialized_proto_from_hlo_sharding as get_serialized_proto_from_hlo_sharding
from pyjx.jaxlib_api import GSPMDSharding as GSPMDSharding

__all__ = [
    "get_hlo_sharding_from_serialized_proto",
    "get_op_sharding_from_serialized_proto",
    "get_serialized_proto_from_hlo_sharding",
    "GSPMDSharding",
]
