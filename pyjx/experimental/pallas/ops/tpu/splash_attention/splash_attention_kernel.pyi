# Written by `python -m pyjx.cli.stubs` from the table of pyjx.experimental.pallas.ops.tpu.splash_attention.splash_attention_kernel.

from pyjx.experimental.pallas.ops.attention_kernels import MASK_VALUE as DEFAULT_MASK_VALUE
from pyjx.experimental.pallas.ops.attention_kernels import PLAIN as NN_DIM_NUMBERS
from pyjx.experimental.pallas.ops.attention_kernels import BY_ROWS as NT_DIM_NUMBERS
from pyjx.experimental.pallas.ops.attention_kernels import LANES as NUM_LANES
from pyjx.experimental.pallas.ops.attention_kernels import SUBLANES as NUM_SUBLANES
from pyjx.experimental.pallas.ops.attention_kernels import SegmentIds as SegmentIds
from pyjx.experimental.pallas.ops.splash import BlockSizes as BlockSizes
from pyjx.experimental.pallas.ops.splash import QKVLayout as QKVLayout
from pyjx.experimental.pallas.ops.splash import SplashAttentionKernel as SplashAttentionKernel
from pyjx.experimental.pallas.ops.splash import attention_reference as attention_reference
from pyjx.experimental.pallas.ops.splash import attention_reference as attention_reference_custom
from pyjx.experimental.pallas.ops.splash import make_attention_reference as make_attention_reference
from pyjx.experimental.pallas.ops.splash import make_masked_mha_reference as make_masked_mha_reference
from pyjx.experimental.pallas.ops.splash import make_masked_mqa_reference as make_masked_mqa_reference
from pyjx.experimental.pallas.ops.splash import make_splash_mha as make_splash_mha
from pyjx.experimental.pallas.ops.splash import make_splash_mha_single_device as make_splash_mha_single_device
from pyjx.experimental.pallas.ops.splash import make_splash_mqa as make_splash_mqa
from pyjx.experimental.pallas.ops.splash import make_splash_mqa_single_device as make_splash_mqa_single_device

__all__ = [
    "DEFAULT_MASK_VALUE",
    "NN_DIM_NUMBERS",
    "NT_DIM_NUMBERS",
    "NUM_LANES",
    "NUM_SUBLANES",
    "SegmentIds",
    "BlockSizes",
    "QKVLayout",
    "SplashAttentionKernel",
    "attention_reference",
    "attention_reference_custom",
    "make_attention_reference",
    "make_masked_mha_reference",
    "make_masked_mqa_reference",
    "make_splash_mha",
    "make_splash_mha_single_device",
    "make_splash_mqa",
    "make_splash_mqa_single_device",
]
