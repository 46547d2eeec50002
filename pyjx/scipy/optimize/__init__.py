"""Minimization. Names load their module when they are first used."""

from __future__ import annotations

from pyjx.lazy import attach

FAMILIES: dict[str, str] = {
    "pyjx.scipy.optimize.quasi_newton": "OptimizeResults minimize",
}

__getattr__, __dir__, __all__ = attach(__name__, FAMILIES)
