# Written by `python -m pyjx.cli.stubs` from the table of pyjx.scipy.linalg.

from pyjx.scipy.linalg.factors import cho_factor as cho_factor
from pyjx.scipy.linalg.factors import cholesky as cholesky
from pyjx.scipy.linalg.factors import hessenberg as hessenberg
from pyjx.scipy.linalg.factors import lu as lu
from pyjx.scipy.linalg.factors import lu_factor as lu_factor
from pyjx.scipy.linalg.factors import polar as polar
from pyjx.scipy.linalg.factors import qr as qr
from pyjx.scipy.linalg.factors import qr_multiply as qr_multiply
from pyjx.scipy.linalg.factors import rsf2csf as rsf2csf
from pyjx.scipy.linalg.factors import schur as schur
from pyjx.scipy.linalg.factors import svd as svd
from pyjx.scipy.linalg.systems import cho_solve as cho_solve
from pyjx.scipy.linalg.systems import det as det
from pyjx.scipy.linalg.systems import inv as inv
from pyjx.scipy.linalg.systems import lu_solve as lu_solve
from pyjx.scipy.linalg.systems import solve as solve
from pyjx.scipy.linalg.systems import solve_sylvester as solve_sylvester
from pyjx.scipy.linalg.systems import solve_triangular as solve_triangular
from pyjx.scipy.linalg.eigenvalues import eigh as eigh
from pyjx.scipy.linalg.eigenvalues import eigh_tridiagonal as eigh_tridiagonal
from pyjx.scipy.linalg.functions import expm as expm
from pyjx.scipy.linalg.functions import expm_frechet as expm_frechet
from pyjx.scipy.linalg.functions import funm as funm
from pyjx.scipy.linalg.functions import sqrtm as sqrtm
from pyjx.scipy.linalg.patterns import block_diag as block_diag
from pyjx.scipy.linalg.patterns import circulant as circulant
from pyjx.scipy.linalg.patterns import companion as companion
from pyjx.scipy.linalg.patterns import convolution_matrix as convolution_matrix
from pyjx.scipy.linalg.patterns import dft as dft
from pyjx.scipy.linalg.patterns import fiedler as fiedler
from pyjx.scipy.linalg.patterns import fiedler_companion as fiedler_companion
from pyjx.scipy.linalg.patterns import hadamard as hadamard
from pyjx.scipy.linalg.patterns import hankel as hankel
from pyjx.scipy.linalg.patterns import helmert as helmert
from pyjx.scipy.linalg.patterns import hilbert as hilbert
from pyjx.scipy.linalg.patterns import invhilbert as invhilbert
from pyjx.scipy.linalg.patterns import invpascal as invpascal
from pyjx.scipy.linalg.patterns import leslie as leslie
from pyjx.scipy.linalg.patterns import pascal as pascal
from pyjx.scipy.linalg.patterns import toeplitz as toeplitz

__all__ = [
    "cho_factor",
    "cholesky",
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
    "eigh",
    "eigh_tridiagonal",
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
