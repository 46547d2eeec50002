"""What the functions of this package ask of their arguments: operands, and what is made in their
likeness; axes, checked and made tuples.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from pyjx import lax
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike, DTypeLike
from pyjx.core.avals import get_aval
from pyjx.core.integers import index
from pyjx.core.scalars import wrapped_constant
from pyjx.core.trace import Tracer, concrete_or_error
from pyjx.core.value_texts import shortened
from pyjx.engine.tangents import full_aval
from pyjx.lax.elementwise import stretch
from pyjx.numpy.promotion import convert

# -- operands --------------------------------------------------------------------------------------


def dtype_of(x: ArrayLike) -> Any:
    return get_aval(x).dtype


def is_integer(x: ArrayLike) -> bool:
    return dtype_of(x) in dtypes.integer_dtypes


def is_inexact(x: ArrayLike) -> bool:
    dtype = dtype_of(x)
    return dtype in dtypes.floating_dtypes or dtype in dtypes.complex_dtypes


def is_complex(x: ArrayLike) -> bool:
    return dtype_of(x) in dtypes.complex_dtypes


def constant_like(x: ArrayLike, value: ArrayLike) -> Any:
    """`value` as a scalar of the type of `x`, to stand beside it in an operation."""
    aval = get_aval(x)
    return wrapped_constant(value, aval.dtype, aval.weak_type)


def beside_constants(x: ArrayLike) -> Any:
    """`x` as it is beside an array of constants, which is of strong type; scalars stay weak."""
    aval = get_aval(x)
    return convert(x, aval.dtype) if aval.weak_type and aval.ndim else x


def as_bool(x: ArrayLike) -> Any:
    """Where x is not zero."""
    dtype = dtype_of(x)
    if dtype == dtypes.bool_dtype:
        return x
    if dtype == dtypes.float0:
        raise dtypes.float0_error("a logical function")
    return lax.ne(beside_constants(x), constant_like(x, 0))


def filled_like(x: ArrayLike, value: ArrayLike, dtype: DTypeLike | None = None) -> Any:
    """An array of the shape of `x` filled with a number; without `dtype`, of the type of `x`."""
    aval = get_aval(x)
    if dtype is not None:
        return full_aval(aval.update(dtype=np.dtype(dtype), weak_type=False), value)
    if aval.place.sharding is not None:
        return full_aval(aval, value)
    return stretch(constant_like(x, value), aval.shape)


# -- axes ------------------------------------------------------------------------------------------

_all_axes: list[tuple[int, ...]] = [tuple(range(n)) for n in range(16)]


def all_axes(ndim: int) -> tuple[int, ...]:
    """Every axis of an array of `ndim` dimensions."""
    return _all_axes[ndim] if ndim < 16 else tuple(range(ndim))


def canonical_axis(axis: Any, ndim: int) -> int:
    """`axis` counted from the front.

    Raises:
      TypeError: it is no integer.
      AxisError: there is no such axis; a ValueError and an IndexError.

    >>> canonical_axis(-1, 3)
    2
    """
    try:
        axis = operator.index(axis)
    except TypeError as error:
        _refuse(axis, error)
    if not -ndim <= axis < ndim:
        raise np.exceptions.AxisError(axis, ndim)
    return axis + ndim if axis < 0 else axis


def _refuse(axis: int | Sequence[int] | None, error: TypeError) -> NoReturn:
    if type(error) is not TypeError:  # one that says where the traced value comes from
        raise error
    raise TypeError(f"axis must be an integer, got {shortened(axis)}: {error}") from None


def canonical_axes(axis: int | Sequence[int] | None, ndim: int) -> tuple[int, ...]:
    """The axes that an int, a sequence of ints or None (for all) stands for.

    Raises:
      TypeError: `axis` is none of these; ConcretizationTypeError where it is traced.
      AxisError: an axis is out of bounds.
      ValueError: an axis is named twice.

    >>> canonical_axes((0, -1), 3)
    (0, 2)
    """
    if axis is None:
        return all_axes(ndim)
    if type(axis) is int:
        return (canonical_axis(axis, ndim),)
    axis = _known(axis)
    if hasattr(axis, "__index__") and not (isinstance(axis, np.ndarray) and axis.ndim):
        return (canonical_axis(axis, ndim),)
    try:
        given = tuple(axis)
    except TypeError:
        return (canonical_axis(axis, ndim),)  # which says what an axis is
    axes = tuple([canonical_axis(a, ndim) for a in given])
    if len(set(axes)) != len(axes):
        raise ValueError(f"duplicate value in 'axis': {tuple(axis)}")
    return axes


def names_in(axis: object) -> tuple[str, ...]:
    """The names of mapped axes among those that `axis` gives: see `pyjx.vmap`.

    >>> names_in((0, "i"))
    ('i',)
    """
    if type(axis) is str:
        return (axis,)
    if isinstance(axis, (tuple, list)):
        return tuple([a for a in axis if isinstance(a, str)])
    return ()


def axes_and_names(axis: Any, ndim: int) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """As `canonical_axes`, of what is no name; and the names.

    >>> axes_and_names((-1, "i"), 3)
    ((2,), ('i',))
    """
    names = names_in(axis)
    if names:
        axis = [a for a in ([] if type(axis) is str else axis) if not isinstance(a, str)]
    return canonical_axes(axis, ndim), names


def _known(x: object) -> Any:
    """What was given as an int or a sequence of ints; ConcretizationTypeError if that is traced."""
    return concrete_or_error(None, x, "The axes and sizes that an operation is given decide the "
                             "shape of its result.") if isinstance(x, Tracer) else x


def as_tuple(x: int | Sequence[int] | Array) -> tuple[int, ...]:
    """The ints that an int or a sequence of ints stands for.

    Raises:
      ConcretizationTypeError: it is traced.
    """
    found = _known(x)
    try:
        return (index(found),)
    except TypeError:
        return tuple([index(i) for i in found])
