# Written by `python -m pyjx.cli.stubs` from the table of pyjx.experimental.pallas.ops.tpu.megablox.ops.

from pyjx.experimental.pallas.ops.grouped_products import gmm as gmm

__all__ = [
    "gmm",
]
