"""`Array`, the type of arrays: for annotations, and for isinstance checks, where tracers pass too.

Its attributes are given to jaxlib's C++ class and to tracers by `runtime.array` and
`numpy.array_methods`, which type checkers cannot follow: the stub beside this file declares them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from pyjx import jaxlib_api
from pyjx.core.trace import Tracer


def _make_array_class() -> Any:
    if jaxlib_api.ARRAY_CLASS_KNOWS_TRACERS:
        array_class = jaxlib_api.ArrayBase
        array_class.__module__ = "pyjx"
        array_class.__name__ = array_class.__qualname__ = "Array"
        return array_class

    class ArrayMeta(type):
        def __instancecheck__(cls, instance: Any) -> bool:
            if isinstance(instance, Tracer):
                return instance._is_traced_array()
            return (isinstance(instance, jaxlib_api.ArrayImpl)
                    or type.__instancecheck__(cls, instance))  # a subclass, such as of keys

    doc = "The type of arrays, for isinstance checks and annotations; tracers are instances too."
    return ArrayMeta("Array", (), {"__module__": "pyjx", "__slots__": (), "__doc__": doc})


Array = _make_array_class()

# What functions of arrays take, and what names a dtype.
ArrayLike: TypeAlias = Array | np.ndarray | np.bool_ | np.number | bool | int | float | complex
AxisLike: TypeAlias = int | Sequence[int] | None  # an axis, several, or all
KeyLike: TypeAlias = Array | np.ndarray  # of random numbers: a key, or its data


@runtime_checkable
class SupportsDType(Protocol):
    """An object with a dtype."""

    @property
    def dtype(self) -> np.dtype[Any]: ...


DTypeLike: TypeAlias = str | type[Any] | np.dtype | SupportsDType
