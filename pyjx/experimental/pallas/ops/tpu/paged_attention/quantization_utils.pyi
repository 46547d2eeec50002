# Written by `python -m pyjx.cli.stubs` from the table of pyjx.experimental.pallas.ops.tpu.paged_attention.quantization_utils.

from pyjx.experimental.pallas.ops.paged import MAX_INT8 as MAX_INT8
from pyjx.experimental.pallas.ops.paged import QuantizedTensor as QuantizedTensor
from pyjx.experimental.pallas.ops.paged import from_int8 as from_int8
from pyjx.experimental.pallas.ops.paged import get_quantization_scales as get_quantization_scales
from pyjx.experimental.pallas.ops.paged import quantize_to_int8 as quantize_to_int8
from pyjx.experimental.pallas.ops.paged import to_int8 as to_int8
from pyjx.experimental.pallas.ops.paged import unquantize_from_int8 as unquantize_from_int8

__all__ = [
    "MAX_INT8",
    "QuantizedTensor",
    "from_int8",
    "get_quantization_scales",
    "quantize_to_int8",
    "to_int8",
    "unquantize_from_int8",
]
