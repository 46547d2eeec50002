"""Element types: the promotion lattice, weak types, and the narrowing of 64-bit types.

Promotion is the least upper bound in a lattice whose edges are `_EDGES`. Its nodes are NumPy dtypes
and the Python types int, float and complex, which stand for weakly typed values: a weak type only
takes part with its category, so `float32 + 1.0` stays float32 while `int32 + 1.0` becomes the
default float.
"""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from pyjx import configuration
from pyjx.core.bounded import BoundedDict
from pyjx.core.frames import warn
from pyjx.core.value_texts import VALUES, array_cure, shortened

if TYPE_CHECKING:
    from pyjx.core.array_type import DTypeLike

DType = Any  # np.dtype, or an ExtendedDType
Node = Any  # np.dtype, or int, float, complex for the weak types

bfloat16: type = ml_dtypes.bfloat16


class finfo(ml_dtypes.finfo):
    """The limits of a floating-point dtype, also of those that NumPy does not know.

    Args:
      dtype: a dtype, or an array of it.

    Raises:
      ValueError: it is one of integers, which `iinfo` is for, or of no numbers.

    >>> import pyjx as jax
    >>> float(jax.numpy.finfo("bfloat16").eps)
    0.0078125
    """

    def __new__(cls, dtype: DTypeLike) -> finfo:
        try:
            made = super().__new__(cls, dtype)  # type: ignore[no-untyped-call]
        except ValueError as error:
            raise _of_other_kind(error, dtype, np.integer, "iinfo") from None
        return made if isinstance(made, finfo) else _own_finfo(made)

    def __reduce__(self) -> Any:
        return type(self), (self.dtype,)


@cache
def _own_finfo(found: Any) -> finfo:
    """The limits of a dtype that is not NumPy's, which `ml_dtypes` gives as an object of NumPy's
    class, as one that can be copied and pickled."""
    made = object.__new__(finfo)
    vars(made).update(vars(found))
    return made


class iinfo(ml_dtypes.iinfo):
    """The limits of an integer dtype, also of those that NumPy does not know.

    Args:
      int_type: a dtype, or an array of it.

    Raises:
      ValueError: it is one of floats, which `finfo` is for, or of no numbers.

    >>> import pyjx as jax
    >>> jax.numpy.iinfo("int4").max
    7
    """

    def __init__(self, int_type: DTypeLike) -> None:
        try:
            super().__init__(int_type)  # type: ignore[no-untyped-call]
        except ValueError as error:
            raise _of_other_kind(error, int_type, np.inexact, "finfo") from None

    def __reduce__(self) -> Any:
        return type(self), (self.dtype,)


def _of_other_kind(error: ValueError, given: Any, kind: type, other: str) -> ValueError:
    """The error of limits that a dtype has not, with the name of what tells those that it has."""
    dtype = getattr(given, "dtype", None)
    if not isinstance(dtype, np.dtype) and given is not None:
        try:
            dtype = np.dtype(given)
        except TypeError:
            dtype = np.dtype(type(given))
    if dtype is None or not issubdtype(dtype, kind):
        return error
    return ValueError(f"{str(error).rstrip('.')}: the limits of {dtype} are told by jnp.{other}.")


# The dtype of the tangents of values that have none, such as integers. It has no bytes.
float0: np.dtype[Any] = np.dtype([("float0", np.void, 0)])


class TypePromotionError(ValueError):
    """Raised when dtypes have no common dtype that they promote to implicitly.

    Ways out: convert one of them, as in `x.astype(y.dtype)`; with the flag
    `jax_numpy_dtype_promotion` at `strict` only equal dtypes, and Python's numbers, go together.
    """


class extended(np.generic):
    """Scalar class of all extended dtypes, for use with `issubdtype`; never instantiated."""


class prng_key(extended):
    """Scalar class of the dtypes of random keys, for use with `issubdtype`; never instantiated."""


TypePromotionError.__module__ = extended.__module__ = prng_key.__module__ = "pyjx.dtypes"


class ExtendedDType:
    """Base of dtypes whose elements are themselves arrays of a NumPy dtype, such as random keys.

    Subclasses give `name`, `type` (the scalar class, below `extended`), and define equality and
    hashing. One of a library has `_rules`:

      physical_element_aval(dtype): the type of the data behind an element.
      tangent_dtype(dtype): the dtype of tangents; and of one that is its own, for these,
        zero(dtype), the one that adds nothing, and add(dtype, x, y).
      full(shape, fill_value, dtype): an array of one value.
      convert_from(dtype, other), convert_to(other, dtype): whether there are conversions to and
        from the dtype of the data; or allow_conversion, whether there are both.
    """

    __slots__ = ()

    name: str
    type: type
    _rules: Any = None

    @property
    def element(self) -> Any:
        """The type of the data behind an element."""
        return self._rules.physical_element_aval(self)

    @property
    def itemsize(self) -> int:
        """The bytes of an element."""
        return int(np.dtype(self.element.dtype).itemsize * math.prod(self.element.shape))

    def physical_aval(self, aval: Any) -> Any:
        """The type of the data behind an array of a type."""
        return aval.update(shape=(*aval.shape, *self.element.shape),
                           dtype=np.dtype(self.element.dtype), weak_type=False)

    def tangent_dtype(self) -> Any:
        """The dtype of tangents: float0 unless rules say another one."""
        return float0 if self._rules is None else self._rules.tangent_dtype(self)

    def filled(self, shape: tuple[int, ...], value: Any) -> Any:
        """An array of one value."""
        return self._rules.full(shape, value, self)

    def converts(self, other: Any, back: bool) -> bool:
        """Whether values of the dtype `other` become values of this, or (`back`) these those."""
        rules = self._rules
        if rules is None or self.element.shape or self.element.dtype != other:
            return False
        if getattr(rules, "allow_conversion", False):
            return True
        return bool(rules.convert_from(self, other) if back else rules.convert_to(other, self))

    def __str__(self) -> str:
        return self.name

    __repr__ = __str__


def is_extended(dtype: Any) -> bool:
    return isinstance(dtype, ExtendedDType)


# --- the types there are -------------------------------------------------------------------------

def _ml_types(prefix: str) -> tuple[type, ...]:
    return tuple(getattr(ml_dtypes, name) for name in dir(ml_dtypes)
                 if name.startswith(prefix) and name[len(prefix):len(prefix) + 1].isdigit())


def _dtypes(*types: Any) -> tuple[np.dtype[Any], ...]:
    return tuple([np.dtype(t) for t in types])


bool_dtype = np.dtype(bool)
_signed = _dtypes("int8", "int16", "int32", "int64")
_unsigned = _dtypes("uint8", "uint16", "uint32", "uint64")
_small_signed = _dtypes(*_ml_types("int"))  # of fewer than 8 bits
_small_unsigned = _dtypes(*_ml_types("uint"))
_small_ints = _small_signed + _small_unsigned
_small_floats = _dtypes(*_ml_types("float"))  # of 8 bits and fewer
_bf16, _f16, _f32, _f64 = _dtypes(bfloat16, "float16", "float32", "float64")
_c64, _c128 = _dtypes("complex64", "complex128")

integer_dtypes = frozenset((*_signed, *_unsigned, *_small_ints))
floating_dtypes = frozenset((_bf16, _f16, _f32, _f64, *_small_floats))
complex_dtypes = frozenset((_c64, _c128))
all_dtypes = frozenset((bool_dtype, *integer_dtypes, *floating_dtypes, *complex_dtypes))

numpy_scalar_types: tuple[type, ...] = tuple(dict.fromkeys(
    [*(dtype.type for dtype in all_dtypes), np.longlong, np.ulonglong]))

# NumPy knows no category for the types of ml_dtypes.
_category: dict[type, type] = {
    **{d.type: np.floating for d in (_bf16, *_small_floats)},
    **{d.type: np.signedinteger for d in _small_signed},
    **{d.type: np.unsignedinteger for d in _small_unsigned},
}

_narrowed = dict(zip(_dtypes("int64", "uint64", _f64, _c128),
                     _dtypes("int32", "uint32", _f32, _c64), strict=True))

# The dtypes of Python scalars, by x64.
python_dtypes: tuple[dict[type, np.dtype[Any]], dict[type, np.dtype[Any]]] = (
    {bool: bool_dtype, int: np.dtype("int32"), float: _f32, complex: _c64},
    {bool: bool_dtype, int: np.dtype("int64"), float: _f64, complex: _c128},
)


# The same with the weak type of such a scalar.
_python_types = tuple([{t: (d, t is not bool) for t, d in table.items()}
                       for table in python_dtypes])


def python_scalar_dtype(python_type: type) -> np.dtype[Any]:
    """The dtype of a Python scalar: bool, or the default int, float or complex dtype."""
    return python_dtypes[configuration.enable_x64.value][python_type]


def default_int_dtype() -> np.dtype[Any]:
    return python_scalar_dtype(int)


def default_uint_dtype() -> np.dtype[Any]:
    return _unsigned[3 if configuration.enable_x64.value else 2]


def default_float_dtype() -> np.dtype[Any]:
    return python_scalar_dtype(float)


def is_python_scalar(x: Any) -> bool:
    """Whether `x` is a Python bool, int, float or complex, and no NumPy scalar."""
    return isinstance(x, (int, float, complex)) and not isinstance(x, np.generic)


def is_weakly_typed(x: Any) -> bool:
    """Whether the dtype of `x` gives way to others in promotion."""
    aval = getattr(x, "aval", None)
    if aval is not None:
        return bool(aval.weak_type)
    return is_python_scalar(x) and not isinstance(x, bool)


# --- categories ----------------------------------------------------------------------------------

def issubdtype(a: Any, b: Any) -> bool:
    """Whether dtype `a` is `b`, or belongs to the category `b`.

    Like `numpy.issubdtype`, but small floats, small ints and extended dtypes have their places.

    >>> import numpy as np
    >>> import pyjx as jax
    >>> jax.dtypes.issubdtype(jax.dtypes.bfloat16, np.floating)
    True
    """
    try:
        return _issubdtype(a, b)
    except TypeError:
        try:
            return _issubdtype.__wrapped__(a, b)  # one is unhashable, such as a list
        except TypeError as error:
            raise TypeError(f"issubdtype: expected two dtypes or categories, got {shortened(a)} "
                            f"and {shortened(b)} ({error}).") from None


def has_dtype(x: Any, category: type) -> bool:
    """Whether a value, or a type, has a dtype of a category."""
    dtype = getattr(x, "dtype", None)
    return dtype is not None and issubdtype(dtype, category)


@cache
def _issubdtype(a: Any, b: Any) -> bool:
    if isinstance(b, ExtendedDType):
        return bool(a == b)
    upper = _scalar_class(b)
    lower = _scalar_class(a)
    return issubclass(lower, upper) or issubclass(_category.get(lower, lower), upper)


def _scalar_class(x: Any) -> type:
    if isinstance(x, type) and issubclass(x, np.generic):
        return x
    return x.type if isinstance(x, ExtendedDType) else np.dtype(x).type


def scalar_type_of(x: Any) -> type:
    """The Python type bool, int, float or complex that a value or dtype belongs to."""
    kind = dtype(x)
    for category, python_type in ((np.bool_, bool), (np.integer, int), (np.floating, float),
                                  (np.complexfloating, complex)):
        if issubdtype(kind, category):
            return python_type
    raise TypeError(f"Invalid scalar value {x}")


def itemsize_bits(dtype: Any) -> int:
    """Bits of one element: 4 for int4, 8 for bool.

    Raises:
      ValueError: `dtype` is no type of numbers.
    """
    known = dtype is not None and not isinstance(dtype, ExtendedDType)  # NumPy takes None for float
    numeric = np.dtype(dtype) if known else None
    if numeric not in all_dtypes:
        raise ValueError(f"unexpected input: {dtype=}")
    if numeric in _small_ints:
        return int(iinfo(numeric).bits)
    if numeric in _small_floats:
        return int(finfo(numeric).bits)
    return numeric.itemsize * 8


bit_width = itemsize_bits

def name(dtype: DType) -> str:
    """The name that avals print: "float32", "key<fry>", "float0"."""
    return "float0" if dtype == float0 else str(dtype.name)


@cache
def short_dtype_name(dtype: DType) -> str:
    """The name that jaxprs print: "f32", "bf16", "c64", "f8_e4m3fn"."""
    short = name(dtype)
    if dtype in all_dtypes:
        for word, letter in (("bfloat", "bf"), ("float", "f"), ("uint", "u"), ("int", "i"),
                             ("complex", "c")):
            short = short.replace(word, letter)
    return short


def tangent_dtype(dtype: DType) -> DType:
    """The dtype of tangents and cotangents: float0 for all but inexact dtypes."""
    if dtype in floating_dtypes or dtype in complex_dtypes:
        return dtype
    return dtype.tangent_dtype() if isinstance(dtype, ExtendedDType) else float0


def to_inexact_dtype(dtype: Any) -> DType:
    """Floats and complex as they are; the float dtype for others, of 64 bits for 64 bits."""
    if isinstance(dtype, ExtendedDType):
        raise TypeError(f"expected numbers, got values of dtype {dtype}")
    dtype = np.dtype(dtype)
    if dtype in floating_dtypes or dtype in complex_dtypes:
        return dtype
    if dtype == float0:
        raise float0_error("a function of floats")
    return _f64 if dtype.itemsize == 8 else _f32


def to_floating_dtype(dtype: Any) -> DType:
    """Floats as they are; the real part's dtype of complex; for others as `to_inexact_dtype`."""
    dtype = to_inexact_dtype(dtype)
    return _f64 if dtype == _c128 else _f32 if dtype == _c64 else dtype


def to_complex_dtype(dtype: Any) -> DType:
    """complex128 for dtypes of 64 bits and complex128, complex64 for others."""
    return _c128 if to_inexact_dtype(dtype) in (_f64, _c128) else _c64


def to_numeric_dtype(dtype: Any) -> DType:
    """int32 for bool; others as they are."""
    dtype = np.dtype(dtype)
    return _signed[2] if dtype == bool_dtype else dtype


# --- which dtypes there may be -------------------------------------------------------------------


def _native(dtype: Any) -> np.dtype[Any]:
    """The NumPy dtype that `dtype` stands for, in the machine's byte order."""
    if not isinstance(dtype, np.dtype):
        dtype = np.dtype(dtype)
    return dtype if dtype.isnative else dtype.newbyteorder("=")


def canonicalize_dtype(dtype: Any, allow_extended_dtype: bool = False) -> DType:
    """`dtype` as arrays have it now: 64-bit types become 32-bit ones unless x64 is enabled.

    >>> import pyjx as jax
    >>> jax.dtypes.canonicalize_dtype("int64")
    dtype('int32')
    """
    if isinstance(dtype, ExtendedDType):
        if not allow_extended_dtype:
            raise ValueError("Internal: canonicalize_dtype called on extended dtype "
                             f"{dtype} with allow_extended_dtype=False")
        return dtype
    dtype = _native(dtype)
    return dtype if configuration.enable_x64.value else narrowed(dtype)


def narrowed(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype that arrays have in place of this one unless x64 is enabled."""
    return _narrowed.get(dtype, dtype)


def float0_error(name: str, at: str = "") -> TypeError:
    """The error for tangents of integers among the operands of the function `name`; `at` says
    which of several one is."""
    return TypeError(
        f"Called {name} with a float0{at or ' array'}. float0s do not support any operations by "
        "design: they are tangents of integers, which hold no numbers. Was a gradient taken with "
        "respect to an integer argument? For zeros to compute with use np.zeros(x.shape).")


def is_array_dtype(dtype: DType) -> bool:
    """Whether arrays can have this dtype: numbers, keys, and tangents of integers."""
    return dtype in all_dtypes or dtype == float0 or isinstance(dtype, ExtendedDType)


def check_valid_dtype(dtype: DType, x: Any = None) -> None:
    """TypeError unless arrays can have this dtype, which `x` has."""
    if not is_array_dtype(dtype):
        raise TypeError(f"Dtype {dtype} is not a valid JAX array type. Only arrays of numeric "
                        f"types are supported by JAX. {array_cure(x)}".rstrip())


# What strings, NumPy's dtypes and scalar types stand for, where it is the same under every flag.
_settled = BoundedDict(256, "promoted dtypes")


def check_and_canonicalize_user_dtype(dtype: Any, fun_name: str | None = None) -> DType:
    """The dtype to use for a `dtype` argument of the public function `fun_name`.

    Python types mean their default dtypes. A 64-bit dtype without x64 is narrowed with a warning,
    an error or kept, as the flag `jax_explicit_x64_dtypes` says.

    Raises:
      TypeError: arrays cannot have this dtype.
      ValueError: it is a 64-bit dtype and the flag forbids it, or an array.
    """
    try:
        found = _settled.get(dtype)
    except TypeError:  # unhashable, such as an array
        found = None
    if found is not None:
        return found
    if isinstance(dtype, ExtendedDType):
        return dtype
    if isinstance(dtype, type) and dtype in python_dtypes[0]:
        return python_scalar_dtype(dtype)
    if hasattr(dtype, "aval"):
        where = f" in {fun_name}" if fun_name else ""
        raise ValueError("Passing an array as a dtype argument is no longer supported: expected a "
                         f"dtype, got an array{where}; pass the dtype of the array, `arr.dtype`")
    try:
        numeric = _native(dtype)
    except TypeError as error:
        where = f" in {fun_name}" if fun_name else ""
        text = str(error)
        if "data type" not in text and "dtype" not in text:  # NumPy may take it for a structure
            text = f"Cannot interpret {shortened(dtype)} as a data type"
        if type(dtype) is int and fun_name in ("zeros", "ones", "empty"):
            where += (". If it is a dimension, give the shape as one tuple, as in "
                      f"{fun_name}((n, {dtype}))")
        elif fun_name == "view" and isinstance(dtype, (int, tuple, list)):
            where += f". A shape is for x.reshape({shortened(dtype)})"
        elif fun_name in ("array", "asarray") and isinstance(dtype, (int, float, list, tuple)):
            where += f". {VALUES.format(fun_name)}"
        elif type(dtype) in (int, float) and fun_name:
            where += (f". {fun_name} takes a dtype there, such as 'float32'; give what else it "
                      "takes by keyword, and a shape or several axes as one tuple")
        raise TypeError(f"{text}{where}") from None
    if numeric not in all_dtypes and numeric != float0:
        where = f" in {fun_name}" if fun_name else ""
        raise TypeError("JAX only supports number and bool dtypes, got dtype "
                        f"{dtype}{where}")
    if numeric in all_dtypes and numeric not in _narrowed and numeric.metadata is None:
        # a scalar type of jax.numpy equals NumPy's; other classes may change what they stand for
        _settled[dtype if isinstance(dtype, (np.dtype, str)) else numeric.type] = numeric
    narrow = canonicalize_dtype(numeric)
    if narrow is numeric or narrow == numeric:
        return narrow
    mode = configuration.explicit_x64_dtypes.value
    if mode == "allow":
        return numeric
    where = f" requested in {fun_name}" if fun_name else ""
    lead = f"Explicitly requested dtype {numeric.name}{where} is not available"
    gotchas = "See https://github.com/jax-ml/jax#current-gotchas for more."
    if mode == "error":
        raise ValueError(f"{lead}. To enable more dtypes, set the jax_enable_x64 or "
                         f"jax_explicit_x64_dtypes configuration options. {gotchas}")
    warn(f"{lead}, and will be truncated to dtype {narrow.name}. To enable more dtypes, "
         "set the jax_enable_x64 configuration option or the JAX_ENABLE_X64 shell environment "
         f"variable. {gotchas}")
    return narrow


def dtype(x: Any) -> DType:
    """The dtype of a value, or the one a dtype-like (a type, a name) stands for.

    Args:
      x: an array, a number, a dtype, a type or a name.

    Raises:
      ValueError: `x` is None.
      TypeError: `x` has no dtype that arrays can have.

    >>> import pyjx as jax
    >>> jax.lax.dtype(1.5)
    dtype('float32')
    """
    return _dtype_and_weak(x)[0]


def _dtype_and_weak(x: Any) -> tuple[DType, bool]:
    scalar = _python_types[configuration.enable_x64.value].get(type(x))
    if scalar is not None:
        return scalar
    aval = getattr(x, "aval", None)
    if aval is not None:
        return aval.dtype, aval.weak_type
    found = getattr(x, "dtype", None)
    if isinstance(found, (np.dtype, ExtendedDType)):  # of constructors such as `jnp.int64`, too
        narrow = canonicalize_dtype(found, True)
        if narrow not in all_dtypes and narrow != float0 and not is_extended(narrow):
            raise not_an_array_type(x, found)
        return narrow, False
    if isinstance(x, (type, str, np.dtype)):
        return _of_dtype_like(x)
    for python_type in (int, float, complex):  # instances of subclasses, such as of IntEnum
        if isinstance(x, python_type):
            return python_scalar_dtype(python_type), True
    if x is None:
        raise ValueError(f"Invalid argument to dtype: {x}.")
    raise TypeError(f"Cannot determine dtype of {x}")


def _of_dtype_like(x: Any) -> tuple[DType, bool]:
    if x in python_dtypes[0]:
        return python_scalar_dtype(x), x is not bool
    try:
        found = _native(x)
    except TypeError as error:
        raise TypeError(f"Invalid argument to dtype: {error}") from None
    if found != float0 and found not in all_dtypes:
        raise not_an_array_type(x, found)
    return check_and_canonicalize_user_dtype(found, "dtype"), False


def not_an_array_type(x: Any, found: Any) -> TypeError:
    """The error of a value whose dtype, `found`, arrays cannot have."""
    return TypeError(f"Value '{x}' with dtype {found} is not a valid JAX array type. Only arrays "
                     f"of numeric types are supported by JAX. {array_cure(x)}".rstrip())


# --- promotion -----------------------------------------------------------------------------------

# From each node to those right above it.
_EDGES: dict[Node, tuple[Node, ...]] = {
    bool_dtype: (int,),
    int: (_signed[0], _unsigned[0], *_small_ints),
    **dict.fromkeys((*_small_ints, *_small_floats, _c128), ()),
    **{low: (high,) for low, high in zip(_signed, (*_signed[1:], float), strict=True)},
    **{low: (high, _signed[k + 1]) if k < 3 else (high,)
       for k, (low, high) in enumerate(zip(_unsigned, (*_unsigned[1:], float), strict=True))},
    float: (*_small_floats, _bf16, _f16, complex),
    _bf16: (_f32,), _f16: (_f32,), _f32: (_f64, _c64), _f64: (_c128,),
    complex: (_c64,), _c64: (_c128,),
}

# Under strict promotion only weak types give way, and never to a lower category.
_STRICT_EDGES: dict[Node, tuple[Node, ...]] = {
    **dict.fromkeys(all_dtypes, ()),
    int: (*integer_dtypes, float),
    float: (*floating_dtypes, complex),
    complex: (*complex_dtypes,),
}

_weak_types = frozenset((int, float, complex))


@cache
def _above(node: Node, strict: bool) -> frozenset[Node]:
    """`node` and all nodes that it promotes to."""
    edges = _STRICT_EDGES if strict else _EDGES
    if node not in edges:
        raise ValueError(f"dtype={node!r} is not a valid dtype for JAX type promotion."
                         + " Keys promote to their own dtype alone." * is_extended(node))
    return frozenset((node,)).union(*[_above(up, strict) for up in edges[node]])


@cache
def _join(nodes: tuple[Node, ...], strict: bool) -> Node:
    """The least upper bound: the common upper bound that is below all others."""
    common = frozenset.intersection(*[_above(node, strict) for node in nodes])
    least = [node for node in common if common <= _above(node, strict)]
    if not least:
        raise _no_promotion(nodes, strict)
    return least[0]


def _no_promotion(nodes: tuple[Node, ...], strict: bool) -> TypePromotionError:
    names = tuple([node.name if isinstance(node, np.dtype) else str(node)
                   for node in dict.fromkeys(nodes)])
    lead = f"Input dtypes {names} have no available implicit dtype promotion path"
    if strict:
        return TypePromotionError(
            f"{lead} when jax_numpy_dtype_promotion=strict. Try explicitly casting inputs to the "
            "desired output type, or set jax_numpy_dtype_promotion=standard.")
    floats = [node for node in nodes if node in _small_floats]
    if floats:
        bits = max([itemsize_bits(node) for node in floats])
        what, target = f"{bits}-bit floats", "float32"
    else:
        what, target = "1-bit, 2-bit and 4-bit integers", "int32"
    return TypePromotionError(
        f"{lead}. To avoid unintended promotion, {what} do not support implicit promotion. If "
        "you'd like your inputs to be promoted to another type, you can do so explicitly using "
        f"e.g. x.astype('{target}')")


def _default_of(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The default dtype of the category of `dtype`."""
    return (default_uint_dtype() if issubdtype(dtype, np.unsignedinteger)
            else python_scalar_dtype(_weak_node(dtype)))


def _weak_node(dtype: np.dtype[Any]) -> Node:
    """The Python type of the category of `dtype`; bool has no weak type."""
    if dtype in integer_dtypes:
        return int
    if dtype in complex_dtypes:
        return complex
    return float if dtype in floating_dtypes else dtype


def _is_strict() -> bool:
    return bool(configuration.numpy_dtype_promotion.value == "strict")


def promote_types(a: Any, b: Any) -> np.dtype[Any]:
    """The dtype that dtypes `a` and `b` promote to.

    The Python types int, float and complex stand for weak types. 64-bit types are not narrowed,
    but without x64 narrower ones do not promote to them.

    Raises:
      TypePromotionError: there is none, as for float8 with float32.

    >>> promote_types("int32", "float16")
    dtype('float16')
    """
    nodes = tuple([x if isinstance(x, type) and x in _weak_types else np.dtype(x) for x in (a, b)])
    return np.dtype(_join_as_narrow(nodes))


_result_cache = BoundedDict(4096, "dtypes of results")


def join_types(*types: tuple[DType, bool]) -> tuple[DType, bool]:
    """The dtype and weak type that (dtype, weak type) pairs promote to; at least one pair.

    One dtype stays as it is. A common dtype of 64 bits without x64 is narrowed with a warning,
    unless the flag `jax_explicit_x64_dtypes` allows it.
    """
    key = (types, configuration.enable_x64.value, configuration.numpy_dtype_promotion.value)
    found = _result_cache.get(key)
    if found is None:
        found = _join_types(types)
        if key[1] or not any(dtype in _narrowed for dtype, _ in types):
            _result_cache[key] = found
    return found


def _join_types(types: tuple[tuple[DType, bool], ...]) -> tuple[DType, bool]:
    weak = all(weak for _, weak in types)
    dtypes = tuple([dtype for dtype, _ in types])
    if not weak and dtypes.count(dtypes[0]) == len(dtypes):
        return types[0][0], False
    if weak and not _is_strict():
        result = _join_as_narrow(dtypes)
    else:
        result = _join_as_narrow(
            tuple([_weak_node(dtype) if weak else dtype for dtype, weak in types]))
        weak = isinstance(result, type)
        if weak:
            return python_scalar_dtype(result), True
    if result in _narrowed:
        result = check_and_canonicalize_user_dtype(result, "dtype")
    return result, weak and result != bool_dtype


def _join_as_narrow(nodes: tuple[Node, ...]) -> Node:
    """The least upper bound; without x64, of 64 bits only if one of the nodes is."""
    result = _join(nodes, _is_strict())
    if (isinstance(result, np.dtype) and not configuration.enable_x64.value
            and _narrowed.keys().isdisjoint(nodes)):
        return _narrowed.get(result, result)
    return result


def lattice_result_type(*args: Any) -> tuple[DType, bool]:
    """The dtype and weak type that values and dtype-likes promote to; at least one argument.

    A weak result keeps the width of its operands; compare `result_type`.
    """
    return join_types(*[_dtype_and_weak(x) for x in args])


def result_type(*args: Any, return_weak_type_flag: bool = False) -> Any:
    """The dtype that arrays, scalars and dtypes promote to; the default one if it is weak.

    Args:
      args: values or dtype-likes; None stands for the Python type float.
      return_weak_type_flag: whether to return (dtype, weak type).

    Raises:
      ValueError: there are no arguments.
      TypeError: an argument has no dtype.
      TypePromotionError: there is no common dtype.

    >>> import numpy as np
    >>> import pyjx as jax
    >>> jax.dtypes.result_type(np.int32(1), 1.0)
    dtype('float32')
    """
    if not args:
        raise ValueError("at least one array or dtype is required")
    found, weak = lattice_result_type(*[float if x is None else x for x in args])
    if weak:
        found = _default_of(found)
    return (found, weak) if return_weak_type_flag else found


def dtype_of_short_name(text: str) -> Any:
    """The dtype that `f32`, `bf16`, `bool` or a full name such as `float32` stands for, or None.

    >>> dtype_of_short_name("bf16")
    dtype(bfloat16)
    """
    for candidate in all_dtypes:
        if text in (short_dtype_name(candidate), name(candidate)):
            return candidate
    return None
