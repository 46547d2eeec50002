"""Arguments that must be integers known while tracing: axes, sizes, positions; dimensions,
which are integers or symbolic; and slices of known size that may start at a traced position.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from pyjx.core.avals import Shape, SymbolicDim, canonical_shape, entries
from pyjx.core.value_texts import shortened
from pyjx.errors import InconclusiveDimensionOperation
from pyjx.interning import missing
from pyjx.tree_util import register_pytree_node

# -- integers --------------------------------------------------------------------------------------


def index(value: Any) -> Any:
    """`operator.index`, which leaves a symbolic dimension as it is.

    >>> index(np.int32(3))
    3
    """
    try:
        return operator.index(value)
    except TypeError:
        if isinstance(value, SymbolicDim):
            return value
        raise


def as_int(function: str, argument: str, value: Any) -> int:
    """`value` as a Python int; a symbolic dimension stays one.

    Raises:
      TypeError: it is no integer, or a traced one.

    >>> as_int("cumsum", "axis", 1.5)
    Traceback (most recent call last):
        ...
    TypeError: cumsum: axis must be an integer, got 1.5: 'float' object cannot be interpreted as \
an integer
    """
    if type(value) is int:
        return value
    try:
        return index(value)  # type: ignore[no-any-return]
    except TypeError as error:
        _refuse(f"{function}: {argument} must be an integer, got {shortened(value)}", error)


def as_bool(function: str, argument: str, value: Any) -> bool:
    """A flag of Python's or NumPy's as True or False.

    Raises:
      TypeError: it is something else, such as a text, which Python takes for True.

    >>> as_bool("sort", "is_stable", "no")
    Traceback (most recent call last):
        ...
    TypeError: sort: is_stable must be True or False, got 'no'
    """
    if isinstance(value, (int, np.bool_, np.integer)):
        return bool(value)
    raise TypeError(f"{function}: {argument} must be True or False, got {shortened(value)}")


def as_truncated_int(function: str, argument: str, value: Any) -> Any:
    """A number as a Python int, without its fraction; a symbolic dimension stays one.

    Raises:
      TypeError: it is no real number, or a traced one.
      ValueError, OverflowError: it is nan or infinite.

    >>> as_truncated_int("split", "sections", 2.5)
    2
    """
    if isinstance(value, SymbolicDim):
        return value
    if isinstance(value, (str, bytes)):  # which Python would read
        raise TypeError(f"{function}: {argument} must be a number, got {shortened(value)}")
    return int(value)


def as_ints(function: str, argument: str, values: Any) -> tuple[int, ...]:
    """A sequence of integers as a tuple of Python ints.

    Raises:
      TypeError: it is something else, or an element is traced.

    >>> as_ints("rev", "dimensions", [0, 1])
    (0, 1)
    """
    try:
        return tuple([v if type(v) is int else index(v) for v in (
            values if type(values) is tuple else entries(values))])
    except TypeError as error:
        _refuse(f"{function}: {argument} must be a sequence of integers, got "
                f"{shortened(values)}", error)


def as_shape(function: str, argument: str, value: Any) -> Shape:
    """A shape, which is a sequence of integers or one integer, as a tuple.

    Raises:
      TypeError: it is something else, or an element is traced.

    >>> as_shape("full", "shape", 3)
    (3,)
    """
    try:
        return canonical_shape(value)
    except TypeError as error:
        raise TypeError(f"{function}: {argument}: {error}") from None


def as_sizes(function: str, argument: str, value: Any) -> Shape:
    """A shape none of whose elements is negative.

    Raises:
      TypeError: it is something else, or an element is negative or traced.

    >>> as_sizes("full", "shape", (2, -1))
    Traceback (most recent call last):
        ...
    TypeError: full shape must have every element be nonnegative, got (2, -1).
    """
    shape = as_shape(function, argument, value)
    for n in shape:
        if n < 0:
            raise TypeError(f"{function} {argument} must have every element be nonnegative, got "
                            f"{shortened(shape)}.")
    return shape


def as_axis(function: str, argument: str, axis: Any, ndim: int) -> int:
    """An axis of an array with `ndim` axes, counted from the front.

    Raises:
      TypeError: it is no integer, or a traced one.
      AxisError: there is no such axis; a ValueError and an IndexError.

    >>> as_axis("squeeze", "dimensions", -1, 3)
    2
    """
    i = as_int(function, argument, axis)
    if not -ndim <= i < ndim:
        raise np.exceptions.AxisError(
            f"{function}: {argument}: axis {axis} is out of bounds for array of dimension {ndim}")
    return i + ndim if i < 0 else i


def _refuse(text: str, error: TypeError) -> NoReturn:
    if type(error) is not TypeError:  # one that says where the traced value comes from
        raise error
    raise TypeError(f"{text}: {error}") from None


# -- dimensions ------------------------------------------------------------------------------------


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
        raise TypeError(f"The step of a slice must be an int where a size is symbolic, got {step}.")
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


# -- slices ----------------------------------------------------------------------------------------


class Slice:
    """`size` elements of an axis from `start` on, `stride` apart, as an index.

    Its start may be an array; the elements are then read as `lax.dynamic_slice` reads them, so that
    a slice that would go beyond the end begins earlier.
    """

    __slots__ = ("size", "start", "stride")

    def __init__(self, start: Any, size: Any, stride: int = 1) -> None:
        if stride < 0:
            raise ValueError("`stride` must be >= 0.")
        self.start = start
        self.size = size
        self.stride = stride

    @property
    def is_dynamic_start(self) -> bool:
        """Whether it starts at a position that is not known as an int."""
        return not isinstance(self.start, int)

    @property
    def is_dynamic_size(self) -> bool:
        """Whether its size is not known as an int."""
        return not isinstance(self.size, int)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Slice) and (self.start, self.size, self.stride) == (
            other.start, other.size, other.stride)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Slice(start={self.start!r}, size={self.size!r}, stride={self.stride})"


def ds(start: Any, size: Any = missing, stride: int | None = None) -> slice | Slice:
    """An index like `start:start + size:stride`, whose start may be traced.

    Args:
      start: where it begins. `ds(None)` is `:`, and `ds(n)` is `:n`.
      size: how many elements, an int; of a start that is an int, how many positions.
      stride: how far apart the elements are.

    Raises:
      ValueError: the stride is negative.

    >>> import pyjx as jax
    >>> x = jax.numpy.arange(10)
    >>> jax.jit(lambda i: x[jax.ds(i, 3)])(4).tolist()
    [4, 5, 6]
    """
    if start is None and size is missing:
        return slice(None)
    if size is missing:
        start, size = 0, start
    return Slice(0 if start is None else start, size, 1 if stride is None else stride)


def _flatten(s: Slice) -> tuple[Any, Any]:
    flags = s.is_dynamic_start, s.is_dynamic_size
    children = [x for x, flag in zip((s.start, s.size), flags, strict=True) if flag]
    known = [x for x, flag in zip((s.start, s.size), flags, strict=True) if not flag]
    return children, (flags, tuple(known), s.stride)


def _unflatten(aux: Any, children: Any) -> Slice:
    flags, known, stride = aux
    given, others = iter(children), iter(known)
    s = object.__new__(Slice)
    s.start, s.size = [next(given) if flag else next(others) for flag in flags]
    s.stride = stride
    return s


register_pytree_node(Slice, _flatten, _unflatten)
