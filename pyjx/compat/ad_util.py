"""`jax._src.ad_util`: tangents."""

from __future__ import annotations

from pyjx.lax.convert import stop_gradient_p

__all__ = ["stop_gradient_p"]
