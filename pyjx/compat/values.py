"""Values, their types and dtypes, as libraries ask about them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pyjx import jaxlib_api
from pyjx.core import dtypes
from pyjx.core.array_type import DTypeLike
from pyjx.core.avals import AbstractValue, aval_makers, is_valid_value
from pyjx.core.explicit import with_dim
from pyjx.core.jaxpr import Var

Backend = jaxlib_api.Client
DType = np.dtype
_jax_types = list(dtypes.all_dtypes)


def _canonical(x: Any) -> Any:
    """A NumPy array of a dtype that programs take."""
    array = np.asarray(x)
    return array.astype(dtypes.canonicalize_dtype(array.dtype), copy=False)


# What makes a value of a type one of a canonical dtype. Nothing reads what libraries put here:
# arrays have such a dtype from the start, and other types of operands are those that
# `pytype_aval_mappings` knows.
canonicalize_dtype_handlers: dict[type, Callable[[Any], Any]] = {np.ndarray: _canonical}

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


def supports_inf(of: Any) -> bool:
    """Whether a dtype of floating-point numbers has infinities.

    >>> supports_inf("float32"), supports_inf(dtypes.dtype("float8_e4m3fn"))
    (True, False)
    """
    name = np.dtype(of).name
    return not (name.endswith(("fn", "fnuz")) or name.startswith(("float4", "float6")))


# Scalars of programs are Python's and NumPy's own here. No value is one of the classes below:
# libraries ask whether one is, and register conversions for them.


class TypedNdArray:
    """A NumPy array with the type that it has in a program."""


LiteralArray = TypedNdArray  # its name in JAX 0.7


class _Typed:
    """A number with a dtype."""

    dtype: np.dtype[Any]

    def __new__(cls, value: Any, dtype: DTypeLike | None) -> Any:
        self = super().__new__(cls, value)  # type: ignore[call-arg]
        self.dtype = np.dtype(dtype)
        return self


class TypedInt(_Typed, int):
    """A Python integer with a dtype.

    >>> TypedInt(3, "int8") + 1, TypedInt(3, "int8").dtype
    (4, dtype('int8'))
    """


class TypedFloat(_Typed, float):
    """A Python float with a dtype."""


class TypedComplex(_Typed, complex):
    """A Python complex number with a dtype."""
