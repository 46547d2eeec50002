"""Decompositions of matrices, and systems of linear equations.

Functions take matrices along the last two axes, for each index of the axes before.
"""

from __future__ import annotations

from pyjx.lazy import attach

# Public names by family.
FAMILIES: dict[str, str] = {
    "pyjx.lax.linalg.triangular": (
        "cholesky cholesky_p cholesky_update cholesky_update_p symmetric_product "
        "symmetric_product_p triangular_solve triangular_solve_p"),
    "pyjx.lax.linalg.general_eigen": (
        "EigImplementation eig eig_p hessenberg hessenberg_p schur schur_p tridiagonal "
        "tridiagonal_p"),
    "pyjx.lax.linalg.spectral": "EighImplementation SvdAlgorithm eigh eigh_p qdwh svd svd_p",
    "pyjx.lax.linalg.reflectors": (
        "householder_product householder_product_p ormqr ormqr_p qr qr_p"),
    "pyjx.lax.linalg.general_systems": (
        "lu lu_p lu_pivots_to_permutation lu_pivots_to_permutation_p tridiagonal_solve "
        "tridiagonal_solve_p"),
}

__getattr__, __dir__, __all__ = attach(__name__, FAMILIES)
