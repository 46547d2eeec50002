# Written by `python -m pyjx.cli.stubs` from the table of pyjx.extend.

from types import ModuleType as _ModuleType
from pyjx.extend import backend as backend
from pyjx.extend import core as core
from pyjx.extend import ifrt_programs as ifrt_programs
from pyjx.extend import lowering as lowering
from pyjx.extend import mlir as mlir
from pyjx.extend import sharding as sharding
from pyjx.extend import linear_util as linear_util
from pyjx.extend import random as random
from pyjx.extend import source_info_util as source_info_util
from pyjx.extend import xla as xla

pallas: _ModuleType

__all__ = [
    "backend",
    "core",
    "ifrt_programs",
    "lowering",
    "mlir",
    "sharding",
    "linear_util",
    "pallas",
    "random",
    "source_info_util",
    "xla",
]
