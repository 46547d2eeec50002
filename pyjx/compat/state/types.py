"""`jax._src.state.types`: the types of references."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyjx.core.avals import AbstractRef, ShapedArray, get_aval
from pyjx.core.effects import AccumEffect, ReadEffect, RefEffect, WriteEffect
from pyjx.lax.references import TransformedRef

__all__ = ["AbstractRef", "AccumEffect", "ReadEffect", "RefEffect", "TransformedRef",
           "WriteEffect", "get_ref_aval_from_value", "shaped_array_ref"]


def shaped_array_ref(shape: Sequence[int], dtype: Any, weak_type: bool = False) -> AbstractRef:
    """The type of references to arrays.

    >>> shaped_array_ref((2,), "float32")
    Ref{float32[2]}
    """
    return AbstractRef(ShapedArray(tuple(shape), dtype, weak_type))


def get_ref_aval_from_value(x: Any) -> tuple[AbstractRef, Any]:
    """The type of a reference to a value, and the value."""
    return AbstractRef(get_aval(x)), x
