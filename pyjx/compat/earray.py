"""`jax._src.earray`: arrays of extended dtypes."""

from __future__ import annotations

from pyjx.experimental.earray import EArray

__all__ = ["EArray"]
