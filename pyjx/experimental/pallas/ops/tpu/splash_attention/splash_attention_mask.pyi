# Written by `python -m pyjx.cli.stubs` from the table of pyjx.experimental.pallas.ops.tpu.splash_attention.splash_attention_mask.

from pyjx.experimental.pallas.ops.splash import CausalMask as CausalMask
from pyjx.experimental.pallas.ops.splash import ChunkedCausalMask as ChunkedCausalMask
from pyjx.experimental.pallas.ops.splash import FullMask as FullMask
from pyjx.experimental.pallas.ops.splash import LocalMask as LocalMask
from pyjx.experimental.pallas.ops.splash import LogicalAnd as LogicalAnd
from pyjx.experimental.pallas.ops.splash import LogicalOr as LogicalOr
from pyjx.experimental.pallas.ops.splash import Mask as Mask
from pyjx.experimental.pallas.ops.splash import MultiHeadMask as MultiHeadMask
from pyjx.experimental.pallas.ops.splash import NumpyMask as NumpyMask
from pyjx.experimental.pallas.ops.splash import make_causal_mask as make_causal_mask
from pyjx.experimental.pallas.ops.splash import make_chunk_attention_mask as make_chunk_attention_mask
from pyjx.experimental.pallas.ops.splash import make_local_attention_mask as make_local_attention_mask
from pyjx.experimental.pallas.ops.splash import make_random_mask as make_random_mask

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
