"""`jax._src.state`: mutable references."""

from __future__ import annotations
