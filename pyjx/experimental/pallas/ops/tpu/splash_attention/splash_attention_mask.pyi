# Written by `python -m pyjx.cli.stubs` from the table of pyjx.experimental.pallas.ops.tpu.splash_attention.splash_attention_mask.

from pyjx.experimental.pallas.ops.attention_masks import CausalMask as CausalMask
from pyjx.experimental.pallas.ops.attention_masks import ChunkedCausalMask as ChunkedCausalMask
from pyjx.experimental.pallas.ops.attention_masks import FullMask as FullMask
from pyjx.experimental.pallas.ops.attention_masks import LocalMask as LocalMask
from pyjx.experimental.pallas.ops.attention_masks import LogicalAnd as LogicalAnd
from pyjx.experimental.pallas.ops.attention_masks import LogicalOr as LogicalOr
from pyjx.experimental.pallas.ops.attention_masks import Mask as Mask
from pyjx.experimental.pallas.ops.attention_masks import MultiHeadMask as MultiHeadMask
from pyjx.experimental.pallas.ops.attention_masks import NumpyMask as NumpyMask
from pyjx.experimental.pallas.ops.attention_masks import make_causal_mask as make_causal_mask
from pyjx.experimental.pallas.ops.attention_masks import make_chunk_attention_mask as make_chunk_attention_mask
from pyjx.experimental.pallas.ops.attention_masks import make_local_attention_mask as make_local_attention_mask
from pyjx.experimental.pallas.ops.attention_masks import make_random_mask as make_random_mask

__all__ = [
    "CausalMask",
    "ChunkedCausalMask",
    "FullMask",
    "LocalMask",
    "LogicalAnd",
    "LogicalOr",
    "Mask",
    "MultiHeadMask",
    "NumpyMask",
    "make_causal_mask",
    "make_chunk_attention_mask",
    "make_local_attention_mask",
    "make_random_mask",
]
