# Written by `python -m pyjx.cli.stubs` from the table of pyjx.experimental.profiler.

from pyjx.profiler import get_profiled_instructions_proto as get_profiled_instructions_proto

__all__ = [
    "get_profiled_instructions_proto",
]
