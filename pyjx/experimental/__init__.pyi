# Written by `python -m pyjx.cli.stubs` from the table of pyjx.experimental.

from pyjx.experimental import buffer_callback as buffer_callback
from pyjx.experimental import checkify as checkify
from pyjx.experimental import colocated_python as colocated_python
from pyjx.experimental import custom_partitioning as custom_partitioning
from pyjx.experimental import hijax as hijax
from pyjx.experimental import jet as jet
from pyjx.experimental import layout as layout
from pyjx.experimental import mesh_utils as mesh_utils
from pyjx.experimental import multihost_utils as multihost_utils
from pyjx.experimental import ode as ode
from pyjx.experimental import pjit as pjit
from pyjx.experimental import random as random
from pyjx.experimental import rnn as rnn
from pyjx.experimental import serialize_executable as serialize_executable
from pyjx.experimental import shard_alike as shard_alike
from pyjx.experimental import shard_map as shard_map
from pyjx.experimental import sparse as sparse
from pyjx.experimental import topologies as topologies
from pyjx.lax.callbacks import io_callback as io_callback

__all__ = [
    "buffer_callback",
    "checkify",
    "colocated_python",
    "custom_partitioning",
    "hijax",
    "jet",
    "layout",
    "mesh_utils",
    "multihost_utils",
    "ode",
    "pjit",
    "random",
    "rnn",
    "serialize_executable",
    "shard_alike",
    "shard_map",
    "sparse",
    "topologies",
    "io_callback",
]
