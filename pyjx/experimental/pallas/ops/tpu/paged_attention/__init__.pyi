# Written by `python -m pyjx.cli.stubs` from the table of pyjx.experimental.pallas.ops.tpu.paged_attention.

from pyjx.experimental.pallas.ops.tpu.paged_attention import quantization_utils as quantization_utils
from pyjx.experimental.pallas.ops.tpu.paged_attention import util as util
from pyjx.experimental.pallas.ops.paged import paged_attention as paged_attention

__all__ = [
    "quantization_utils",
    "util",
    "paged_attention",
]
