# Written by `python -m pyjx.cli.stubs` from the table of pyjx.lax.linalg.

from pyjx.lax.linalg.cholesky_factors import cholesky as cholesky
from pyjx.lax.linalg.cholesky_factors import cholesky_p as cholesky_p
from pyjx.lax.linalg.pivoted_factors import lu as lu
from pyjx.lax.linalg.pivoted_factors import lu_p as lu_p
from pyjx.lax.linalg.pivoted_factors import lu_pivots_to_permutation as lu_pivots_to_permutation
from pyjx.lax.linalg.pivoted_factors import lu_pivots_to_permutation_p as lu_pivots_to_permutation_p
from pyjx.lax.linalg.reflectors import householder_product as householder_product
from pyjx.lax.linalg.reflectors import householder_product_p as householder_product_p
from pyjx.lax.linalg.reflectors import ormqr as ormqr
from pyjx.lax.linalg.reflectors import ormqr_p as ormqr_p
from pyjx.lax.linalg.reflectors import qr as qr
from pyjx.lax.linalg.reflectors import qr_p as qr_p
from pyjx.lax.linalg.singular_values import SvdAlgorithm as SvdAlgorithm
from pyjx.lax.linalg.singular_values import svd as svd
from pyjx.lax.linalg.singular_values import svd_p as svd_p
from pyjx.lax.linalg.symmetric_eigen import EighImplementation as EighImplementation
from pyjx.lax.linalg.symmetric_eigen import eigh as eigh
from pyjx.lax.linalg.symmetric_eigen import eigh_p as eigh_p
from pyjx.lax.linalg.triangular_systems import triangular_solve as triangular_solve
from pyjx.lax.linalg.triangular_systems import triangular_solve_p as triangular_solve_p

__all__ = [
    "cholesky",
    "cholesky_p",
    "lu",
    "lu_p",
    "lu_pivots_to_permutation",
    "lu_pivots_to_permutation_p",
    "householder_product",
    "householder_product_p",
    "ormqr",
    "ormqr_p",
    "qr",
    "qr_p",
    "SvdAlgorithm",
    "svd",
    "svd_p",
    "EighImplementation",
    "eigh",
    "eigh_p",
    "triangular_solve",
    "triangular_solve_p",
]
