"""What bad calls are made of."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class Bad(NamedTuple):
    """A call that must fail, and what its error must mention besides the function."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    says: str = ""
    error: Any = (TypeError, ValueError)


def bad(*args: Any, says: str = "", error: Any = (TypeError, ValueError), **kwargs: Any) -> Bad:
    return Bad(args, kwargs, says, error)


def array(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return np.ones(shape, dtype)


F32, F16, C64 = array(3), array(3, dtype=np.float16), array(3, dtype=np.complex64)
I32, U8, BOOL = array(3, dtype=np.int32), array(3, dtype=np.uint8), array(3, dtype=bool)
F4, MATRIX, SCALAR = array(4), array(2, 3), np.float32(1)
ONE = np.int32(1)

# Objects that are no arrays.
OBJECTS: tuple[Any, ...] = (
    "a", None, {}, {1}, object(), len, np.array(["a"]), np.array([None]), np.array([{}, 1]),
    np.array(["2020-01-01"], "datetime64[D]"),
)
# Objects that are no integers, and no sequences of integers.
NOT_INT: tuple[Any, ...] = (1.5, "x", None, {}, (0,), np.float32(1))
NOT_INTS: tuple[Any, ...] = (("x",), (1.5,), (None,), {"a": 1}, "ab", 2.5)
# Objects that name no dtype, and no precision.
BAD_DTYPES: tuple[Any, ...] = ("nope", "S4", object, "datetime64[D]", 3, {})
BAD_PRECISIONS: tuple[Any, ...] = ("nope", 3, ("highest",), {}, ("high", "nope"))
