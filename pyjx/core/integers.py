"""Arguments that must be integers known while tracing: axes, sizes, positions."""

from __future__ import annotations

import operator
from typing import Any, NoReturn

import numpy as np

from pyjx.core.avals import Shape, SymbolicDim, canonical_shape
from pyjx.core.value_texts import shortened


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
        return tuple([v if type(v) is int else index(v) for v in values])
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
            raise TypeError(
                f"{function} {argument} must have every element be nonnegative, got {shape}."
            )
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
            f"{function}: {argument}: axis {axis} is out of bounds for array of dimension {ndim}"
        )
    return i + ndim if i < 0 else i


def _refuse(text: str, error: TypeError) -> NoReturn:
    if type(error) is not TypeError:  # one that says where the traced value comes from
        raise error
    raise TypeError(f"{text}: {error}") from None
