# Written by `python -m pyjx.cli.stubs` from the table of pyjx.extend.mlir.dialects.

from pyjx.extend.bindings import arith as arith
from pyjx.extend.bindings import builtin as builtin
from pyjx.extend.bindings import chlo as chlo
from pyjx.extend.bindings import func as func
from pyjx.extend.bindings import math as math
from pyjx.extend.bindings import memref as memref
from pyjx.extend.bindings import mpmd as mpmd
from pyjx.extend.bindings import scf as scf
from pyjx.extend.bindings import sdy as sdy
from pyjx.extend.bindings import sparse_tensor as sparse_tensor
from pyjx.extend.bindings import stablehlo as stablehlo
from pyjx.extend.bindings import vector as vector

__all__ = [
    "arith",
    "builtin",
    "chlo",
    "func",
    "math",
    "memref",
    "mpmd",
    "scf",
    "sdy",
    "sparse_tensor",
    "stablehlo",
    "vector",
]
