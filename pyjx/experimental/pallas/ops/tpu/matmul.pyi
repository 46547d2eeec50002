# Written by `python -m pyjx.cli.stubs` from the table of pyjx.experimental.pallas.ops.tpu.matmul.

from pyjx.experimental.pallas.ops.grouped_products import matmul as matmul
from pyjx.experimental.pallas.ops.grouped_products import matmul_kernel as matmul_kernel

__all__ = [
    "matmul",
    "matmul_kernel",
]
