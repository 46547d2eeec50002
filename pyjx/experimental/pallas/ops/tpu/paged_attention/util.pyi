# Written by `python -m pyjx.cli.stubs` from the table of pyjx.experimental.pallas.ops.tpu.paged_attention.util.

from pyjx.experimental.pallas.ops.attention_kernels import MASK_VALUE as MASK_VALUE
from pyjx.experimental.pallas.ops.paged import grouped_query_attention_reference as grouped_query_attention_reference

__all__ = [
    "MASK_VALUE",
    "grouped_query_attention_reference",
]
