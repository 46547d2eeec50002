"""`jax._src.state`: references."""

from __future__ import annotations
