# Written by `python -m pyjx.cli.stubs` from the table of pyjx.inspect.

from pyjx.inspect.program import ModuleProgram as ModuleProgram
from pyjx.inspect.program import Program as Program
from pyjx.inspect.program import TracedProgram as TracedProgram
from pyjx.inspect.program import UnsupportedError as UnsupportedError
from pyjx.inspect.program import data as data
from pyjx.inspect.program import read as read
from pyjx.inspect.program import trace as trace
from pyjx.inspect.bad_values import BadValue as BadValue
from pyjx.inspect.bad_values import Comparison as Comparison
from pyjx.inspect.bad_values import Deviation as Deviation
from pyjx.inspect.bad_values import Step as Step
from pyjx.inspect.bad_values import Values as Values
from pyjx.inspect.deviations import compare as compare
from pyjx.inspect.deviations import record as record
from pyjx.inspect.finding import find as find
from pyjx.inspect.reducing import NothingFailsError as NothingFailsError
from pyjx.inspect.reducing import Reduced as Reduced
from pyjx.inspect.reducing import reduce as reduce
from pyjx.inspect.rule_checks import RuleCheck as RuleCheck
from pyjx.inspect.rule_checks import WrongRule as WrongRule
from pyjx.inspect.rule_checks import check_rules as check_rules
from pyjx.inspect.python_text import UnwritableError as UnwritableError
from pyjx.inspect.python_text import python_file as python_file
from pyjx.viewer.jaxprs import Pass as Pass
from pyjx.viewer.jaxprs import passes as passes
from pyjx.inspect.platforms import Platform as Platform
from pyjx.inspect.platforms import UnavailableError as UnavailableError
from pyjx.inspect.platforms import platform as platform
from pyjx.inspect.platforms import stablehlo_versions as stablehlo_versions
from pyjx.inspect.figures import Bound as Bound
from pyjx.inspect.figures import PassTime as PassTime
from pyjx.inspect.figures import roofline as roofline
from pyjx.runtime.memory import Memory as Memory
from pyjx.inspect.comparison import Difference as Difference
from pyjx.inspect.comparison import diff as diff
from pyjx.inspect.comparison import without_places as without_places
from pyjx.inspect.running import Agreement as Agreement
from pyjx.inspect.running import CheckError as CheckError
from pyjx.inspect.running import LineTime as LineTime
from pyjx.inspect.running import Measurement as Measurement
from pyjx.inspect.running import OperationTime as OperationTime
from pyjx.inspect.running import Run as Run
from pyjx.inspect.running import check as check
from pyjx.inspect.running import measure as measure
from pyjx.inspect.running import run as run

__all__ = [
    "ModuleProgram",
    "Program",
    "TracedProgram",
    "UnsupportedError",
    "data",
    "read",
    "trace",
    "BadValue",
    "Comparison",
    "Deviation",
    "Step",
    "Values",
    "compare",
    "record",
    "find",
    "NothingFailsError",
    "Reduced",
    "reduce",
    "RuleCheck",
    "WrongRule",
    "check_rules",
    "UnwritableError",
    "python_file",
    "Pass",
    "passes",
    "Platform",
    "UnavailableError",
    "platform",
    "stablehlo_versions",
    "Bound",
    "PassTime",
    "roofline",
    "Memory",
    "Difference",
    "diff",
    "without_places",
    "Agreement",
    "CheckError",
    "LineTime",
    "Measurement",
    "OperationTime",
    "Run",
    "check",
    "measure",
    "run",
]
