# Written by `python -m pyjx.cli.stubs` from the table of pyjx.debug.

from pyjx.debug.debugger import breakpoint as breakpoint
from pyjx.debug.printing import callback as callback
from pyjx.debug.printing import log as log
from pyjx.debug.printing import print as print
from pyjx.debug.shardings import inspect_array_sharding as inspect_array_sharding
from pyjx.debug.shardings import visualize_array_sharding as visualize_array_sharding
from pyjx.debug.shardings import visualize_sharding as visualize_sharding
from pyjx.experimental.checkify.transformation import bounds_check as bounds_check
from pyjx.lax.callbacks import DebugEffect as DebugEffect
from pyjx.lax.callbacks import OrderedDebugEffect as OrderedDebugEffect

__all__ = [
    "breakpoint",
    "callback",
    "log",
    "print",
    "inspect_array_sharding",
    "visualize_array_sharding",
    "visualize_sharding",
    "bounds_check",
    "DebugEffect",
    "OrderedDebugEffect",
]
