"""Linear algebra with NumPy's interface."""

from __future__ import annotations

from pyjx.lazy import attach

# Public names by module; `public=name` exports a name under another one.
FAMILIES: dict[str, str] = {
    "pyjx.numpy.contractions": "tensordot",
    "pyjx.numpy.linalg.decompositions": "cholesky eigh eigvalsh qr svd svdvals",
    "pyjx.numpy.linalg.systems": "inv solve",
    "pyjx.numpy.linalg.invariants": "det slogdet",
}

__getattr__, __dir__, __all__ = attach(__name__, FAMILIES)
