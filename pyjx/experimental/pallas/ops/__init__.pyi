# Written by `python -m pyjx.cli.stubs` from the table of pyjx.experimental.pallas.ops.

from types import ModuleType as _ModuleType
from pyjx.experimental.pallas.ops import tpu as tpu

gpu: _ModuleType

__all__ = [
    "tpu",
    "gpu",
]
