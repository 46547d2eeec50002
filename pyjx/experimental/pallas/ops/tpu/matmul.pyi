# Written by `python -m pyjx.cli.stubs` from the table of pyjx.experimental.pallas.ops.tpu.matmul.

from pyjx.experimental.pallas.ops.simple_kernels import matmul as matmul
from pyjx.experimental.pallas.ops.simple_kernels import matmul_kernel as matmul_kernel

__all__ = [
    "matmul",
    "matmul_kernel",
]
