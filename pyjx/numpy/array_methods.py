"""Operators and NumPy-like methods of arrays and tracers.

An operator of an array is a C++ callable that returns NotImplemented beside objects that are no
arrays; the same operator of a tracer is its Python body. Methods that are functions of this
package are looked up when they are first used, and then stay as attributes of the class.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, NoReturn

import numpy as np

from pyjx import lax as ops
from pyjx import numpy as jnp
from pyjx.core import dtypes
from pyjx.core.array_type import ArrayLike, DTypeLike
from pyjx.core.avals import AbstractRef, ShapedArray, aval_makers, canonical_shape
from pyjx.core.frames import is_internal
from pyjx.core.layouts import DeviceLike, ShardingLike
from pyjx.core.references import METHODS, Ref
from pyjx.core.trace import Tracer, eager_trace, state
from pyjx.core.value_texts import SYMBOLS, in_short, is_like_array, operator_of
from pyjx.engine.axes import transpose
from pyjx.errors import LOOPS, maker_of
from pyjx.guards import guard, guard_methods
from pyjx.numpy import creation, indexing, iteration, powers, ufuncs
from pyjx.numpy import monoids as monoids  # gives universal functions their reductions
from pyjx.numpy.manipulation import inferred_shape, of_new_shape, with_last_two_exchanged
from pyjx.numpy.operands import as_bool
from pyjx.numpy.patterns import FULL, INTEGER
from pyjx.numpy.promotion import convert, takes_part
from pyjx.runtime.array import Array, ArrayImpl, no_rows
from pyjx.runtime.device_put import device_put
from pyjx.runtime.operations import body_of, op_jit

_Body = Callable[..., Any]


# -- operators -------------------------------------------------------------------------------------


# Python would repeat a list as often as a scalar says, and find arrays and lists unequal. Classes
# derived from these may have operators of their own.
_CONTAINERS = (list, tuple, set, dict)

def _leave(name: str, x: Array, other: object, reflected: bool = False) -> Any:
    """Leave an operator of an array to the other operand, which is none of them.

    Raises:
      TypeError: it is a container or a text, which has an operator of another meaning or none.
    """
    repeats = name in ("__mul__", "__rmul__")
    count = not x.aval.ndim and dtypes.issubdtype(x.aval.dtype, np.integer)
    text = type(other) is str and not (repeats and count) and name not in ("__eq__", "__ne__")
    if type(other) not in _CONTAINERS and not text:
        return NotImplemented
    kinds = [type(x).__name__, type(other).__name__]
    said = (f"unsupported operand type(s) for {SYMBOLS[operator_of(name)]}: "
            f"{kinds[reflected]!r} and {kinds[not reflected]!r}")
    if text and name == "__radd__":
        said = f'can only concatenate str (not "{kinds[0]}") to str'
    further = ("; to repeat it, use Python's int, as a static argument is"
               ) * (repeats and count and type(other) in (list, tuple))
    sides = ("y", "x") if reflected else ("x", "y")
    raise TypeError(f"{said}; {_leaving_cure(x, other, name, *sides)}{further}")


def _leaving_cure(x: Array, other: Any, name: str, left: str, right: str) -> str:
    """What serves in the place of an operator of an array `x` and a container or a text `y`."""
    if type(other) is not str:
        done = f"divmod({left}, {right})" if "divmod" in name else (
            f"{left} {SYMBOLS[operator_of(name)]} {right}")
        mapped = f"jax.tree.map(lambda y: {done}, y) computes with each leaf of a tree"
        if not is_like_array(other):
            return mapped
        made = (f"make it an array with jnp.asarray{'(list(y))' * (type(other) is set)}"
                + ", if it is the carry where the loop starts" * any([
                    isinstance(y, Tracer) and maker_of(y) in LOOPS for y in other]))
        return f"{made}, or {mapped}" if any([hasattr(y, "shape") for y in other]) else made
    frame = sys._getframe(2)
    while frame.f_back is not None and is_internal(frame.f_code.co_filename):
        frame = frame.f_back
    with suppress(ValueError):
        float(other)
        return "of a text float(text) is a number"
    if frame.f_locals.get(other) is other or "add" not in name:
        repeated = ": it is repeated by an integer, as int(x) is one" * (
            "mul" in name and not isinstance(x, Tracer))
        return (f"the text {in_short(other)} is no number{repeated}. Where a dictionary is "
                "unpacked, or looped over, its keys come: d.values() are its values")
    return ("a traced value has no text: jax.debug.print('{x}', x=x) shows it as the program runs"
            if isinstance(x, Tracer) else "the text of a value is str(x), as in f'{x}'")


def _body(name: str, function: _Body, reflected: bool) -> _Body:
    def operator(self: Array, other: object) -> Any:
        if type(other) not in aval_makers and not takes_part(other):
            return _leave(name, self, other, reflected)
        return function(other, self) if reflected else function(self, other)

    operator.__name__ = name
    operator.__qualname__ = f"Array.{name}"
    return operator


def _matmul(x: ArrayLike, y: ArrayLike) -> Any:
    return jnp.matmul(x, y)


_BINARY: dict[str, _Body] = {
    "add": body_of(ufuncs.add),
    "sub": body_of(ufuncs.subtract),
    "mul": body_of(ufuncs.multiply),
    "truediv": body_of(ufuncs.true_divide),
    "floordiv": body_of(ufuncs.floor_divide),
    "mod": body_of(ufuncs.remainder),
    "divmod": body_of(ufuncs.divmod),
    "matmul": _matmul,
    "and": body_of(ufuncs.bitwise_and),
    "or": body_of(ufuncs.bitwise_or),
    "xor": body_of(ufuncs.bitwise_xor),
    "lshift": body_of(ufuncs.left_shift),
    "rshift": body_of(ufuncs.right_shift),
}

_COMPARISONS: dict[str, _Body] = {
    "eq": body_of(ufuncs.equal),
    "ne": body_of(ufuncs.not_equal),
    "lt": body_of(ufuncs.less),
    "le": body_of(ufuncs.less_equal),
    "gt": body_of(ufuncs.greater),
    "ge": body_of(ufuncs.greater_equal),
}

_UNARY: dict[str, Any] = {
    "neg": ufuncs.negative.__call__,  # the C++ callable, which takes the array as methods do
    "abs": ufuncs.absolute,
    "invert": ufuncs.invert,
}


# The special methods, by the operators that they are.
OPERATORS: dict[str, str] = {
    **{f"__{name}__": name for name in (*_UNARY, *_COMPARISONS)},
    **{f"__{side}{name}__": name for name in (*_BINARY, "pow") for side in ("", "r")},
}


def _operator(symbol: str, name: str) -> tuple[Any, Any]:
    """A special method of tracers, and of arrays."""
    if name in _UNARY:
        return _UNARY[name].__wrapped__, _UNARY[name]
    reflected = symbol != f"__{name}__"
    if name == "pow":  # an exponent that is a Python int is part of the program
        body = _body(symbol, powers.power, reflected)
        return body, body
    body = _body(symbol, {**_BINARY, **_COMPARISONS}[name], reflected)
    return body, op_jit(body)


def _install_operators() -> None:
    for symbol, name in OPERATORS.items():
        of_tracers, of_arrays = _operator(symbol, name)
        # Libraries take them from the class that users name: `jax.Array.__add__` is a function.
        for cls, method in ((Tracer, of_tracers), (ArrayImpl, of_arrays), (Array, of_arrays)):
            setattr(cls, symbol, method)
    # Classes that define __eq__ lose their hash.
    ArrayImpl.__hash__ = None  # type: ignore[assignment]


# -- indexing --------------------------------------------------------------------------------------


class _Rows(dict[int, Any]):
    """The programs of `x[i]` for an integer, by rank."""

    def __missing__(self, rank: int) -> Any:
        found = self[rank] = indexing.reader((INTEGER, *[FULL] * (rank - 1)))
        return found


_rows = _Rows()


def _array_getitem(self: Array, index: object, /) -> Any:
    if type(index) is int and state.dynamic is eager_trace:
        shape = self.aval.shape
        if shape:
            n = shape[0]
            row = index if index >= 0 else index + n
            if 0 <= row < n < 2147483648:
                return _rows[len(shape)](self, row)
    return indexing.getitem(self, index)


def _tracer_getitem(self: Any, index: object, /) -> Any:
    if type(self.aval) is AbstractRef:
        return Ref.__getitem__(self, index)
    return indexing.getitem(self, index)


def _tracer_setitem(self: Any, index: object, x: ArrayLike, /) -> None:
    if type(self.aval) is not AbstractRef:
        ArrayImpl.__setitem__(self, index, x)
    Ref.__setitem__(self, index, x)


class _OfReference:
    """A method of tracers of references, which arrays have not."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, tracer: Any, cls: type) -> Any:
        if tracer is None or type(tracer.aval) is not AbstractRef:
            raise AttributeError(f"{cls.__name__!r} object has no attribute {self.name!r}",
                                 name=self.name, obj=tracer)
        return getattr(Ref, self.name).__get__(tracer)


def _places_of_rows(self: Any) -> range:
    self._check_alive()
    if not self.aval.shape:
        raise no_rows(self.aval)
    return range(self.aval.shape[0])


def _tracer_iter(self: Any) -> Iterator[Any]:
    return map(self.__getitem__, _places_of_rows(self))


def _tracer_reversed(self: Any) -> Iterator[Any]:
    return map(self.__getitem__, reversed(_places_of_rows(self)))


def _contains(self: Array, other: Any) -> bool:
    if self.ndim != 1:
        raise ValueError("Array.__contains__: search array must be one-dimensional, got arr.shape="
                         f"{self.shape}. Of any it is jnp.any(x == value).")
    if not takes_part(other):
        raise TypeError(f"Array.__contains__: unsupported operand type {type(other)}.")
    if np.shape(other):
        raise ValueError("Array.__contains__: query value must be a scalar, got query.shape="
                         f"{np.shape(other)}")
    return bool((self == other).any())


# -- methods and properties ------------------------------------------------------------------------


def _at(self: Any) -> Any:
    """Index it and call a method to read or update elements: `x.at[0].set(1)`."""
    if type(self.aval) is AbstractRef:
        return Ref.at.__get__(self)
    return indexing.IndexUpdateHelper(self)


def _T(self: Any) -> Any:
    """The array with its axes in reverse order."""
    if type(self.aval) is AbstractRef:
        return Ref.T.__get__(self)
    return transpose(self, range(self.aval.ndim - 1, -1, -1))


def _mT(self: Array) -> Any:
    """The array with its last two axes swapped."""
    return with_last_two_exchanged(self)


def _check_numbers(self: Array, name: str) -> None:
    if dtypes.is_extended(self.aval.dtype):
        raise TypeError(f"{name}: arrays of dtype {dtypes.name(self.aval.dtype)} hold no numbers; "
                        "of random keys, jax.random.key_data(keys) gives the ones behind them.")


def _real(self: Array) -> Any:
    """The real part."""
    _check_numbers(self, "real")
    return ops.real(self) if self.aval.dtype in dtypes.complex_dtypes else self


def _imag(self: Array) -> Any:
    """The imaginary part."""
    _check_numbers(self, "imag")
    return ufuncs.imag(self)


def _flat(self: Array) -> Any:
    """Not there: arrays have no iterator over their elements; use `flatten()`."""
    raise NotImplementedError("JAX Arrays do not implement the arr.flat property: consider "
                              "arr.flatten() instead.")


def _nbytes(self: Array) -> int:
    """Bytes of the elements."""
    return int(self.aval.size * self.aval.dtype.itemsize)


def _itemsize(self: Array) -> int:
    """Bytes of one element."""
    return int(self.aval.dtype.itemsize)


def _astype(self: Array, dtype: Any, copy: bool = False, device: DeviceLike = None) -> Any:
    """The array with another dtype; see `jax.numpy.astype`."""
    dtype = dtypes.default_float_dtype() if dtype is None else dtype
    return creation.cast(self, dtype, "astype", copy, device)


def _tracer_reshape(self: Any, *args: Any, order: str = "C", out_sharding: ShardingLike = None
                   ) -> Any:
    """The elements in another shape, given as a tuple or as several ints; one may be -1."""
    if type(self.aval) is AbstractRef and order == "C" and out_sharding is None:
        return Ref.reshape(self, *args)
    shape = args[0] if len(args) == 1 else args
    if order == "C" and out_sharding is None:
        return ops.reshape(self, inferred_shape(self.aval.shape, canonical_shape(shape)))
    return jnp.reshape(self, shape, order, out_sharding=out_sharding)


_compiled_reshape = op_jit(_tracer_reshape, static_argnums=tuple(range(1, 33)),
                           static_argnames=("order", "out_sharding"))


def _array_reshape(self: Array, *args: Any, **kwargs: Any) -> Any:
    """The elements in another shape, given as a tuple or as several ints; one may be -1."""
    if not kwargs:
        same = of_new_shape(self, args[0] if len(args) == 1 else args)
        if same is not None:
            return same
    try:
        return _compiled_reshape(self, *args, **kwargs)
    except ValueError:  # from C++, for a list as shape, and for traced sizes
        several = len(args) != 1 or not getattr(args[0], "ndim", True)
        shape = canonical_shape(args if several else args[0])
    return _compiled_reshape(self, shape, **kwargs)


def _transpose(self: Any, *args: Any) -> Any:
    """The array with its axes in another order, given as a tuple or as several ints."""
    if type(self.aval) is AbstractRef:
        return Ref.transpose(self, *args)
    if not args or args == (None,):
        return _T(self)
    axes = args[0] if len(args) == 1 and not isinstance(args[0], (int, np.integer)) else args
    return jnp.transpose(self, axes)


def _flatten(self: Array, order: str = "C", *, out_sharding: ShardingLike = None) -> Any:
    """The elements as an array of rank 1."""
    if order == "C" and out_sharding is None:
        return _positive(self) if self.aval.ndim == 1 else ops.reshape(self, (self.aval.size,))
    return jnp.ravel(self, order, out_sharding=out_sharding)


def _compress(self: Array, condition: ArrayLike, axis: int | None = None, *, out: None = None,
              size: int | None = None, fill_value: ArrayLike = 0) -> Any:
    """The parts along an axis where the condition holds; see `jax.numpy.compress`."""
    return jnp.compress(condition, self, axis, out=out, size=size, fill_value=fill_value)


def _round(self: Array, ndigits: int | None = None) -> Any:
    if isinstance(self, Tracer):
        self._check_alive()
    rounded = jnp.round(self, 0 if ndigits is None else ndigits)
    return _astype(rounded, int) if ndigits is None else rounded


def _view(self: Array, dtype: DTypeLike | None = None, type: object = None) -> Any:
    """The same bits as another dtype; the last axis changes its size if the width differs.

    Raises:
      ValueError: the last axis does not hold whole elements of the dtype.
    """
    if type is not None:
        shape = f" A shape is for x.reshape({dtype}, {type})." * isinstance(type, int)
        raise NotImplementedError(f"`type` argument of array.view() is not supported.{shape}")
    _check_numbers(self, "view")
    old = self.aval.dtype
    if dtype is None:
        return self
    new = dtypes.check_and_canonicalize_user_dtype(dtype, "view")
    if new == old:
        return self
    if not self.aval.ndim and old.itemsize != new.itemsize:
        raise ValueError("view() of a 0d array is only supported if the itemsize is unchanged.")
    x = self
    if old == np.bool_:
        x = _astype(x, np.uint8)
        old = np.dtype(np.uint8)
    if new == np.bool_:
        return as_bool(_view(x, np.uint8))
    if old in dtypes.complex_dtypes:
        part = dtypes.to_floating_dtype(old)
        x = ops.concatenate([ops.expand_dims(p, (p.ndim,)) for p in (ops.real(x), ops.imag(x))],
                            x.ndim)
        x = ops.reshape(x, (*x.shape[:-2], 2 * x.shape[-2]) if x.ndim > 1 else (2,))
        return _view(x, new) if part != new else convert(x, new)
    if new in dtypes.complex_dtypes:
        part = dtypes.to_floating_dtype(new)
        x = _view(x, part)
        _check_divides(x, 2, new)
        pairs = ops.reshape(x, (*x.shape[:-1], x.shape[-1] // 2, 2))
        return convert(ops.complex(pairs[..., 0], pairs[..., 1]), new)
    return _bitcast(x, old, new)


def _check_divides(x: Array, ratio: int, dtype: DTypeLike) -> None:
    if x.shape[-1] % ratio:
        raise ValueError("When changing to a larger dtype, its size must be a divisor of the total "
                         f"size in bytes of the last axis of the array; got shape {x.shape} and "
                         f"dtype {dtypes.name(dtype)}.")


def _bitcast(x: Array, old: np.dtype, new: np.dtype) -> Any:
    narrow, wide = dtypes.itemsize_bits(old), dtypes.itemsize_bits(new)
    if narrow == wide:
        return ops.bitcast_convert_type(x, new)
    if narrow < wide:
        _check_divides(x, wide // narrow, new)
        ratio = wide // narrow
        x = ops.reshape(x, (*x.shape[:-1], x.shape[-1] // ratio, ratio))
        return ops.bitcast_convert_type(x, new)
    x = ops.bitcast_convert_type(x, new)
    return ops.reshape(x, (*x.shape[:-2], x.shape[-2] * x.shape[-1]))


def _byteswap(self: Array) -> Any:
    """The array with the bytes of each element in reverse order."""
    _check_numbers(self, "byteswap")
    dtype = self.aval.dtype
    size = dtype.itemsize
    if dtype in dtypes.complex_dtypes:
        return ops.complex(_byteswap(ops.real(self)), _byteswap(ops.imag(self)))
    if size == 1:
        return self
    swapped = ops.rev(ops.bitcast_convert_type(self, np.uint8), (self.aval.ndim,))
    return ops.bitcast_convert_type(swapped, dtype)


def _item(self: Any, *args: Any) -> Any:
    """One element as a Python scalar."""
    value = np.asarray(self._concrete("item"))
    if not args and value.size != 1:
        raise ValueError("can only convert an array of size 1 to a Python scalar")
    return value.item(*args)


def _to_device(self: Array, device: DeviceLike, *, stream: None = None) -> Any:
    """The array on a Device or Sharding."""
    if stream is not None:
        raise NotImplementedError("stream argument of array.to_device()")
    return device_put(self, device)


def _copy(self: Array) -> Any:
    """The array in new buffers."""
    return creation.array(self, copy=True)


def _array_namespace(self: Array, *, api_version: str | None = None) -> Any:
    """The namespace of functions for arrays, by the Python array API standard."""
    available = jnp.__array_api_version__
    if api_version is not None and api_version != available:
        raise ValueError(f"api_version={api_version!r} is not available; available versions are: "
                         f"{[available]}")
    return jnp


def _array_module(self: Array, types: Sequence[type]) -> Any:
    """`jax.numpy`, if it can handle all `types` (NEP 37)."""
    if all(issubclass(t, (ArrayImpl, Tracer, np.ndarray)) or t is Array for t in types):
        return jnp
    return NotImplemented


def _of_value(name: str, getter: bool) -> Any:
    """What only an array has, so that for a tracer its value must be known."""

    def attribute(self: Any, *args: Any, **kwargs: Any) -> Any:
        found = getattr(creation.asarray(self._concrete(name)), name)
        return found if getter else found(*args, **kwargs)

    attribute.__name__ = name
    attribute.__qualname__ = f"Tracer.{name}"
    return property(attribute) if getter else attribute


def _unavailable(name: str, what: str, cure: str = "") -> Any:
    def attribute(self: Array) -> Any:
        raise AttributeError(f"The '{name}' {what} is not available on traced array with shape "
                             f"{self.aval.str_short()}.{cure}", name="")  # and no guess of Python's

    return property(attribute)


def _positive(self: Array) -> Any:
    """The array, in new buffers outside of programs, which may be donated without it."""
    return _copy(self) if state.dynamic is eager_trace and type(self) is ArrayImpl else self


class _Forwarded:
    """A method that is the function of this package by the same, or another, name.

    The first use puts the function itself in its place.
    """

    def __init__(self, name: str, cls: type, function: str) -> None:
        self.name = name
        self.cls = cls
        self.function = function

    def __get__(self, obj: Any, owner: object = None) -> Any:
        function = getattr(jnp, self.function)
        if self.cls is Tracer:
            function = guard(getattr(function, "__wrapped__", function))
        setattr(self.cls, self.name, function)
        return function if obj is None else function.__get__(obj, owner)


_METHODS: dict[str, _Body] = {
    "astype": _astype, "transpose": _transpose, "flatten": _flatten, "compress": _compress,
    "view": _view, "byteswap": _byteswap, "to_device": _to_device, "clone": _copy, "copy": _copy,
    "__round__": _round, "__contains__": _contains, "__pos__": _positive,
    "__hex__": lambda self: hex(self.__index__()), "__oct__": lambda self: oct(self.__index__()),
    "__array_namespace__": _array_namespace, "__array_module__": _array_module,
}

# All that NumPy's arrays have and is a function here, but for what changes the array; and one that
# they had.
FORWARDED: tuple[str, ...] = ("ptp", *[
    name for name in dir(jnp)
    if callable(getattr(np.ndarray, name, None)) and not name.startswith("_")
    and name not in _METHODS and name not in ("put", "reshape", "resize")])

_PROPERTIES: dict[str, _Body] = {
    "at": _at, "T": _T, "mT": _mT, "real": _real, "imag": _imag, "flat": _flat,
}


def _set(cls: type, name: str, method: _Body) -> None:
    method.__name__ = name
    method.__qualname__ = f"Array.{name}"
    setattr(cls, name, method)


def install() -> None:
    """Give arrays and tracers their operators and methods. Calling it again changes nothing."""
    if "at" in vars(Tracer):
        return
    _install_operators()
    for cls in (ArrayImpl, Tracer):
        for name in FORWARDED:
            setattr(cls, name, _Forwarded(name, cls, name))
        for name, method in _METHODS.items():
            _set(cls, name, method)
        for name, getter in _PROPERTIES.items():
            setattr(cls, name, property(getter))
    _set(ArrayImpl, "reshape", _array_reshape)
    _set(ArrayImpl, "__iter__", iteration.rows)
    _set(ArrayImpl, "__reversed__", iteration.backwards)
    _set(Tracer, "reshape", _tracer_reshape)
    for cls in (ArrayImpl, Array):
        _set(cls, "__getitem__", _array_getitem)
    _set(Tracer, "__getitem__", _tracer_getitem)
    _set(Tracer, "__iter__", _tracer_iter)
    _set(Tracer, "__reversed__", _tracer_reversed)
    _set(Tracer, "item", _item)
    for name in METHODS:
        if name not in vars(Tracer):
            setattr(Tracer, name, _OfReference(name))
    for name, value in (("__setitem__", _tracer_setitem), ("__delitem__", ArrayImpl.__delitem__),
                        ("nbytes", property(_nbytes)), ("itemsize", property(_itemsize))):
        setattr(Tracer, name, value)
    for name in ("addressable_data", "delete", "devices", "is_deleted", "on_device_size_in_bytes",
                 "unsafe_buffer_pointer"):
        setattr(Tracer, name, _of_value(name, getter=False))
    for name in ("addressable_shards", "committed", "global_shards", "is_fully_addressable",
                 "is_fully_replicated", "traceback"):
        setattr(Tracer, name, _of_value(name, getter=True))
    for name in ("block_until_ready", "copy_to_host_async"):
        setattr(Tracer, name, _unavailable(
            name, "method", " Leave it out: call it on what the traced function returns."))
    for name, cure in (("device", " Ask what the traced function returns."),
                       ("dimension_as_value", ""),
                       ("memory_space", " Use `jax.typeof(x).memory_space` instead.")):
        setattr(Tracer, name, _unavailable(name, "attribute", cure))
    Tracer.sharding = _unavailable(  # type: ignore[assignment, method-assign]
        "sharding", "attribute", " To query sharding information on tracers, use `jax.typeof(x)`; "
        "along Auto axes jax.debug.inspect_array_sharding(x, callback=print) tells it.")
    _show_attributes(Array)
    for cls in (ArrayImpl, Tracer, ShapedArray, _NoMember):
        guard_methods(cls)
    for name in dir(ArrayImpl):
        if not name.startswith("_") and name not in _OF_REFERENCES and name not in vars(Ref):
            setattr(Ref, name, _NoMember(name))


# What references outside of programs have in common with arrays.
_OF_REFERENCES = frozenset({"at", "aval", "dtype", "ndim", "shape", "size", *METHODS})


class _NoMember:
    """In the place of a member of arrays that references do not have: libraries ask by `hasattr`
    what a value is."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, ref: Any, cls: type) -> NoReturn:
        raise AttributeError(f"'Ref' object has no attribute '{self._name}'. Did you forget to "
                             "read its value with `ref[...]`?")


# Of attributes that jaxlib or a one-line function gives.
_DOCS = {
    "committed": "Whether it stays on its device where a program would run elsewhere.",
    "dtype": "The type of its elements.",
    "is_fully_addressable": "Whether all its parts are on devices of this process.",
    "is_fully_replicated": "Whether each of its devices has all of it.",
    "itemsize": "The bytes of an element.",
    "nbytes": "The bytes of all elements.",
    "ndim": "The number of axes.",
    "shape": "The sizes of its axes, a tuple of ints.",
    "sharding": "On which devices its parts are.",
    "size": "The number of elements.",
    "tobytes": "Its elements as bytes.",
    "tolist": "Its elements as Python numbers, in lists as deep as it has axes.",
    "weak_type": "Whether its dtype gives way to that of other arrays, as Python's numbers do.",
}


def _show_attributes(base: type) -> None:
    """Give the class that users name what arrays have, for help() and editors."""
    base.__doc__ = "The type of arrays, for annotations and isinstance checks; of tracers too."
    for name, attribute in list(vars(ArrayImpl).items()):
        if name.startswith("_") or name in ("device_buffer", "device_buffers"):
            continue
        doc = _DOCS.get(name)
        if doc is not None and isinstance(attribute, property):
            attribute = property(attribute.fget, doc=doc)
        elif doc is not None:
            attribute.__doc__ = doc
        setattr(base, name, attribute)
