# Written by `python -m pyjx.cli.stubs` from the table of pyjx.experimental.pallas.ops.tpu.

from pyjx.experimental.pallas.ops.tpu import flash_attention as flash_attention
from pyjx.experimental.pallas.ops.tpu import example_kernel as example_kernel
from pyjx.experimental.pallas.ops.tpu import matmul as matmul
from pyjx.experimental.pallas.ops.tpu import megablox as megablox
from pyjx.experimental.pallas.ops.tpu import paged_attention as paged_attention
from pyjx.experimental.pallas.ops.tpu import splash_attention as splash_attention

__all__ = [
    "flash_attention",
    "example_kernel",
    "matmul",
    "megablox",
    "paged_attention",
    "splash_attention",
]
