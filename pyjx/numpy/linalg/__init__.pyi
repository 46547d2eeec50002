# Written by `python -m pyjx.cli.stubs` from the table of pyjx.numpy.linalg.

from pyjx.numpy.contractions import tensordot as tensordot
from pyjx.numpy.linalg.decompositions import cholesky as cholesky
from pyjx.numpy.linalg.decompositions import eigh as eigh
from pyjx.numpy.linalg.decompositions import eigvalsh as eigvalsh
from pyjx.numpy.linalg.decompositions import qr as qr
from pyjx.numpy.linalg.decompositions import svd as svd
from pyjx.numpy.linalg.decompositions import svdvals as svdvals
from pyjx.numpy.linalg.systems import inv as inv
from pyjx.numpy.linalg.systems import solve as solve
from pyjx.numpy.linalg.invariants import det as det
from pyjx.numpy.linalg.invariants import slogdet as slogdet

__all__ = [
    "tensordot",
    "cholesky",
    "eigh",
    "eigvalsh",
    "qr",
    "svd",
    "svdvals",
    "inv",
    "solve",
    "det",
    "slogdet",
]
