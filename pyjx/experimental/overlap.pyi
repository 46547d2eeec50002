# Written by `python -m pyjx.cli.stubs` from the table of pyjx.experimental.overlap.

from pyjx.experimental.operation_order import program_order as program_order

__all__ = [
    "program_order",
]
