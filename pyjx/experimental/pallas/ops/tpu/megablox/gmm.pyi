# Written by `python -m pyjx.cli.stubs` from the table of pyjx.experimental.pallas.ops.tpu.megablox.gmm.

from pyjx.experimental.pallas.ops.grouped_products import gmm as gmm
from pyjx.experimental.pallas.ops.grouped_products import make_group_metadata as make_group_metadata
from pyjx.experimental.pallas.ops.grouped_products import tgmm as tgmm

__all__ = [
    "gmm",
    "make_group_metadata",
    "tgmm",
]
