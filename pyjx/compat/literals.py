"""`jax._src.literals`: scalars of programs. Here they are Python's and NumPy's own, and no value is
one of these classes: libraries ask whether one is, and register conversions for them."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["LiteralArray", "TypedComplex", "TypedFloat", "TypedInt", "TypedNdArray"]


class TypedNdArray:
    """A NumPy array with the type that it has in a program."""


LiteralArray = TypedNdArray  # its name in JAX 0.7


class _Typed:
    """A number with a dtype."""

    dtype: np.dtype[Any]

    def __new__(cls, value: Any, dtype: Any) -> Any:
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
