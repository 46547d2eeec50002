"""Dimensions, which are ints or symbolic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyjx.core.avals import SymbolicDim
from pyjx.errors import InconclusiveDimensionOperation


def max_dim(d1: Any, d2: Any) -> Any:
    """The larger one of two dimensions.

    >>> import pyjx as jax
    >>> jax.core.max_dim(2, 3)
    3
    """
    if type(d1) is type(d2) is int:
        return max(d1, d2)
    return d1.maximum(d2) if hasattr(d1, "maximum") else \
        d2.maximum(d1) if hasattr(d2, "maximum") else d1 if d1 is d2 else max(d1, d2)


def min_dim(d1: Any, d2: Any) -> Any:
    """The smaller one of two dimensions.

    >>> import pyjx as jax
    >>> jax.core.min_dim(2, 3)
    2
    """
    if type(d1) is type(d2) is int:
        return min(d1, d2)
    return d1.minimum(d2) if hasattr(d1, "minimum") else \
        d2.minimum(d1) if hasattr(d2, "minimum") else d1 if d1 is d2 else min(d1, d2)


def range_size(start: Any, stop: Any, step: int) -> Any:
    """How many numbers `range(start, stop, step)` has.

    >>> range_size(1, 8, 3)
    3
    """
    if type(start) is type(stop) is int:
        return len(range(start, stop, step))
    length = stop - start if step > 0 else start - stop
    return max_dim((length + abs(step) - 1) // abs(step), 0)


def slice_indices(item: slice, n: Any) -> tuple[Any, Any, int]:
    """`item.indices(n)` for dimensions.

    >>> slice_indices(slice(-2, None), 5)
    (3, 5, 1)
    """
    step = 1 if item.step is None else item.step
    if type(step) is not int:
        raise TypeError(f"The step of a slice along a symbolic axis must be an int, got {step}.")
    if step == 0:
        raise ValueError("slice step cannot be zero")
    lowest, highest = (0, n) if step > 0 else (-1, n - 1)

    def bounded(x: Any, default: Any) -> Any:
        if x is None:
            return default
        if x < 0:
            return max_dim(x + n, lowest)
        return min_dim(x, highest)

    first, last = (lowest, highest) if step > 0 else (highest, lowest)
    return bounded(item.start, first), bounded(item.stop, last), step


def check_decided(old: Sequence[Any], new: Sequence[Any], size: Any, known: Any) -> None:
    """Raise InconclusiveDimensionOperation where symbolic sizes may divide evenly."""
    if known and isinstance(size % known, SymbolicDim):
        raise InconclusiveDimensionOperation(
            f"Cannot divide evenly the sizes of shapes {tuple(old)} and {tuple(new)}. The "
            f"remainder {size % known} should be 0. Say so by `constraints=` of `symbolic_shape`, "
            f'such as "{size % known} == 0".', (size % known, True))
