"""The scalar types `float32`, `int8`, ...: dtypes by name, and makers of arrays.

`float32` stands for its dtype wherever one is expected, equals it, and `float32(x)` is the array of
`x` with that dtype.
"""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from pyjx import numpy as jnp


class ScalarType(type):
    """The class of scalar types."""

    dtype: np.dtype[Any]

    def __hash__(cls) -> int:
        return hash(cls.dtype.type)

    def __eq__(cls, other: object) -> bool:
        kind = cls.dtype.type
        return cls is other or kind is other or builtins.bool(kind == other)

    def __ne__(cls, other: object) -> bool:
        return not cls == other

    def __call__(cls, x: Any) -> Any:
        value = np.asarray(x, cls.dtype)[()] if isinstance(x, str) else x
        return jnp.asarray(value, dtype=cls.dtype)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.dtype.type)

    def __reduce__(cls) -> Any:
        return _by_name, (cls.__name__,)


def _make(name: str) -> Any:
    kind = getattr(ml_dtypes, name, None) or getattr(np, name)
    dtype = np.dtype(kind)
    doc = (f"The scalar type of dtype {name}.\n\nStands for the dtype; called, it makes an array "
           f"of that dtype from a number or sequence.")
    return ScalarType(name, (), {"dtype": dtype, "__doc__": doc, "__module__": "pyjx.numpy"})


def _by_name(name: str) -> Any:
    return globals()[name]


NAMES = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 "
    "complex128 bfloat16 int1 int2 int4 uint1 uint2 uint4 float4_e2m1fn float6_e2m3fn "
    "float6_e3m2fn float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz "
    "float8_e5m2 float8_e5m2fnuz float8_e8m0fnu")

for _name in NAMES.split():
    if hasattr(ml_dtypes, _name) or hasattr(np, _name):
        globals()[_name] = _make(_name)

if TYPE_CHECKING:  # the names that the loop defines

    def __getattr__(name: str) -> Any: ...


bool_ = globals()["bool"]
int_ = globals()["int64"]
uint = globals()["uint64"]
float_ = double = globals()["float64"]
single = globals()["float32"]
complex_ = cdouble = globals()["complex128"]
csingle = globals()["complex64"]
