"""Types of values, as libraries ask about them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyjx.core import dtypes
from pyjx.core.avals import AbstractValue, aval_makers, is_valid_value
from pyjx.core.explicit import with_dim
from pyjx.core.jaxpr import Var
from pyjx.errors import InconclusiveDimensionOperation

__all__ = [
    "InconclusiveDimensionOperation", "array_types", "gensym", "mapped_aval",
    "primal_dtype_to_tangent_dtype", "unmapped_aval", "valid_jaxtype",
]

# The Python types of values that programs take.
array_types = aval_makers.keys()


def valid_jaxtype(x: object) -> bool:
    """Whether programs take the value.

    >>> from pyjx.extend.core import valid_jaxtype
    >>> valid_jaxtype(1.0), valid_jaxtype("text")
    (True, False)
    """
    return is_valid_value(x)


def primal_dtype_to_tangent_dtype(primal_dtype: Any) -> Any:
    """The dtype of the tangent of a value."""
    return dtypes.tangent_dtype(primal_dtype)


def mapped_aval(size: int, axis: int | None, aval: AbstractValue) -> Any:
    """The type of one example of a batch of `size` along `axis`."""
    return aval.dec_rank(size, axis)


def unmapped_aval(size: int, axis: int | None, aval: Any, explicit_mesh_axis: Any = None) -> Any:
    """The type of a batch of `size` examples along `axis`, which lies along an axis of a mesh."""
    if explicit_mesh_axis is None or axis is None:
        return aval.inc_rank(size, axis)
    return with_dim(aval, axis, size, explicit_mesh_axis)


def gensym(suffix: str = "") -> Callable[[Any], Var]:
    """A maker of variables."""
    return Var
