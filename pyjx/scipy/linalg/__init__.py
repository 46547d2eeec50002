"""Linear algebra with SciPy's interface. Names load their module when they are first used.

Options that only tell SciPy's functions how to use memory, or whether to look for infinities and
NaNs, are there and mean nothing. Functions take matrices along the last two axes.
"""

from __future__ import annotations

from pyjx.lazy import attach

FAMILIES: dict[str, str] = {
    "pyjx.scipy.linalg.factors": (
        "cho_factor cholesky eigh eigh_tridiagonal hessenberg lu lu_factor polar qr qr_multiply "
        "rsf2csf schur svd"),
    "pyjx.scipy.linalg.solvers": (
        "cho_solve det inv lu_solve solve solve_sylvester solve_triangular"),
    "pyjx.scipy.linalg.matrix_functions": "expm expm_frechet funm sqrtm",
    "pyjx.scipy.linalg.special_matrices": (
        "block_diag circulant companion convolution_matrix dft fiedler fiedler_companion hadamard "
        "hankel helmert hilbert invhilbert invpascal leslie pascal toeplitz"),
}

__getattr__, __dir__, __all__ = attach(__name__, FAMILIES)
