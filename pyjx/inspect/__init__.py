"""Programs in each of their forms: what the command `emit-hlo` shows, for programs of one's own.

    from pyjx import inspect

    program = inspect.trace(loss, params, batch, platform="tpu:v5e:2x2")
    program.jaxpr                 # ClosedJaxpr
    program.stablehlo(names="user")
    program.hlo_opt               # what XLA made of it
    program.cost.by_line          # arithmetic and bytes of each source line
    program.memory.temp           # bytes
    inspect.diff(program.stablehlo(), other.stablehlo())
"""

from __future__ import annotations

from pyjx.lazy import attach

FAMILIES = {
    "pyjx.inspect.program": (
        "ModuleProgram Program TracedProgram UnsupportedError data read trace"),
    "pyjx.inspect.bad_values": "BadValue Comparison Deviation Step Values",
    "pyjx.inspect.deviations": "compare record",
    "pyjx.inspect.finding": "find",
    "pyjx.inspect.reducing": "NothingFailsError Reduced reduce",
    "pyjx.inspect.rule_checks": "RuleCheck WrongRule check_rules",
    "pyjx.inspect.python_text": "UnwritableError python_file",
    "pyjx.viewer.jaxprs": "Pass passes",
    "pyjx.inspect.platforms": "Platform UnavailableError platform stablehlo_versions",
    "pyjx.inspect.figures": "Bound PassTime roofline",
    "pyjx.runtime.memory": "Memory",
    "pyjx.inspect.comparison": "Difference diff without_places",
    "pyjx.inspect.running": (
        "Agreement CheckError LineTime Measurement OperationTime Run check measure run"),
}

__getattr__, __dir__, __all__ = attach(__name__, FAMILIES)
