"""Abstract values: what a tracer knows of an array before it exists.

Avals are interned: two avals with the same shape, dtype and weak type are one object, so equality
is identity, hashing is free and every cache of pyjx can be keyed by avals.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pyjx.core import dtypes

Shape = tuple[int, ...]


def canonical_shape(shape: Any) -> Shape:
    """The tuple of Python ints that `shape` (an int or a sequence of ints) stands for."""
    if isinstance(shape, (int, np.integer)):
        shape = (shape,)
    try:
        return tuple([d if type(d) is int else _dim(d) for d in shape])
    except (AttributeError, TypeError):
        raise TypeError(
            "Shapes must be 1D sequences of concrete values of integer type, "
            f"got {shape!r}.{_traced_dimension(shape)}"
        ) from None


def _traced_dimension(shape: Any) -> str:
    """A hint for shapes that are computed from traced values."""
    for d in shape if isinstance(shape, (tuple, list)) else (shape,):
        if hasattr(d, "_origin_msg"):
            return (
                "\nIf using `jit`, try using `static_argnums` or applying `jit` to smaller "
                f"subfunctions.{d._origin_msg()}"
            )
    return ""


def _dim(d: Any) -> int:
    return int(d.__index__())


class AbstractValue:
    """Base of all avals."""

    __slots__ = ()


class AbstractToken(AbstractValue):
    """The type of a token, which orders side effects. There is one instance, `abstract_token`."""

    __slots__ = ()

    def str_short(self, short_dtypes: bool = False) -> str:
        return "Tok"

    def to_tangent_aval(self) -> AbstractToken:
        return self

    def __repr__(self) -> str:
        return "Token()"


abstract_token = AbstractToken()

_interned: dict[Any, ShapedArray] = {}


class ShapedArray(AbstractValue):
    """Shape, dtype and weak type of an array.

    >>> import numpy as np
    >>> ShapedArray((2, 3), np.float32) is ShapedArray((2, 3), "float32")
    True
    >>> ShapedArray((2, 3), np.float32)
    ShapedArray(float32[2,3])
    """

    __slots__ = ("__weakref__", "_tangent", "dtype", "lowered_type", "ndim", "shape", "size",
                 "weak_type")

    shape: Shape
    dtype: Any
    weak_type: bool
    ndim: int
    size: int
    lowered_type: str | None  # the StableHLO spelling, filled in by the lowering
    _tangent: ShapedArray | None

    def __new__(cls, shape: Sequence[int], dtype: Any, weak_type: bool = False, **_: Any
                ) -> ShapedArray:
        key: Any = (shape, dtype, weak_type)
        try:
            return _interned[key]
        except KeyError:
            pass
        except TypeError:  # a list as the shape
            key = None
        shape = canonical_shape(shape)
        if not dtypes.is_extended(dtype):
            dtype = np.dtype(dtype)
        canonical_key = (shape, dtype, bool(weak_type))
        self = _interned.get(canonical_key)
        if self is None:
            self = object.__new__(cls)
            self.shape = shape
            self.dtype = dtype
            self.weak_type = bool(weak_type)
            self.ndim = len(shape)
            self.size = math.prod(shape)
            self.lowered_type = None
            self._tangent = None
            self = _interned.setdefault(canonical_key, self)
        if key is not None:
            _interned[key] = self
        return self

    def __reduce__(self) -> Any:
        return ShapedArray, (self.shape, self.dtype, self.weak_type)

    def __copy__(self) -> ShapedArray:
        return self

    def __deepcopy__(self, memo: Any) -> ShapedArray:
        return self

    def update(self, shape: Any = None, dtype: Any = None, weak_type: bool | None = None
               ) -> ShapedArray:
        """The aval with some of its fields replaced."""
        return ShapedArray(
            self.shape if shape is None else shape,
            self.dtype if dtype is None else dtype,
            self.weak_type if weak_type is None else weak_type,
        )

    def strip_weak_type(self) -> ShapedArray:
        return ShapedArray(self.shape, self.dtype) if self.weak_type else self

    def to_tangent_aval(self) -> ShapedArray:
        """The aval of a tangent of such a value: float0 where the dtype has no derivative."""
        tangent = self._tangent
        if tangent is None:
            dtype = dtypes.tangent_dtype(self.dtype)
            weak = self.weak_type and dtype == self.dtype
            tangent = self._tangent = ShapedArray(self.shape, dtype, weak)
        return tangent

    to_cotangent_aval = to_tangent_aval

    def same_type(self, other: Any) -> bool:
        """Whether the two are equal but for the weak type, which is a hint."""
        return self is other or (
            type(other) is ShapedArray and self.shape == other.shape and self.dtype == other.dtype)

    def str_short(self, short_dtypes: bool = False) -> str:
        """`float32[2,3]`, or `f32[2,3]` with `short_dtypes`."""
        name = dtypes.short_dtype_name(self.dtype) if short_dtypes else dtypes.name(self.dtype)
        return f"{name}[{','.join(map(str, self.shape))}]"

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapedArray({self.str_short()}{weak})"

    __str__ = str_short


# Makers of avals by the Python type of the value; the runtime adds its array class.
aval_makers: dict[type, Callable[[Any], ShapedArray]] = {}


def get_aval(x: Any) -> ShapedArray:
    """The aval of an array, a tracer, a NumPy array or scalar, or a Python scalar.

    Raises:
      TypeError: `x` is not a value that pyjx computes with.

    >>> get_aval(1.0)
    ShapedArray(float32[], weak_type=True)
    """
    maker = aval_makers.get(type(x))
    if maker is not None:
        return maker(x)
    aval = getattr(x, "aval", None)
    if isinstance(aval, AbstractValue):
        return aval  # type: ignore[return-value]
    if hasattr(x, "mask") and hasattr(x, "filled"):
        raise ValueError(
            "numpy masked arrays are not supported as direct inputs to JAX functions. Use "
            "arr.filled() to convert the value to a standard numpy array."
        )
    for cls in type(x).__mro__:
        maker = aval_makers.get(cls)
        if maker is not None:
            return maker(x)
    raise TypeError(f"Value {x!r} with type {type(x)} is not a valid JAX type")


def is_valid_value(x: Any) -> bool:
    """Whether `get_aval(x)` would succeed."""
    return (
        type(x) in aval_makers
        or isinstance(getattr(x, "aval", None), AbstractValue)
        or any(cls in aval_makers for cls in type(x).__mro__)
    )


def _of_numpy(x: Any) -> ShapedArray:
    dtype = dtypes.canonicalize_dtype(x.dtype)
    if dtype not in _array_dtypes:
        dtypes.check_valid_dtype(dtype)
    return ShapedArray(x.shape, dtype)


_array_dtypes = dtypes.all_dtypes


def _of_python_scalar(python_type: type) -> Callable[[Any], ShapedArray]:
    def maker(x: Any) -> ShapedArray:
        return ShapedArray((), dtypes.python_scalar_dtype(python_type), python_type is not bool)

    return maker


aval_makers[np.ndarray] = _of_numpy
for _scalar_type in dtypes.numpy_scalar_types:
    aval_makers[_scalar_type] = _of_numpy
for _python_type in (bool, int, float, complex):
    aval_makers[_python_type] = _of_python_scalar(_python_type)
