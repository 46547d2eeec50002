# Written by `python -m pyjx.cli.stubs` from the table of pyjx.experimental.pallas.ops.tpu.flash_attention.

from pyjx.experimental.pallas.ops.attention_kernels import MASK_VALUE as DEFAULT_MASK_VALUE
from pyjx.experimental.pallas.ops.attention_kernels import LANES as MIN_BLOCK_SIZE
from pyjx.experimental.pallas.ops.attention_kernels import LANES as NUM_LANES
from pyjx.experimental.pallas.ops.attention_kernels import SUBLANES as NUM_SUBLANES
from pyjx.experimental.pallas.ops.attention_kernels import SegmentIds as SegmentIds
from pyjx.experimental.pallas.ops.attention_kernels import BY_ROWS as TRANS_B_DIM_NUMBERS
from pyjx.experimental.pallas.ops.attention_kernels import mha_reference as mha_reference
from pyjx.experimental.pallas.ops.attention_kernels import mha_reference_bwd as mha_reference_bwd
from pyjx.experimental.pallas.ops.attention_kernels import mha_reference_no_custom_vjp as mha_reference_no_custom_vjp
from pyjx.experimental.pallas.ops.flash import BlockSizes as BlockSizes
from pyjx.experimental.pallas.ops.flash import below_or_on_diag as below_or_on_diag
from pyjx.experimental.pallas.ops.flash import flash_attention as flash_attention

__all__ = [
    "DEFAULT_MASK_VALUE",
    "MIN_BLOCK_SIZE",
    "NUM_LANES",
    "NUM_SUBLANES",
    "SegmentIds",
    "TRANS_B_DIM_NUMBERS",
    "mha_reference",
    "mha_reference_bwd",
    "mha_reference_no_custom_vjp",
    "BlockSizes",
    "below_or_on_diag",
    "flash_attention",
]
