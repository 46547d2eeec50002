"""Linear algebra for sparse matrices."""

from __future__ import annotations

from pyjx.lazy import attach

FAMILIES: dict[str, str] = {
    "pyjx.experimental.sparse.linalg.eigenvectors": "lobpcg_standard",
    "pyjx.experimental.sparse.linalg.systems": "spsolve spsolve_p",
}

__getattr__, __dir__, __all__ = attach(__name__, FAMILIES)
