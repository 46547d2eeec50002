"""`jax._src.ad_util`: tangents."""

from __future__ import annotations

from pyjx.engine.tangents import (
    UndefinedPrimal,
    Zero,
    add_any_p,
    add_tangents,
    instantiate,
    is_undefined_primal,
    zeros_like,
)
from pyjx.lax.convert import stop_gradient_p

add_jaxvals_p = add_any_p
add_jaxvals = add_tangents
zeros_like_jaxval = zeros_like

__all__ = [
    "UndefinedPrimal", "Zero", "add_jaxvals", "add_jaxvals_p", "instantiate",
    "is_undefined_primal", "stop_gradient_p", "zeros_like_jaxval",
]
