# Written by `python -m pyjx.cli.stubs` from the table of pyjx.lax.linalg.

from pyjx.lax.linalg.triangular import cholesky as cholesky
from pyjx.lax.linalg.triangular import cholesky_p as cholesky_p
from pyjx.lax.linalg.triangular import cholesky_update as cholesky_update
from pyjx.lax.linalg.triangular import cholesky_update_p as cholesky_update_p
from pyjx.lax.linalg.triangular import symmetric_product as symmetric_product
from pyjx.lax.linalg.triangular import symmetric_product_p as symmetric_product_p
from pyjx.lax.linalg.triangular import triangular_solve as triangular_solve
from pyjx.lax.linalg.triangular import triangular_solve_p as triangular_solve_p
from pyjx.lax.linalg.general_eigen import EigImplementation as EigImplementation
from pyjx.lax.linalg.general_eigen import eig as eig
from pyjx.lax.linalg.general_eigen import eig_p as eig_p
from pyjx.lax.linalg.general_eigen import hessenberg as hessenberg
from pyjx.lax.linalg.general_eigen import hessenberg_p as hessenberg_p
from pyjx.lax.linalg.general_eigen import schur as schur
from pyjx.lax.linalg.general_eigen import schur_p as schur_p
from pyjx.lax.linalg.general_eigen import tridiagonal as tridiagonal
from pyjx.lax.linalg.general_eigen import tridiagonal_p as tridiagonal_p
from pyjx.lax.linalg.spectral import EighImplementation as EighImplementation
from pyjx.lax.linalg.spectral import SvdAlgorithm as SvdAlgorithm
from pyjx.lax.linalg.spectral import eigh as eigh
from pyjx.lax.linalg.spectral import eigh_p as eigh_p
from pyjx.lax.linalg.spectral import qdwh as qdwh
from pyjx.lax.linalg.spectral import svd as svd
from pyjx.lax.linalg.spectral import svd_p as svd_p
from pyjx.lax.linalg.reflectors import householder_product as householder_product
from pyjx.lax.linalg.reflectors import householder_product_p as householder_product_p
from pyjx.lax.linalg.reflectors import ormqr as ormqr
from pyjx.lax.linalg.reflectors import ormqr_p as ormqr_p
from pyjx.lax.linalg.reflectors import qr as qr
from pyjx.lax.linalg.reflectors import qr_p as qr_p
from pyjx.lax.linalg.general_systems import lu as lu
from pyjx.lax.linalg.general_systems import lu_p as lu_p
from pyjx.lax.linalg.general_systems import lu_pivots_to_permutation as lu_pivots_to_permutation
from pyjx.lax.linalg.general_systems import lu_pivots_to_permutation_p as lu_pivots_to_permutation_p
from pyjx.lax.linalg.general_systems import tridiagonal_solve as tridiagonal_solve
from pyjx.lax.linalg.general_systems import tridiagonal_solve_p as tridiagonal_solve_p

__all__ = [
    "cholesky",
    "cholesky_p",
    "cholesky_update",
    "cholesky_update_p",
    "symmetric_product",
    "symmetric_product_p",
    "triangular_solve",
    "triangular_solve_p",
    "EigImplementation",
    "eig",
    "eig_p",
    "hessenberg",
    "hessenberg_p",
    "schur",
    "schur_p",
    "tridiagonal",
    "tridiagonal_p",
    "EighImplementation",
    "SvdAlgorithm",
    "eigh",
    "eigh_p",
    "qdwh",
    "svd",
    "svd_p",
    "householder_product",
    "householder_product_p",
    "ormqr",
    "ormqr_p",
    "qr",
    "qr_p",
    "lu",
    "lu_p",
    "lu_pivots_to_permutation",
    "lu_pivots_to_permutation_p",
    "tridiagonal_solve",
    "tridiagonal_solve_p",
]
