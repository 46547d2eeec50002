# Written by `python -m pyjx.cli.stubs` from the table of pyjx.experimental.control_deps.

from pyjx.experimental.annotated_calls import control_dep as control_dep
from pyjx.experimental.annotated_calls import schedule as schedule

__all__ = [
    "control_dep",
    "schedule",
]
