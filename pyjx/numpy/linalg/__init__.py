"""Linear algebra with NumPy's interface."""

from __future__ import annotations

from pyjx.documentation import describe
from pyjx.lazy import attach

# Public names by module; `public=name` exports a name under another one.
FAMILIES: dict[str, str] = {
    "pyjx.numpy.contractions": "tensordot",
    "pyjx.numpy.linalg.decompositions": "cholesky eig eigh eigvals eigvalsh qr svd svdvals",
    "pyjx.numpy.linalg.systems": "inv lstsq pinv solve tensorinv tensorsolve",
    "pyjx.numpy.linalg.invariants": "cond det matrix_norm matrix_rank norm slogdet vector_norm",
    "pyjx.numpy.linalg.products": (
        "cross diagonal matmul matrix_power matrix_transpose multi_dot outer trace vecdot"),
}

__getattr__, __dir__, __all__ = attach(__name__, FAMILIES, describe=describe)
