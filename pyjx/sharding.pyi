# Written by `python -m pyjx.cli.stubs` from the table of pyjx.sharding.

from pyjx.core.meshes import AbstractDevice as AbstractDevice
from pyjx.core.meshes import AbstractMesh as AbstractMesh
from pyjx.core.meshes import AxisType as AxisType
from pyjx.core.meshes import Mesh as Mesh
from pyjx.core.forbidden import no_collectives as no_collectives
from pyjx.core.specs import ManualAxisType as ManualAxisType
from pyjx.core.specs import PartitionSpec as PartitionSpec
from pyjx.core.specs import UnreducedKind as UnreducedKind
from pyjx.runtime.meshes import get_abstract_mesh as get_abstract_mesh
from pyjx.runtime.meshes import get_mesh as get_mesh
from pyjx.runtime.meshes import set_mesh as set_mesh
from pyjx.runtime.meshes import use_abstract_mesh as use_abstract_mesh
from pyjx.runtime.resharding import auto_axes as auto_axes
from pyjx.runtime.resharding import explicit_axes as explicit_axes
from pyjx.runtime.resharding import reshard as reshard
from pyjx.runtime.sharding import make_single_device_sharding as make_single_device_sharding
from pyjx.runtime.sharding_types import NamedSharding as NamedSharding
from pyjx.runtime.sharding_types import Sharding as Sharding
from pyjx.runtime.sharding_types import SingleDeviceSharding as SingleDeviceSharding

__all__ = [
    "AbstractDevice",
    "AbstractMesh",
    "AxisType",
    "Mesh",
    "no_collectives",
    "ManualAxisType",
    "PartitionSpec",
    "UnreducedKind",
    "get_abstract_mesh",
    "get_mesh",
    "set_mesh",
    "use_abstract_mesh",
    "auto_axes",
    "explicit_axes",
    "reshard",
    "make_single_device_sharding",
    "NamedSharding",
    "Sharding",
    "SingleDeviceSharding",
]
