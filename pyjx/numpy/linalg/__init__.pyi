# Written by `python -m pyjx.cli.stubs` from the table of pyjx.numpy.linalg.

from pyjx.numpy.contractions import tensordot as tensordot
from pyjx.numpy.linalg.decompositions import cholesky as cholesky
from pyjx.numpy.linalg.decompositions import eig as eig
from pyjx.numpy.linalg.decompositions import eigh as eigh
from pyjx.numpy.linalg.decompositions import eigvals as eigvals
from pyjx.numpy.linalg.decompositions import eigvalsh as eigvalsh
from pyjx.numpy.linalg.decompositions import qr as qr
from pyjx.numpy.linalg.decompositions import svd as svd
from pyjx.numpy.linalg.decompositions import svdvals as svdvals
from pyjx.numpy.linalg.systems import inv as inv
from pyjx.numpy.linalg.systems import lstsq as lstsq
from pyjx.numpy.linalg.systems import pinv as pinv
from pyjx.numpy.linalg.systems import solve as solve
from pyjx.numpy.linalg.systems import tensorinv as tensorinv
from pyjx.numpy.linalg.systems import tensorsolve as tensorsolve
from pyjx.numpy.linalg.invariants import cond as cond
from pyjx.numpy.linalg.invariants import det as det
from pyjx.numpy.linalg.invariants import matrix_norm as matrix_norm
from pyjx.numpy.linalg.invariants import matrix_rank as matrix_rank
from pyjx.numpy.linalg.invariants import norm as norm
from pyjx.numpy.linalg.invariants import slogdet as slogdet
from pyjx.numpy.linalg.invariants import vector_norm as vector_norm
from pyjx.numpy.linalg.products import cross as cross
from pyjx.numpy.linalg.products import diagonal as diagonal
from pyjx.numpy.linalg.products import matmul as matmul
from pyjx.numpy.linalg.products import matrix_power as matrix_power
from pyjx.numpy.linalg.products import matrix_transpose as matrix_transpose
from pyjx.numpy.linalg.products import multi_dot as multi_dot
from pyjx.numpy.linalg.products import outer as outer
from pyjx.numpy.linalg.products import trace as trace
from pyjx.numpy.linalg.products import vecdot as vecdot

__all__ = [
    "tensordot",
    "cholesky",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "qr",
    "svd",
    "svdvals",
    "inv",
    "lstsq",
    "pinv",
    "solve",
    "tensorinv",
    "tensorsolve",
    "cond",
    "det",
    "matrix_norm",
    "matrix_rank",
    "norm",
    "slogdet",
    "vector_norm",
    "cross",
    "diagonal",
    "matmul",
    "matrix_power",
    "matrix_transpose",
    "multi_dot",
    "outer",
    "trace",
    "vecdot",
]
