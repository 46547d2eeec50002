# Written by `python -m pyjx.cli.stubs` from the table of pyjx.stages.

from pyjx.jaxlib_api import PjitFunction as Wrapped
from pyjx.runtime.stages import ArgInfo as ArgInfo
from pyjx.runtime.stages import Compiled as Compiled
from pyjx.runtime.stages import CompilerOptions as CompilerOptions
from pyjx.runtime.stages import Lowered as Lowered
from pyjx.runtime.stages import Traced as Traced

__all__ = [
    "Wrapped",
    "ArgInfo",
    "Compiled",
    "CompilerOptions",
    "Lowered",
    "Traced",
]
