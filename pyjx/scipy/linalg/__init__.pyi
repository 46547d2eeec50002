# Written by `python -m pyjx.cli.stubs` from the table of pyjx.scipy.linalg.

from pyjx.scipy.linalg.factors import cho_factor as cho_factor
from pyjx.scipy.linalg.factors import cholesky as cholesky
from pyjx.scipy.linalg.factors import eigh as eigh
from pyjx.scipy.linalg.factors import eigh_tridiagonal as eigh_tridiagonal
from pyjx.scipy.linalg.factors import hessenberg as hessenberg
from pyjx.scipy.linalg.factors import lu as lu
from pyjx.scipy.linalg.factors import lu_factor as lu_factor
from pyjx.scipy.linalg.factors import polar as polar
from pyjx.scipy.linalg.factors import qr as qr
from pyjx.scipy.linalg.factors import qr_multiply as qr_multiply
from pyjx.scipy.linalg.factors import rsf2csf as rsf2csf
from pyjx.scipy.linalg.factors import schur as schur
from pyjx.scipy.linalg.factors import svd as svd
from pyjx.scipy.linalg.solvers import cho_solve as cho_solve
from pyjx.scipy.linalg.solvers import det as det
from pyjx.scipy.linalg.solvers import inv as inv
from pyjx.scipy.linalg.solvers import lu_solve as lu_solve
from pyjx.scipy.linalg.solvers import solve as solve
from pyjx.scipy.linalg.solvers import solve_sylvester as solve_sylvester
from pyjx.scipy.linalg.solvers import solve_triangular as solve_triangular
from pyjx.scipy.linalg.matrix_functions import expm as expm
from pyjx.scipy.linalg.matrix_functions import expm_frechet as expm_frechet
from pyjx.scipy.linalg.matrix_functions import funm as funm
from pyjx.scipy.linalg.matrix_functions import sqrtm as sqrtm
from pyjx.scipy.linalg.special_matrices import block_diag as block_diag
from pyjx.scipy.linalg.special_matrices import circulant as circulant
from pyjx.scipy.linalg.special_matrices import companion as companion
from pyjx.scipy.linalg.special_matrices import convolution_matrix as convolution_matrix
from pyjx.scipy.linalg.special_matrices import dft as dft
from pyjx.scipy.linalg.special_matrices import fiedler as fiedler
from pyjx.scipy.linalg.special_matrices import fiedler_companion as fiedler_companion
from pyjx.scipy.linalg.special_matrices import hadamard as hadamard
from pyjx.scipy.linalg.special_matrices import hankel as hankel
from pyjx.scipy.linalg.special_matrices import helmert as helmert
from pyjx.scipy.linalg.special_matrices import hilbert as hilbert
from pyjx.scipy.linalg.special_matrices import invhilbert as invhilbert
from pyjx.scipy.linalg.special_matrices import invpascal as invpascal
from pyjx.scipy.linalg.special_matrices import leslie as leslie
from pyjx.scipy.linalg.special_matrices import pascal as pascal
from pyjx.scipy.linalg.special_matrices import toeplitz as toeplitz

__all__ = [
    "cho_factor",
    "cholesky",
    "eigh",
    "eigh_tridiagonal",
    "hessenberg",
    "lu",
    "lu_factor",
    "polar",
    "qr",
    "qr_multiply",
    "rsf2csf",
    "schur",
    "svd",
    "cho_solve",
    "det",
    "inv",
    "lu_solve",
    "solve",
    "solve_sylvester",
    "solve_triangular",
    "expm",
    "expm_frechet",
    "funm",
    "sqrtm",
    "block_diag",
    "circulant",
    "companion",
    "convolution_matrix",
    "dft",
    "fiedler",
    "fiedler_companion",
    "hadamard",
    "hankel",
    "helmert",
    "hilbert",
    "invhilbert",
    "invpascal",
    "leslie",
    "pascal",
    "toeplitz",
]
