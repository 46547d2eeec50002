"""`jax._src.dtypes`: NumPy's dtypes, and those that programs have besides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import pyjx.dtypes
from pyjx import configuration
from pyjx.core import dtypes
from pyjx.core.dtypes import (
    ExtendedDType,
    TypePromotionError,
    canonicalize_dtype,
    dtype,
    extended,
    float0,
    is_python_scalar,
    issubdtype,
    python_scalar_dtype,
    result_type,
    to_complex_dtype,
    to_inexact_dtype,
)
from pyjx.experimental.earray import primal_tangent_dtype
from pyjx.numpy import finfo, iinfo

DType = np.dtype

__all__ = [
    "DType", "ExtendedDType", "TypePromotionError", "canonicalize_dtype",
    "coerce_to_array", "default_types", "dtype", "extended", "finfo", "float0", "iinfo",
    "is_python_scalar", "is_weakly_typed_scalar", "issubdtype", "jax_dtype",
    "primal_tangent_dtype", "python_scalar_dtype", "python_scalar_types",
    "python_scalar_types_to_dtypes", "result_type", "safe_to_cast", "scalar_type_to_dtype",
    "supports_inf", "to_complex_dtype", "to_inexact_dtype",
]

# -- groups of dtypes ------------------------------------------------------------------------------

_bool_types = [dtypes.bool_dtype]


def _ordered(*kinds: str) -> list[np.dtype[Any]]:
    """The dtypes of categories, from narrow to wide, those of ml_dtypes that are as wide before."""
    return [kind for category in kinds for kind in sorted(
        [t for t in dtypes.all_dtypes if issubdtype(t, getattr(np, category))],
        key=lambda t: (dtypes.itemsize_bits(t), t.isbuiltin == 1, t.name))]


_signed_types = _ordered("signedinteger")
_unsigned_types = _ordered("unsignedinteger")
_int_types = _unsigned_types + _signed_types
_float_types = _ordered("floating")
_complex_types = _ordered("complexfloating")
_weak_types = [int, float, complex]
_jax_types = [*_bool_types, *_int_types, *_float_types, *_complex_types]
_intn_dtypes = [t for t in _int_types if dtypes.itemsize_bits(t) < 8]
_float4_dtypes, _float6_dtypes, _float8_dtypes = [
    [t for t in _float_types if dtypes.itemsize_bits(t) == bits] for bits in (4, 6, 8)]
_custom_float_dtypes = [t for t in _float_types if t.isbuiltin != 1]

python_scalar_types = {bool, int, float, complex}
python_scalar_types_to_dtypes = dtypes.python_dtypes[True]
default_types: dict[str, Callable[[], Any]] = {
    "b": lambda: dtypes.bool_dtype, "i": dtypes.default_int_dtype,
    "u": dtypes.default_uint_dtype, "f": dtypes.default_float_dtype,
    "c": dtypes.default_complex_dtype}

# -- dtypes of values ------------------------------------------------------------------------------


def jax_dtype(obj: Any, *, align: bool = False, copy: bool = False) -> Any:
    """The dtype that something stands for: the default one for a Python type, of floats for None.

    >>> jax_dtype(int), jax_dtype(None)
    (dtype('int32'), dtype('float32'))
    """
    if obj is None:
        return dtypes.default_float_dtype()
    if isinstance(obj, type) and obj in python_scalar_types:
        return dtypes.python_scalar_dtype(obj)
    if isinstance(obj, ExtendedDType) or (isinstance(obj, type) and issubclass(obj, extended)):
        return obj
    return np.dtype(obj, align=align, copy=copy)


def scalar_type_to_dtype(typ: type, value: Any = None) -> Any:
    """The dtype of values of a Python type.

    Raises:
      OverflowError: `value` is an integer that it does not hold.
    """
    found = dtypes.python_dtypes[bool(configuration.enable_x64.value)][typ]
    if typ is int and value is not None:
        found.type(value)  # NumPy refuses it
    return found


def coerce_to_array(x: Any, dtype: Any = None) -> np.ndarray[Any, Any]:
    """The value as a NumPy array, of a Python scalar in its default dtype."""
    if dtype is None and type(x) in python_scalar_types:
        dtype = scalar_type_to_dtype(type(x), x)
    return np.asarray(x, dtype)


def is_weakly_typed_scalar(x: Any) -> bool:
    """Whether it is a scalar of a weak type."""
    return dtypes.is_weakly_typed(x) and np.ndim(x) == 0


def safe_to_cast(input_dtype_or_value: Any, output_dtype_or_value: Any) -> bool:
    """Whether promotion with the second one gives its dtype.

    >>> safe_to_cast("int32", "float16"), safe_to_cast(1.0, "int32")
    (True, False)
    """
    to = dtype(output_dtype_or_value)
    return bool(dtypes.lattice_result_type(input_dtype_or_value, to)[0] == to)


def _dtype_and_weaktype(value: Any) -> tuple[Any, bool]:
    """The dtype of a value and whether it is weak."""
    return dtype(value), dtypes.is_weakly_typed(value)


def _issubclass(a: Any, b: Any) -> bool:
    """Whether `a` is a class below `b`; what is no class is below none."""
    return isinstance(a, type) and isinstance(b, type) and issubclass(a, b)


def supports_inf(of: Any) -> bool:
    """Whether a dtype of floating-point numbers has infinities."""
    name = np.dtype(of).name
    return not (name.endswith(("fn", "fnuz")) or name.startswith(("float4", "float6")))


def __getattr__(name: str) -> Any:
    for public in (pyjx.dtypes, dtypes):
        if hasattr(public, name):
            return getattr(public, name)
    scalar = name.removeprefix("_").removesuffix("_dtype")
    if name == f"_{scalar}_dtype":  # _int4_dtype
        for dtype in dtypes.all_dtypes:
            if dtype.name == scalar:
                return dtype
    raise AttributeError(f"module 'jax._src.dtypes' has no attribute {name!r} here")
