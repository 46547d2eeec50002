"""`jax._src.state`: mutable references."""

from __future__ import annotations

from pyjx.compat.state.types import (
    AbstractRef,
    AccumEffect,
    ReadEffect,
    RefEffect,
    TransformedRef,
    WriteEffect,
    shaped_array_ref,
)

__all__ = ["AbstractRef", "AccumEffect", "ReadEffect", "RefEffect", "TransformedRef",
           "WriteEffect", "shaped_array_ref"]
