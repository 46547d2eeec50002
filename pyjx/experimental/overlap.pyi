# Written by `python -m pyjx.cli.stubs` from the table of pyjx.experimental.overlap.

from pyjx.experimental.annotated_calls import program_order as program_order

__all__ = [
    "program_order",
]
