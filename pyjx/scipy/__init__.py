"""SciPy's functions for arrays on any device. Modules load when they are first used.

Each is a package whose table names its functions. SciPy itself is not imported.
"""

from __future__ import annotations

from pyjx.lazy import attach

FAMILIES: dict[str, str] = {}

SUBMODULES = (
    "cluster fft integrate interpolate linalg ndimage optimize signal sparse spatial special stats"
)

__getattr__, __dir__, __all__ = attach(__name__, FAMILIES, SUBMODULES)
