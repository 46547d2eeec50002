"""Values, their types and dtypes, as libraries ask about them."""

from __future__ import annotations

from collections.abc import Callable
from types import MethodType
from typing import Any

import numpy as np

from pyjx import jaxlib_api
from pyjx.core import dtypes
from pyjx.core.array_type import DTypeLike
from pyjx.core.avals import AbstractValue, ShapedArray, aval_makers, is_valid_value
from pyjx.core.explicit import with_dim
from pyjx.core.jaxpr import Var
from pyjx.core.trace import Tracer

Backend = jaxlib_api.Client
DType = np.dtype
_jax_types = list(dtypes.all_dtypes)


def _canonical(x: Any) -> Any:
    """A NumPy array of a dtype that programs take."""
    array = np.asarray(x)
    return array.astype(dtypes.canonicalize_dtype(array.dtype), copy=False)


# What makes a value of a type one of a canonical dtype. Nothing reads what libraries put here:
# arrays have such a dtype from the start, and other types of operands are those that
# `pytype_aval_mappings` knows.
canonicalize_dtype_handlers: dict[type, Callable[[Any], Any]] = {np.ndarray: _canonical}

# The Python types of values that programs take.
array_types = aval_makers.keys()


def valid_jaxtype(x: object) -> bool:
    """Whether programs take the value.

    >>> from pyjx.extend.core import valid_jaxtype
    >>> valid_jaxtype(1.0), valid_jaxtype("text")
    (True, False)
    """
    return is_valid_value(x)


def primal_dtype_to_tangent_dtype(primal_dtype: Any) -> Any:
    """The dtype of the tangent of a value."""
    return dtypes.tangent_dtype(primal_dtype)


def mapped_aval(size: int, axis: int | None, aval: AbstractValue) -> Any:
    """The type of one example of a batch of `size` along `axis`."""
    return aval.dec_rank(size, axis)


def unmapped_aval(size: int, axis: int | None, aval: Any, explicit_mesh_axis: Any = None) -> Any:
    """The type of a batch of `size` examples along `axis`, which lies along an axis of a mesh."""
    if explicit_mesh_axis is None or axis is None:
        return aval.inc_rank(size, axis)
    return with_dim(aval, axis, size, explicit_mesh_axis)


def gensym(suffix: str = "") -> Callable[[Any], Var]:
    """A maker of variables."""
    return Var


def supports_inf(of: Any) -> bool:
    """Whether a dtype of floating-point numbers has infinities.

    >>> supports_inf("float32"), supports_inf(dtypes.dtype("float8_e4m3fn"))
    (True, False)
    """
    name = np.dtype(of).name
    return not (name.endswith(("fn", "fnuz")) or name.startswith(("float4", "float6")))


# Scalars of programs are Python's and NumPy's own here. No value is one of the classes below:
# libraries ask whether one is, and register conversions for them.


class TypedNdArray:
    """A NumPy array with the type that it has in a program. None is made here: pickles of JAX,
    which hold gradients of integers so, get the array itself."""

    def __new__(cls, val: object = None, weak_type: bool = False) -> Any:
        return np.asarray(val)


LiteralArray = TypedNdArray  # its name in JAX 0.7


class _Typed:
    """A number with a dtype."""

    dtype: np.dtype[Any]

    def __new__(cls, value: Any, dtype: DTypeLike | None) -> Any:
        self = super().__new__(cls, value)  # type: ignore[call-arg]
        self.dtype = np.dtype(dtype)
        return self


class TypedInt(_Typed, int):
    """A Python integer with a dtype.

    >>> TypedInt(3, "int8") + 1, TypedInt(3, "int8").dtype
    (4, dtype('int8'))
    """


class TypedFloat(_Typed, float):
    """A Python float with a dtype."""


class TypedComplex(_Typed, complex):
    """A Python complex number with a dtype."""


# -- what values have by their types --------------------------------------------------------------

# Tracers get a name when a class of a type that has it is made: what nobody asks for is free.


class _Member:
    """What the class of a type has for its values."""

    def __set_name__(self, owner: type, name: str) -> None:
        _give_tracers(name)


class aval_method(_Member):
    """A method that values of a type have, `fun(value, *args)`: an attribute of the type's class.

    >>> import pyjx as jax
    >>> from pyjx.experimental import hijax
    >>> class Celsius(hijax.AbstractValue):
    ...     scaled = hijax.aval_method(lambda self, by: f"{by} times")
    ...
    >>> jax.core.Tracer(None, Celsius()).scaled(3)
    '3 times'
    """

    def __init__(self, fun: Callable[..., Any]) -> None:
        self.fun = fun


class aval_property(_Member):
    """A property that values of a type have, `fget(value)`: an attribute of the type's class."""

    def __init__(self, fget: Callable[..., Any]) -> None:
        self.fget = fget


class _OfType:
    """What a tracer has by a name: a member of its type or, without one, what tracers had."""

    __slots__ = ("_had", "_name")

    def __init__(self, name: str, had: Any) -> None:
        self._name = name
        self._had = had

    def __get__(self, tracer: Any, cls: type) -> Any:
        if tracer is not None and type(tracer.aval) is not ShapedArray:
            own = getattr(type(tracer.aval), self._name, None)
            if type(own) is aval_method:
                return MethodType(own.fun, tracer)
            if type(own) is aval_property:
                return own.fget(tracer)
        if self._had is None:
            if tracer is not None and tracer.aval.is_high:
                return getattr(tracer.aval, self._name)
            raise AttributeError(f"{cls.__name__!r} object has no attribute {self._name!r}")
        return self._had.__get__(tracer, cls)


def _give_tracers(name: str) -> None:
    """Let tracers ask their type for a name, unless it is what they themselves are made of."""
    if name in Tracer.__slots__ or name.startswith("__"):
        return
    getattr(Tracer, name, None)  # what is put in its place when first used is so now
    had = vars(Tracer).get(name)
    if type(had) is not _OfType:
        setattr(Tracer, name, _OfType(name, had))


def let_tracers_ask(aval: AbstractValue) -> None:
    """Let tracers ask types of a class, of which this is the first, for what these have, for names
    that they forward, and for operators. As Python reads attributes more slowly of a class that has
    a hook, they do once values are used."""
    kind = type(aval)
    names = {name for cls in kind.__mro__ if not cls.__module__.startswith("pyjx.")
             for name in vars(cls)}
    for name in sorted(names.union(getattr(aval, "__dict__", ()))):
        if not hasattr(Tracer, name):
            _give_tracers(name)
    forwards = getattr(kind, "__getattr__", None)
    if forwards is not None and forwards.__module__ != "pyjx.compat.hi_types" and not hasattr(
            Tracer, "__getattr__"):
        Tracer.__getattr__ = _asked  # type: ignore[attr-defined]
    for name in _OPERATORS:
        if hasattr(kind, f"_{name}"):
            had = vars(Tracer).get(f"__{name}__") or getattr(Tracer, f"__{name}__", None)
            if type(had) is not _Operator:
                setattr(Tracer, f"__{name}__", _Operator(name, had))


_OPERATORS = (
    "abs", "add", "and", "bool", "complex", "contains", "divmod", "eq", "float", "floordiv",
    "ge", "getitem", "gt", "index", "int", "invert", "iter", "le", "len", "lshift", "lt",
    "matmul", "mod", "mul", "ne", "neg", "or", "pos", "pow", "radd", "rand", "rdivmod",
    "rfloordiv", "rlshift", "rmatmul", "rmod", "rmul", "ror", "round", "rpow", "rrshift",
    "rshift", "rsub", "rtruediv", "rxor", "setitem", "sub", "truediv", "xor",
)


def _asked(tracer: Any, name: str) -> Any:
    """What the type of a value forwards for a name that tracers have not."""
    if not name.startswith("__") and name not in Tracer.__slots__ and (
            forward := getattr(type(tracer.aval), "__getattr__", None)) is not None:
        found = forward(tracer.aval, name)
        if type(found) is aval_property:
            return found.fget(tracer)
        return MethodType(found.fun, tracer) if type(found) is aval_method else found
    raise AttributeError(f"{type(tracer).__name__!r} object has no attribute {name!r}")


class _Operator(_OfType):
    """An operator of tracers: that of their type or, where it is one of arrays, of arrays."""

    __slots__ = ()

    def __get__(self, tracer: Any, cls: type) -> Any:
        if tracer is not None and tracer.aval.is_high:
            own = getattr(type(tracer.aval), f"_{self._name}", None)
            if own is not None:
                return MethodType(MethodType(own, tracer.aval), tracer)
        return self._had.__get__(tracer, cls)
