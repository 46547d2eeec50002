# Written by `python -m pyjx.cli.stubs` from the table of pyjx.experimental.pallas.ops.tpu.example_kernel.

from pyjx.experimental.pallas.ops.grouped_products import double as double
from pyjx.experimental.pallas.ops.grouped_products import double_kernel as double_kernel

__all__ = [
    "double",
    "double_kernel",
]
