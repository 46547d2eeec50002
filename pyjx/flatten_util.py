"""Pytrees of arrays as vectors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

from pyjx.core import dtypes
from pyjx.core.avals import get_aval
from pyjx.core.records import Shared
from pyjx.lax.common import operand, operands_in
from pyjx.lax.convert import convert_element_type, full, real
from pyjx.lax.joining import concatenate, split
from pyjx.lax.shapes import reshape
from pyjx.lazy import directory
from pyjx.tree_util import PyTree, tree_unflatten

__all__ = ["ravel_pytree"]


def ravel_pytree(pytree: PyTree) -> tuple[Any, Callable[[Any], Any]]:
    """All elements of a pytree as one vector, and the function that brings them back.

    Args:
      pytree: of arrays and scalars.

    Returns:
      `(vector, unravel)`: the vector's dtype is what those of the leaves promote to, or float32 if
      there is none. `unravel` makes a pytree with the structure, shapes and dtypes of the given one
      of a vector of that length and dtype; where all leaves have one dtype it takes vectors of
      any.

    Raises:
      TypeError: a leaf is no array or scalar.

    >>> import pyjx as jax
    >>> import pyjx.numpy as jnp
    >>> vector, unravel = jax.flatten_util.ravel_pytree({"a": jnp.arange(2.0), "b": 3.0})
    >>> vector.tolist(), float(unravel(2 * vector)["b"])
    ([0.0, 1.0, 3.0], 6.0)
    """
    leaves, tree = operands_in("ravel_pytree", pytree)
    if not leaves:
        return full((0,), 0, "float32"), Unravel(tree, (), None, None)
    avals = list(map(get_aval, leaves))
    own = tuple([a.dtype for a in avals])
    common = dtypes.result_type(*own)
    flat = [reshape(x, (prod(a.shape),)) for x, a in zip(leaves, avals, strict=True)]
    shapes = tuple([a.shape for a in avals])
    if all([d == common for d in own]):
        return concatenate(flat, 0), Unravel(tree, shapes, None, None)
    return (concatenate([convert_element_type(x, common) for x in flat], 0),
            Unravel(tree, shapes, own, common))


@dataclass(frozen=True)
class Unravel(Shared):
    """From a vector to a pytree; equal where it does the same.

    `dtypes` are those of the leaves and `dtype` is that of the vector, unless they are all one.
    """

    tree: Any
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[Any, ...] | None
    dtype: Any

    def __call__(self, vector: Any) -> Any:
        if not self.shapes:
            return tree_unflatten(self.tree, [])
        vector = operand("unravel", vector)
        dtype = get_aval(vector).dtype
        if self.dtypes is not None and dtype != self.dtype:
            raise TypeError(f"unravel function given array of dtype {dtypes.name(dtype)}, but "
                            f"expected dtype {dtypes.name(self.dtype)}")
        sizes = [prod(shape) for shape in self.shapes]
        if get_aval(vector).shape != (sum(sizes),):
            raise ValueError(
                f"unravel: Sum of sizes {sum(sizes)} must be equal to dimension 0 of the operand "
                f"shape {list(get_aval(vector).shape)}: expected is a vector of {sum(sizes)} "
                f"elements, for the leaves of shapes {', '.join(map(str, self.shapes))}.")
        parts = [reshape(x, shape)
                 for x, shape in zip(split(vector, sizes), self.shapes, strict=True)]
        if self.dtypes is not None:
            parts = [_converted(x, d) for x, d in zip(parts, self.dtypes, strict=True)]
        return tree_unflatten(self.tree, parts)


def _converted(x: Any, dtype: Any) -> Any:
    """x in a dtype that was promoted to its own, from a complex one without a warning."""
    if get_aval(x).dtype in dtypes.complex_dtypes and dtype not in dtypes.complex_dtypes:
        x = real(x)
    return convert_element_type(x, dtype)


__dir__ = directory(__name__, __all__)
