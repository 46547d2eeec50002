"""StableHLO's spelling of types and constants."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pyjx.core import dtypes
from pyjx.core.avals import ShapedArray, SymbolicDim, abstract_token
from pyjx.core.bounded import BoundedDict

_SIGNED = {1: "i8", 2: "i16", 4: "i32", 8: "i64"}
_element_types: dict[Any, str] = {np.dtype(bool): "i1", dtypes.float0: "i1"}
for _size, _name in _SIGNED.items():
    _element_types[np.dtype(f"i{_size}")] = _name
    _element_types[np.dtype(f"u{_size}")] = "u" + _name
_element_types[np.dtype(np.float16)] = "f16"
_element_types[np.dtype(np.float32)] = "f32"
_element_types[np.dtype(np.float64)] = "f64"
_element_types[np.dtype(np.complex64)] = "complex<f32>"
_element_types[np.dtype(np.complex128)] = "complex<f64>"
# The small types of ml_dtypes: StableHLO spells them as they do, without underscores.
_ML_NAMES = {"bfloat16": "bf16", "int2": "i2", "int4": "i4", "uint2": "ui2", "uint4": "ui4"}


def element_type(dtype: Any) -> str:
    """`f32` for float32, `ui8` for uint8, `f8E4M3FN` for float8_e4m3fn."""
    name = _element_types.get(dtype)
    if name is None:
        name = _element_types[dtype] = _ml_element_type(np.dtype(dtype).name)
    return name


def _ml_element_type(name: str) -> str:
    if name in _ML_NAMES:
        return _ML_NAMES[name]
    if name.startswith(("float8_", "float6_", "float4_")):
        bits, kind = name[len("float"):].split("_", 1)
        return f"f{bits}{kind.upper()}"
    raise TypeError(f"StableHLO has no element type for dtype {name}")


def tensor_type(aval: Any) -> str:
    """`tensor<3x4xf32>`; cached on the aval, which is interned."""
    text = aval.lowered_type if type(aval) is ShapedArray else None
    if text is None:
        if aval is abstract_token:
            return "!stablehlo.token"
        if type(aval.size) is int and not 0 < aval.size < _MANY:
            _check_size(aval)
        dims = "".join([f"{d if type(d) is int else expression_text(d)}x" for d in aval.shape])
        text = aval.lowered_type = f"tensor<{dims}{element_type(aval.dtype)}>"
    return text


def expression_text(dim: SymbolicDim) -> str:
    """A dimension expression as it stands in a line until that is complete (dynamic.py)."""
    return f"{OPEN}{dim}{CLOSE}"


OPEN, CLOSE = "\u27e6", "\u27e7"  # brackets that MLIR's text does not have

_MOST_BYTES = 1 << 56  # more than can be addressed; 128 of them are more than XLA can count
_MANY = _MOST_BYTES >> 4  # elements, whatever their dtype


def _check_size(aval: ShapedArray) -> None:
    """Raise RuntimeError for a type so large that XLA would abort the process.

    As in NumPy, axes of size 0 make no other axis smaller.
    """
    n_bytes = math.prod([d for d in aval.shape if d]) * max(1, np.dtype(aval.dtype).itemsize)
    if n_bytes > _MOST_BYTES:
        raise RuntimeError(
            f"INVALID_ARGUMENT: overflow in static extent product: dimensions={list(aval.shape)}. "
            f"An array of type {aval.str_short()} has more than 2**56 bytes; make an axis smaller.")


def tensor_types(avals: Any) -> str:
    return ", ".join([tensor_type(a) for a in avals])


_scalar_texts = BoundedDict(4096, "texts of numbers")


def scalar_text(value: Any, dtype: Any) -> str:
    """A number as an element of a `dense<...>`: decimal where that is exact, else its bits."""
    key = type(value), value, dtype
    try:
        text: str | None = _scalar_texts.get(key)
    except TypeError:  # an array of rank 0
        return _scalar_text(value, np.dtype(dtype))
    if text is None:
        text = _scalar_text(value, np.dtype(dtype))
        if value and not isinstance(value, (complex, np.complexfloating)):
            # zeros, and complex numbers with one, are equal with both signs
            _scalar_texts[key] = text
    return text


def _scalar_text(value: Any, dtype: np.dtype) -> str:
    if isinstance(value, SymbolicDim):
        return expression_text(value)
    if dtype == dtypes.float0:  # has no values; lowered as booleans
        return "false"
    if dtype == np.bool_:
        return "true" if value else "false"
    if dtypes.issubdtype(dtype, np.integer):
        return str(int(value))
    if dtypes.issubdtype(dtype, np.complexfloating):
        part = np.float32 if dtype == np.complex64 else np.float64
        value = dtype.type(value)
        return f"({scalar_text(value.real, part)}, {scalar_text(value.imag, part)})"
    element = np.asarray(value, dtype)
    short = f"{float(element):.6e}"
    if np.isfinite(float(element)) and np.asarray(float(short), dtype) == element:
        return short
    bits = element.tobytes()[::-1].hex().upper()
    return f"0x{bits}"


def dense_text(array: np.ndarray) -> str:
    """What stands between the brackets of `dense<...>` for a constant array."""
    if array.size == 0:
        return ""
    flat = array.reshape(-1)
    if flat.size == 1 or array.tobytes() == flat[:1].tobytes() * flat.size:
        return scalar_text(flat[0], array.dtype)
    if array.dtype != np.bool_ and array.dtype.itemsize * 8 == dtypes.bit_width(array.dtype):
        data = np.ascontiguousarray(array)
        return f'"0x{data.astype(data.dtype.newbyteorder("<")).tobytes().hex().upper()}"'
    return _nested(array)


def _nested(array: np.ndarray) -> str:
    if array.ndim == 0:
        return scalar_text(array[()], array.dtype)
    return "[" + ", ".join([_nested(a) for a in array]) + "]"


def int_list(values: Any) -> str:
    """`[0, 1]`"""
    return "[" + ", ".join(map(str, values)) + "]"


def i64_array(values: Any) -> str:
    """`array<i64: 0, 1>`, the attribute of most lists of axes."""
    items = ", ".join(map(str, values))
    return f"array<i64: {items}>" if items else "array<i64>"


def layout_text(aval: Any, column_major: bool = False) -> str:
    """`dense<[1, 0]> : tensor<2xindex>`: the axes in the order of memory, the nearest first."""
    n = getattr(aval, "ndim", 0)  # tokens have none
    axes = list(range(n))[::-1]
    if column_major and n > 1:
        axes[:2] = axes[1::-1]
    return f"dense<{int_list(axes) if n else ''}> : tensor<{n}xindex>"


def order_text(layout: Sequence[int]) -> str:
    """A layout, from the axes with the slowest first."""
    n = len(layout)
    return f"dense<{int_list(layout[::-1]) if n else ''}> : tensor<{n}xindex>"


class Attribute(str):
    """An attribute in MLIR's text."""

    __slots__ = ()


def attribute(value: Any, name: str = "an attribute") -> Attribute:
    """An attribute: `76 : ui8` for a NumPy scalar, `3 : i64` for an int, `i8` for a dtype,
    `{a = 1 : i64}` for a dictionary.

    Raises:
      TypeError: there is none for such a value, which the message calls `name`.
    """
    return value if isinstance(value, Attribute) else Attribute(_attribute(value, name))


def _attribute(value: Any, name: str) -> str:
    if isinstance(value, Mapping) and all([isinstance(k, str) for k in value]):
        return "{" + ", ".join([f"{k} = {attribute(v, name)}" for k, v in value.items()]) + "}"
    if isinstance(value, (tuple, list)):
        return f"[{', '.join([attribute(v, name) for v in value])}]"
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    dtype = np.dtype(type(value)) if type(value) in (int, float) else \
        value if isinstance(value, np.dtype) else \
        value.dtype if isinstance(value, (np.ndarray, np.generic)) else None
    if dtype not in dtypes.all_dtypes:
        raise TypeError(f"{name} must be a string, a number, a dtype, a NumPy array, or a list or "
                        f"dictionary of these, got {value!r} of type {type(value).__name__}.")
    if dtype is value:
        return element_type(value)
    if isinstance(value, np.ndarray):
        return f"dense<{dense_text(value)}> : {tensor_type(ShapedArray(value.shape, dtype))}"
    return f"{scalar_text(value, dtype)} : {element_type(dtype)}"


def quoted(text: str) -> str:
    """A string of MLIR."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


_SYMBOL = r'@(?:([A-Za-z_][\w.$-]*)|"((?:[^"\\]|\\.)*)")'


def symbols_in(text: str) -> list[str]:
    """The names of functions and meshes in a program's text."""
    return [m[1] or m[2] for m in re.finditer(_SYMBOL, text)]


def with_symbols(text: str, names: Mapping[str, str]) -> str:
    """A program's text with other names of functions and meshes."""
    def renamed(match: re.Match[str]) -> str:
        name = names.get(match[1] or match[2])
        return match[0] if name is None else \
            f"@{name}" if re.fullmatch(_SYMBOL, f"@{name}") else f"@{quoted(name)}"

    return re.sub(_SYMBOL, renamed, text)


def results_of(name: Callable[[], str], count: int) -> tuple[str, list[str]]:
    """The beginning of the line of an operation with so many results, and their names; `name` gives
    a new one."""
    if not count:
        return "", []
    new = name()
    if count == 1:
        return f"{new} = ", [new]
    return f"{new}:{count} = ", [f"{new}#{i}" for i in range(count)]
