"""`jax._src.literals`: scalars of programs. Here they are Python's and NumPy's own."""

from __future__ import annotations

__all__ = ["LiteralArray", "TypedNdArray"]


class TypedNdArray:
    """A NumPy array with the type that it has in a program. No value is one here."""


LiteralArray = TypedNdArray  # its name in JAX 0.7
