# Written by `python -m pyjx.cli.stubs` from the table of pyjx.experimental.pallas.ops.tpu.splash_attention.

from pyjx.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel as splash_attention_kernel
from pyjx.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as splash_attention_mask
from pyjx.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask_info as splash_attention_mask_info
from pyjx.experimental.pallas.ops.attention_kernels import SegmentIds as SegmentIds
from pyjx.experimental.pallas.ops.splash import BlockSizes as BlockSizes
from pyjx.experimental.pallas.ops.splash import CausalMask as CausalMask
from pyjx.experimental.pallas.ops.splash import FullMask as FullMask
from pyjx.experimental.pallas.ops.splash import LocalMask as LocalMask
from pyjx.experimental.pallas.ops.splash import Mask as Mask
from pyjx.experimental.pallas.ops.splash import MultiHeadMask as MultiHeadMask
from pyjx.experimental.pallas.ops.splash import NumpyMask as NumpyMask
from pyjx.experimental.pallas.ops.splash import QKVLayout as QKVLayout
from pyjx.experimental.pallas.ops.splash import make_causal_mask as make_causal_mask
from pyjx.experimental.pallas.ops.splash import make_local_attention_mask as make_local_attention_mask
from pyjx.experimental.pallas.ops.splash import make_masked_mha_reference as make_masked_mha_reference
from pyjx.experimental.pallas.ops.splash import make_masked_mqa_reference as make_masked_mqa_reference
from pyjx.experimental.pallas.ops.splash import make_random_mask as make_random_mask
from pyjx.experimental.pallas.ops.splash import make_splash_mha as make_splash_mha
from pyjx.experimental.pallas.ops.splash import make_splash_mha_single_device as make_splash_mha_single_device
from pyjx.experimental.pallas.ops.splash import make_splash_mqa as make_splash_mqa
from pyjx.experimental.pallas.ops.splash import make_splash_mqa_single_device as make_splash_mqa_single_device

__all__ = [
    "splash_attention_kernel",
    "splash_attention_mask",
    "splash_attention_mask_info",
    "SegmentIds",
    "BlockSizes",
    "CausalMask",
    "FullMask",
    "LocalMask",
    "Mask",
    "MultiHeadMask",
    "NumpyMask",
    "QKVLayout",
    "make_causal_mask",
    "make_local_attention_mask",
    "make_masked_mha_reference",
    "make_masked_mqa_reference",
    "make_random_mask",
    "make_splash_mha",
    "make_splash_mha_single_device",
    "make_splash_mqa",
    "make_splash_mqa_single_device",
]
