"""What the functions of this package ask of an operand, and make in its likeness."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyjx import lax
from pyjx.core import dtypes
from pyjx.core.array_type import ArrayLike, DTypeLike
from pyjx.core.avals import get_aval
from pyjx.core.scalars import wrapped_constant
from pyjx.engine.tangents import full_aval
from pyjx.lax.nary import stretch
from pyjx.numpy.promotion import convert


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
