"""`jax._src.numpy.linalg`: the names of `jax.numpy.linalg`, and the types of results."""

from __future__ import annotations

from typing import Any

import pyjx.numpy.linalg
from pyjx.numpy.linalg.decompositions import EighResult, EigResult, QRResult, SVDResult
from pyjx.numpy.linalg.invariants import SlogdetResult

__all__ = ["EigResult", "EighResult", "QRResult", "SVDResult", "SlogdetResult"]


def __getattr__(name: str) -> Any:
    return getattr(pyjx.numpy.linalg, name)
