# Written by `python -m pyjx.cli.stubs` from the table of pyjx.inspect.

from pyjx.inspect.program import ModuleProgram as ModuleProgram
from pyjx.inspect.program import Program as Program
from pyjx.inspect.program import TracedProgram as TracedProgram
from pyjx.inspect.program import UnsupportedError as UnsupportedError
from pyjx.inspect.program import read as read
from pyjx.inspect.program import trace as trace
from pyjx.inspect.platforms import Platform as Platform
from pyjx.inspect.platforms import UnavailableError as UnavailableError
from pyjx.inspect.platforms import platform as platform
from pyjx.inspect.compiler_times import PassTime as PassTime
from pyjx.inspect.comparison import Difference as Difference
from pyjx.inspect.comparison import diff as diff
from pyjx.inspect.comparison import without_places as without_places
from pyjx.inspect.documents import data as data
from pyjx.inspect.figures import Bound as Bound
from pyjx.inspect.figures import Memory as Memory
from pyjx.inspect.figures import roofline as roofline
from pyjx.inspect.measuring import LineTime as LineTime
from pyjx.inspect.measuring import Measurement as Measurement
from pyjx.inspect.measuring import OperationTime as OperationTime
from pyjx.inspect.measuring import measure as measure
from pyjx.inspect.rewrites import Pass as Pass
from pyjx.inspect.rewrites import passes as passes
from pyjx.inspect.versions import stablehlo_versions as stablehlo_versions
from pyjx.inspect.running import Agreement as Agreement
from pyjx.inspect.running import CheckError as CheckError
from pyjx.inspect.running import Run as Run
from pyjx.inspect.running import check as check
from pyjx.inspect.running import run as run

__all__ = [
    "ModuleProgram",
    "Program",
    "TracedProgram",
    "UnsupportedError",
    "read",
    "trace",
    "Platform",
    "UnavailableError",
    "platform",
    "PassTime",
    "Difference",
    "diff",
    "without_places",
    "data",
    "Bound",
    "Memory",
    "roofline",
    "LineTime",
    "Measurement",
    "OperationTime",
    "measure",
    "Pass",
    "passes",
    "stablehlo_versions",
    "Agreement",
    "CheckError",
    "Run",
    "check",
    "run",
]
