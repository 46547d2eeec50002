# Written by `python -m pyjx.cli.stubs` from the table of pyjx.interpreters.

from pyjx.interpreters import ad as ad
from pyjx.interpreters import batching as batching
from pyjx.interpreters import mlir as mlir
from pyjx.interpreters import partial_eval as partial_eval
from pyjx.interpreters import pxla as pxla
from pyjx.interpreters import xla as xla

__all__ = [
    "ad",
    "batching",
    "mlir",
    "partial_eval",
    "pxla",
    "xla",
]
