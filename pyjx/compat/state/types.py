"""`jax._src.state.types`: the types of references."""

from __future__ import annotations

from pyjx.core.avals import AbstractRef
from pyjx.core.effects import AccumEffect, ReadEffect, RefEffect, WriteEffect
from pyjx.lax.references import TransformedRef

__all__ = ["AbstractRef", "AccumEffect", "ReadEffect", "RefEffect", "TransformedRef",
           "WriteEffect"]
