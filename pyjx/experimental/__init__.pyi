# Written by `python -m pyjx.cli.stubs` from the table of pyjx.experimental.

from types import ModuleType as _ModuleType
from pyjx.experimental import colocated_python as colocated_python
from pyjx.experimental import compilation_cache as compilation_cache
from pyjx.experimental import compute_on as compute_on
from pyjx.experimental import control_deps as control_deps
from pyjx.experimental import fused as fused
from pyjx.experimental import hijax as hijax
from pyjx.experimental import layout as layout
from pyjx.experimental import overlap as overlap
from pyjx.experimental import pjit as pjit
from pyjx.experimental import profiler as profiler
from pyjx.experimental import random as random
from pyjx.experimental import scheduling_groups as scheduling_groups
from pyjx.experimental import shard_alike as shard_alike
from pyjx.experimental import shard_map as shard_map
from pyjx.experimental import source_mapper as source_mapper
from pyjx.experimental import transfer as transfer
from pyjx.experimental import xla_metadata as xla_metadata
from pyjx.experimental import array_serialization as array_serialization
from pyjx.experimental import buffer_callback as buffer_callback
from pyjx.experimental import checkify as checkify
from pyjx.experimental import custom_partitioning as custom_partitioning
from pyjx.experimental import jet as jet
from pyjx.experimental import key_reuse as key_reuse
from pyjx.experimental import mesh_utils as mesh_utils
from pyjx.experimental import multihost_utils as multihost_utils
from pyjx.experimental import ode as ode
from pyjx.experimental import rnn as rnn
from pyjx.experimental import roofline as roofline
from pyjx.experimental import serialize_executable as serialize_executable
from pyjx.experimental import sparse as sparse
from pyjx.experimental import topologies as topologies
from pyjx.experimental.earray import EArray as EArray
from pyjx.experimental.earray import primal_tangent_dtype as primal_tangent_dtype
from pyjx.compat.hi_types import cur_qdd as cur_qdd
from pyjx.lax.callbacks import io_callback as io_callback

jax2tf: _ModuleType
mosaic: _ModuleType
pallas: _ModuleType
thunky: _ModuleType

__all__ = [
    "colocated_python",
    "compilation_cache",
    "compute_on",
    "control_deps",
    "fused",
    "hijax",
    "layout",
    "overlap",
    "pjit",
    "profiler",
    "random",
    "scheduling_groups",
    "shard_alike",
    "shard_map",
    "source_mapper",
    "transfer",
    "xla_metadata",
    "array_serialization",
    "buffer_callback",
    "checkify",
    "custom_partitioning",
    "jax2tf",
    "jet",
    "key_reuse",
    "mesh_utils",
    "mosaic",
    "multihost_utils",
    "ode",
    "pallas",
    "rnn",
    "roofline",
    "serialize_executable",
    "sparse",
    "thunky",
    "topologies",
    "EArray",
    "primal_tangent_dtype",
    "cur_qdd",
    "io_callback",
]
