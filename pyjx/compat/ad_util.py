"""`jax._src.ad_util`: tangents."""

from __future__ import annotations

from typing import Any

from pyjx.core.avals import ShapedArray
from pyjx.engine.custom_derivative_calls import SymbolicZero, zero_from_primal
from pyjx.engine.tangents import (
    UndefinedPrimal,
    Zero,
    add_any_p,
    add_tangents,
    full_aval,
    instantiate,
    is_undefined_primal,
    zeros_like,
)
from pyjx.lax.convert import stop_gradient_p

add_jaxvals_p = add_any_p
add_jaxvals = add_tangents
zeros_like_jaxval = zeros_like


def zeros_like_aval(aval: ShapedArray) -> Any:
    """The array of zeros of a type."""
    return full_aval(aval, 0)

__all__ = [
    "SymbolicZero", "UndefinedPrimal", "Zero", "add_jaxvals", "add_jaxvals_p", "instantiate",
    "is_undefined_primal", "stop_gradient_p", "zero_from_primal", "zeros_like_aval",
    "zeros_like_jaxval",
]
