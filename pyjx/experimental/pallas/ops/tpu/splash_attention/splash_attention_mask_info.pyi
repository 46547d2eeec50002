# Written by `python -m pyjx.cli.stubs` from the table of pyjx.experimental.pallas.ops.tpu.splash_attention.splash_attention_mask_info.

from pyjx.experimental.pallas.ops.splash import MaskInfo as MaskInfo
from pyjx.experimental.pallas.ops.splash import process_mask as process_mask
from pyjx.experimental.pallas.ops.splash import process_mask_dkv as process_mask_dkv

__all__ = [
    "MaskInfo",
    "process_mask",
    "process_mask_dkv",
]
