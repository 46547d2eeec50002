"""Elementwise functions: arithmetic, comparison, logic, bits, rounding, exponentials.

Each promotes its operands and binds one primitive or a few. The names without underscore are C++
callables (see `op_jit`); their Python bodies are `__wrapped__`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol, overload

import numpy as np

from pyjx import lax as ops
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import get_aval
from pyjx.core.primitive import Primitive
from pyjx.core.scalars import scalar_constant
from pyjx.core.trace import Tracer, concrete_or_error, eager_trace, state
from pyjx.engine.moves import number_beside
from pyjx.engine.primitives import stands_for_constant
from pyjx.lax.bitwise import (
    and_p,
    or_p,
    shift_left_p,
    shift_right_arithmetic_p,
    shift_right_logical_p,
    xor_p,
)
from pyjx.lax.common import broadcast_shapes, misfit
from pyjx.lax.compare import eq_p, ge_p, gt_p, le_p, lt_p, max_p, min_p, ne_p, select_n_p
from pyjx.lax.elementwise import add_p, coefficient, div_p, mul_p, stretch, sub_p
from pyjx.numpy.division import floor_quotient, floor_remainder, nonzero_divisor
from pyjx.numpy.operands import (
    alias,
    as_bool,
    constant_like,
    dtype_of,
    filled_like,
    is_complex,
    is_inexact,
    is_integer,
)
from pyjx.numpy.promotion import (
    as_operand,
    check_arraylike,
    convert,
    operands,
    promote_args,
    promote_args_numeric,
    promote_dtypes,
    promote_dtypes_numeric,
    promote_inexact,
    promote_two,
    promote_two_inexact,
    spread_all,
)
from pyjx.numpy.universal import BinaryUfunc, universal, unsupported
from pyjx.runtime.operations import op_jit
from pyjx.runtime.transfers import array_from_host

_bool = dtypes.bool_dtype
_Body = Callable[..., Any]


class _Unary(Protocol):
    def __call__(self, x: ArrayLike, /) -> Array: ...


class _Binary(Protocol):
    def __call__(self, x: ArrayLike, y: ArrayLike, /) -> Array: ...


_OF_ARGUMENT = "An array of the argument's shape"
_BOOLEANS = ", of booleans"
_REAL = " and dtype, or of the float\n  dtype of the parts of complex numbers"
_BROADCAST = "An array of the shape that the arguments are broadcast to"


def _named(body: _Body, name: str, doc: str, result: str, example: str,
           make: Callable[[_Body], Any] = op_jit) -> Any:
    arguments, value = example.split(" -> ")
    body.__name__ = body.__qualname__ = name
    body.__doc__ = (f"{doc}\n\nReturns:\n  {result}.\n\n>>> import pyjx as jax\n"
                    f">>> jax.numpy.{name}({arguments}).item()\n{value}\n")
    return make(body)


# -- one primitive each ----------------------------------------------------------------------------


def _real_absolute(x: ArrayLike) -> Any:
    if is_complex(x):
        raise TypeError("ufunc 'fabs' does not support complex dtypes")
    return ops.abs(x)


def _scaled(x: ArrayLike, factor: float, operation: _Body = ops.mul) -> Any:
    """x times (or over) a real number, part by part: inf * 0j would be nan."""
    if is_complex(x):
        return ops.complex(_scaled(ops.real(x), factor, operation),
                           _scaled(ops.imag(x), factor, operation))
    return operation(x, constant_like(x, factor))


def _strong_product(x: ArrayLike, factor: ArrayLike) -> Any:
    """x times a number of its dtype, which makes the result one of strong type."""
    return ops.mul(x, dtype_of(x).type(factor))


def _times(x: ArrayLike, factor: float) -> Any:
    return ops.mul(x, coefficient(x, factor))


def _float_function(name: str, operation: _Body, doc: str, example: str) -> _Unary:
    """A function of floats and complex numbers; integers become floats."""

    def body(x: ArrayLike, /) -> Any:
        return operation(promote_inexact(name, x))

    return _named(body, name, doc + " Integers become floats.", _OF_ARGUMENT + ", of the default "
                  "float dtype\n  for integers and booleans, else of its dtype", example)


exp = _float_function("exp", ops.exp, "The exponential of x, elementwise.", "0.0 -> 1.0")
exp2 = _float_function("exp2", ops.exp2, "Two to the power of x, elementwise.", "3.0 -> 8.0")
expm1 = _float_function("expm1", ops.expm1, "exp(x) - 1, elementwise; precise for small x.",
                        "0.0 -> 0.0")
log = _float_function("log", ops.log, "The natural logarithm of x, elementwise.", "1.0 -> 0.0")
log1p = _float_function("log1p", ops.log1p, "log(1 + x), elementwise; precise for small x.",
                        "0.0 -> 0.0")
sqrt = _float_function("sqrt", ops.sqrt, "The square root of x, elementwise.", "9.0 -> 3.0")
sin = _float_function("sin", ops.sin, "The sine of x in radians, elementwise.", "0.0 -> 0.0")
cos = _float_function("cos", ops.cos, "The cosine of x in radians, elementwise.", "0.0 -> 1.0")
tan = _float_function("tan", ops.tan, "The tangent of x in radians, elementwise.", "0.0 -> 0.0")
arcsin = _float_function("arcsin", ops.asin, "The inverse sine of x, elementwise.", "0.0 -> 0.0")
arccos = _float_function("arccos", ops.acos, "The inverse cosine of x, elementwise.", "1.0 -> 0.0")
arctan = _float_function("arctan", ops.atan, "The inverse tangent of x, elementwise.", "0.0 -> 0.0")
sinh = _float_function("sinh", ops.sinh, "The hyperbolic sine of x, elementwise.", "0.0 -> 0.0")
cosh = _float_function("cosh", ops.cosh, "The hyperbolic cosine of x, elementwise.", "0.0 -> 1.0")
tanh = _float_function("tanh", ops.tanh, "The hyperbolic tangent of x, elementwise.", "0.0 -> 0.0")
arcsinh = _float_function("arcsinh", ops.asinh, "The inverse hyperbolic sine of x, elementwise.",
                          "0.0 -> 0.0")
arccosh = _float_function("arccosh", ops.acosh, "The inverse hyperbolic cosine of x, elementwise.",
                          "1.0 -> 0.0")
arctanh = _float_function("arctanh", ops.atanh, "The inverse hyperbolic tangent of x, elementwise.",
                          "0.0 -> 0.0")
cbrt = _float_function("cbrt", ops.cbrt, "The cube root of x, elementwise.", "27.0 -> 3.0")
fabs = _float_function("fabs", _real_absolute, "The absolute value of x as a float, elementwise.",
                       "-2 -> 2.0")
reciprocal = _float_function("reciprocal", lambda x: ops.integer_pow(x, -1),
                             "1 / x, elementwise.", "4.0 -> 0.25")
log10 = _float_function(
    # log10(e) itself, which 1 / log(10) misses by its last bit
    "log10", lambda x: _scaled(ops.log(x), np.log10(np.e), _strong_product),
    "The logarithm of x to base 10, elementwise.", "100.0 -> 2.0")
log2 = _float_function("log2", ops.log2, "The logarithm of x to base 2, elementwise.", "8.0 -> 3.0")
deg2rad = _float_function("deg2rad", lambda x: _times(x, np.pi / 180),
                          "Degrees as radians, elementwise.", "180.0 -> 3.1415927410125732")
rad2deg = _float_function("rad2deg", lambda x: _times(x, 180 / np.pi),
                          "Radians as degrees, elementwise.", "0.0 -> 0.0")

asin, acos, atan = alias("asin", arcsin), alias("acos", arccos), alias("atan", arctan)
asinh, acosh, atanh = alias("asinh", arcsinh), alias("acosh", arccosh), alias("atanh", arctanh)
radians, degrees = alias("radians", deg2rad), alias("degrees", rad2deg)


def _function(name: str, operation: _Body, doc: str, example: str, by_keyword: bool = False,
              of: str = " and dtype") -> _Unary:
    """A function whose result is `of` a dtype. Few take their argument by keyword, as in JAX."""

    def body(x: ArrayLike, /) -> Any:
        (x,) = operands(name, x)
        return operation(x)

    def named(x: ArrayLike) -> Any:
        return body(x)

    return _named(named if by_keyword else body, name, doc, _OF_ARGUMENT + of, example)


def _whole(x: ArrayLike) -> Any:
    """Integers and booleans as they are."""
    if dtype_of(x) == dtypes.float0:
        raise dtypes.float0_error("a function of numbers")
    return as_array(x)


def _rounding(operation: _Body) -> _Body:
    return lambda x: operation(x) if is_inexact(x) else _whole(x)


def _absolute(x: ArrayLike) -> Any:
    unchanged = dtype_of(x) == _bool or dtypes.issubdtype(dtype_of(x), np.unsignedinteger)
    return as_array(x) if unchanged else ops.abs(x)


def _trunc(x: ArrayLike) -> Any:
    return ops.select(ops.lt(x, constant_like(x, 0)), ops.ceil(x), ops.floor(x))


def _conjugate(x: ArrayLike) -> Any:
    return ops.conj(x) if is_complex(x) else as_array(x)


def _bitwise_count(x: ArrayLike) -> Any:
    uint8 = np.dtype(np.uint8)
    return convert(x if dtype_of(x) == _bool else ops.population_count(_absolute(x)), uint8)


def as_array(x: ArrayLike) -> Any:
    """`x` where a result must be an array: scalars and NumPy arrays are moved to the device.

    Those of float0 stay: they hold nothing.
    """
    if (isinstance(x, (np.ndarray, np.generic, bool, int, float, complex))
            and getattr(x, "dtype", None) != dtypes.float0):
        return array_from_host(x)
    return ops.copy_p.bind(x) if stands_for_constant(x) else x


absolute = _function("absolute", _absolute, "The absolute value of x, elementwise.", "-2 -> 2",
                     of=_REAL)
abs = alias("abs", absolute)
positive = _function("positive", lambda x: as_array(x) if is_inexact(x) else _whole(x),
                     "x as it is.", "2 -> 2")
sign = _function("sign", ops.sign, "-1, 0 or 1 as x is; for complex x the unit x / |x|.",
                 "-2.5 -> -1.0")
square = _function("square", lambda x: ops.square(promote_dtypes_numeric(x)[0]),
                   "x * x, elementwise.", "3 -> 9")
floor = _function("floor", _rounding(ops.floor), "The integer below x, elementwise.",
                  "-1.5 -> -2.0")
ceil = _function("ceil", _rounding(ops.ceil), "The integer above x, elementwise.", "-1.5 -> -1.0")
trunc = _function("trunc", _rounding(_trunc), "x rounded towards zero, elementwise.",
                  "-1.5 -> -1.0", by_keyword=True)
conjugate = _function("conjugate", _conjugate, "The complex conjugate of x, elementwise.",
                      "1 + 2j -> (1-2j)")
conj = alias("conj", conjugate)
invert = _function("invert", ops.bitwise_not, "The bits of x inverted; not x for booleans.",
                   "6 -> -7")
bitwise_not, bitwise_invert = alias("bitwise_not", invert), alias("bitwise_invert", invert)
bitwise_count = _function("bitwise_count", _bitwise_count,
                          "The number of ones in the binary form of |x|, as uint8.", "7 -> 3",
                          of=", of uint8")


# -- arithmetic ------------------------------------------------------------------------------------


@universal(2)
def add(x: ArrayLike, y: ArrayLike, /, *, out: None = None, where: None = None) -> Array:
    """x + y, elementwise; `or` for booleans.

    >>> import pyjx as jax
    >>> jax.numpy.add(jax.numpy.ones(2), 1.0).tolist()
    [2.0, 2.0]
    """
    if out is not None or where is not None:
        raise unsupported("add", out)
    x, y = promote_two("add", x, y)
    return (or_p if dtype_of(x) is _bool else add_p).bind(x, y)


@universal(2)
def subtract(x: ArrayLike, y: ArrayLike, /, *, out: None = None, where: None = None) -> Array:
    """x - y, elementwise.

    >>> import pyjx as jax
    >>> jax.numpy.subtract(jax.numpy.arange(3), 1).tolist()
    [-1, 0, 1]
    """
    if out is not None or where is not None:
        raise unsupported("subtract", out)
    return sub_p.bind(*promote_two("subtract", x, y))


@universal(2)
def multiply(x: ArrayLike, y: ArrayLike, /, *, out: None = None, where: None = None) -> Array:
    """x * y, elementwise; `and` for booleans.

    >>> import pyjx as jax
    >>> jax.numpy.multiply(jax.numpy.arange(3), 2).tolist()
    [0, 2, 4]
    """
    if out is not None or where is not None:
        raise unsupported("multiply", out)
    x, y = promote_two("multiply", x, y)
    return (and_p if dtype_of(x) is _bool else mul_p).bind(x, y)


@op_jit
def true_divide(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x / y, elementwise. Integers become floats.

    >>> import pyjx as jax
    >>> jax.numpy.true_divide(jax.numpy.arange(3), 2).tolist()
    [0.0, 0.5, 1.0]
    """
    return div_p.bind(*promote_two_inexact("true_divide", x, y))


divide = alias("divide", true_divide)


def _check_not_complex(name: str, x: ArrayLike) -> None:
    if is_complex(x):
        raise TypeError(f"{name} does not support complex-valued inputs: it does not accept dtype "
                        f"{dtype_of(x)}")


@op_jit
def floor_divide(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The quotient rounded down, elementwise.

    >>> import pyjx as jax
    >>> jax.numpy.floor_divide(jax.numpy.array([7, -7]), 2).tolist()
    [3, -4]
    """
    x, y = promote_args_numeric("floor_divide", x1, x2)
    _check_not_complex("floor_divide", x)
    return floor_quotient(x, y)


@op_jit
def remainder(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1 - x2 * floor(x1 / x2), which has the sign of x2, elementwise.

    >>> import pyjx as jax
    >>> jax.numpy.remainder(jax.numpy.array([7, -7]), 3).tolist()
    [1, 2]
    """
    x, y = promote_args_numeric("remainder", x1, x2)
    _check_not_complex("remainder", x)
    return floor_remainder(x, y)


mod = alias("mod", remainder)


@op_jit
def divmod(x1: ArrayLike, x2: ArrayLike, /) -> tuple[Array, Array]:
    """The pair `(floor_divide(x1, x2), remainder(x1, x2))`.

    Returns:
      A pair of arrays, of the shape and dtype to which the arguments are broadcast and promoted.

    >>> import pyjx as jax
    >>> [x.item() for x in jax.numpy.divmod(-7, 3)]
    [-3, 2]
    """
    x, y = promote_args_numeric("divmod", x1, x2)
    _check_not_complex("divmod", x)
    return floor_quotient(x, y), floor_remainder(x, y)


@op_jit
def fmod(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The remainder of division rounded towards zero, which has the sign of x1, elementwise.

    >>> import pyjx as jax
    >>> jax.numpy.fmod(jax.numpy.array([7, -7]), 3).tolist()
    [1, -1]
    """
    x, y = promote_args_numeric("fmod", x1, x2)
    return ops.rem(x, nonzero_divisor(y) if is_integer(x) else y)


@universal(1)
def negative(x: ArrayLike, /, *, out: None = None, where: None = None) -> Array:
    """-x, elementwise.

    >>> import pyjx as jax
    >>> jax.numpy.negative(jax.numpy.arange(3)).tolist()
    [0, -1, -2]
    """
    if out is not None or where is not None:
        raise unsupported("negative", out)
    return ops.neg(*operands("negative", x))


# -- comparison ------------------------------------------------------------------------------------


def _comparison(name: str, compare: _Body, doc: str, example: str) -> _Binary:
    def body(x: ArrayLike, y: ArrayLike, /) -> Any:
        return compare(*promote_two(name, x, y))

    return _named(body, name, doc, _BROADCAST + _BOOLEANS, example)


def _combination(name: str, primitive: Primitive, doc: str, example: str) -> BinaryUfunc:
    """Of operands of one dtype, which the result has too."""

    def body(x: ArrayLike, y: ArrayLike, /, *, out: None = None, where: None = None) -> Any:
        if out is not None or where is not None:
            raise unsupported(name, out)
        return primitive.bind(*promote_two(name, x, y))

    return _named(body, name, doc, _BROADCAST + ",\n  of the dtype to which they promote", example,
                  universal(2))


def _order(primitive: Primitive, x: ArrayLike, y: ArrayLike) -> Any:
    """A comparison of operands of one dtype; complex numbers compare lexicographically."""
    if not is_complex(x):
        return primitive.bind(x, y)
    x, y = spread_all(primitive.name, x, y)  # the parts of a scalar are arrays
    a, b = ops.real(x), ops.real(y)
    ties = primitive.bind(ops.imag(x), ops.imag(y))
    return ops.select(ops.eq(a, b), ties, primitive.bind(a, b))


def _ordering(name: str, primitive: Primitive, doc: str, example: str) -> _Binary:
    doc += " Complex numbers are ordered by real, then imaginary part."
    return _comparison(name, partial(_order, primitive), doc, example)


equal = _comparison("equal", eq_p.bind, "x == y, elementwise.", "2, 2 -> True")
not_equal = _comparison("not_equal", ne_p.bind, "x != y, elementwise.", "2, 2 -> False")
greater = _ordering("greater", gt_p, "x > y, elementwise.", "3, 2 -> True")
greater_equal = _ordering("greater_equal", ge_p, "x >= y, elementwise.", "2, 2 -> True")
less = _ordering("less", lt_p, "x < y, elementwise.", "2, 3 -> True")
less_equal = _ordering("less_equal", le_p, "x <= y, elementwise.", "2, 2 -> True")
maximum = _combination("maximum", max_p, "The larger of x and y, elementwise; nan if any is.",
                       "2, 3 -> 3")
minimum = _combination("minimum", min_p, "The smaller of x and y, elementwise; nan if any is.",
                       "2, 3 -> 2")


@op_jit
def fmax(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The larger of x1 and x2, elementwise; the other one where one is nan.

    >>> import pyjx as jax
    >>> jax.numpy.fmax(jax.numpy.array([1.0, jax.numpy.nan]), 2.0).tolist()
    [2.0, 2.0]
    """
    x, y = spread_all("fmax", *promote_args("fmax", x1, x2))
    return ops.select(ops.bitwise_or(_order(gt_p, x, y), ops.ne(y, y)), x, y)


@op_jit
def fmin(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The smaller of x1 and x2, elementwise; the other one where one is nan.

    >>> import pyjx as jax
    >>> jax.numpy.fmin(jax.numpy.array([1.0, jax.numpy.nan]), 2.0).tolist()
    [1.0, 2.0]
    """
    x, y = spread_all("fmin", *promote_args("fmin", x1, x2))
    return ops.select(ops.bitwise_or(_order(lt_p, x, y), ops.ne(y, y)), x, y)


# -- logic and bits --------------------------------------------------------------------------------


def _logical(name: str, primitive: Primitive, doc: str, example: str) -> BinaryUfunc:
    def body(x: ArrayLike, y: ArrayLike, /, *, out: None = None, where: None = None) -> Any:
        if out is not None or where is not None:
            raise unsupported(name, out)
        x, y = promote_two(name, x, y)
        return primitive.bind(as_bool(x), as_bool(y))

    return _named(body, name, doc + " Numbers are true if they are not zero.",
                  _BROADCAST + _BOOLEANS, example, universal(2))


logical_and = _logical("logical_and", and_p, "x and y, elementwise.", "2, 0 -> False")
logical_or = _logical("logical_or", or_p, "x or y, elementwise.", "2, 0 -> True")
logical_xor = _logical("logical_xor", xor_p, "Either x or y, elementwise.", "2, 3 -> False")
logical_not = _function("logical_not", lambda x: ops.bitwise_not(as_bool(x)),
                        "not x, elementwise. Numbers are true if they are not zero.", "0 -> True",
                        of=_BOOLEANS)
bitwise_and = _combination("bitwise_and", and_p, "The bits set in both x and y.", "6, 3 -> 2")
bitwise_or = _combination("bitwise_or", or_p, "The bits set in x or y.", "6, 3 -> 7")
bitwise_xor = _combination("bitwise_xor", xor_p, "The bits set in either x or y.", "6, 3 -> 5")


def _shift(name: str, choose: Callable[[Any], Any], doc: str, example: str) -> _Binary:
    def body(x: ArrayLike, y: ArrayLike, /) -> Any:
        x, y = promote_args_numeric(name, x, y)
        return choose(x).bind(x, y)

    return _named(body, name, doc, _BROADCAST + ",\n  of the integer dtype to which they promote",
                  example)


def _right_shift_of(x: ArrayLike) -> Any:
    unsigned = dtypes.issubdtype(dtype_of(x), np.unsignedinteger)
    return shift_right_logical_p if unsigned else shift_right_arithmetic_p


left_shift = _shift("left_shift", lambda x: shift_left_p, "x << y, elementwise.", "3, 2 -> 12")
bitwise_left_shift = alias("bitwise_left_shift", left_shift)
right_shift = _shift("right_shift", _right_shift_of, "x >> y, elementwise.", "12, 2 -> 3")
bitwise_right_shift = alias("bitwise_right_shift", right_shift)


# -- choice ----------------------------------------------------------------------------------------


def _where_body(condition: ArrayLike, x: ArrayLike, y: ArrayLike, /) -> Any:
    """Elements of x or y, as the condition says."""
    check_arraylike("where", condition, x, y)
    condition = as_bool(as_operand(condition))
    if not (isinstance(x, Tracer) and isinstance(y, Tracer) and x.aval is y.aval
            and not x.aval.weak_type):
        x, y = promote_dtypes(as_operand(x), as_operand(y))
    avals = [get_aval(condition), get_aval(x), get_aval(y)]
    shapes = [aval.shape for aval in avals]
    shape = shapes[0]
    if shapes[1] != shape or shapes[2] != shape:
        try:
            shape = broadcast_shapes(*shapes)
        except ValueError:
            raise ValueError("where: Incompatible shapes for broadcasting (condition, x and y): "
                             f"shapes={shapes}{misfit(shapes)}") from None
        if shapes[0]:
            condition = stretch(condition, shape)
        x = stretch(x if shapes[1] else number_beside(x, avals[1:]), shape)
        y = stretch(y if shapes[2] else number_beside(y, avals[1:]), shape)
    return select_n_p.bind(condition, y, x)


_where_body.__name__ = _where_body.__qualname__ = "where"
_where = op_jit(_where_body)


@overload
def where(condition: ArrayLike, x: None = None, y: None = None, /, *, size: int | None = None,
          fill_value: ArrayLike | None = None) -> tuple[Array, ...]: ...


@overload
def where(condition: ArrayLike, x: ArrayLike, y: ArrayLike, /, *, size: int | None = None,
          fill_value: ArrayLike | None = None) -> Array: ...


def where(condition: ArrayLike, x: ArrayLike | None = None, y: ArrayLike | None = None, /, *,
          size: int | None = None, fill_value: ArrayLike | None = None) -> Any:
    """`x` where the condition holds, else `y`; without them, the indices where it holds.

    Args:
      condition: array of booleans, or of numbers, which are true if they are not zero.
      x, y: the values; the three are broadcast against each other.
      size, fill_value: how many indices to return, and what to pad them with (see `nonzero`).

    Returns:
      An array of the shape to which the three are broadcast, of the dtype to which `x` and `y`
      promote; of the condition alone what `nonzero` gives.

    Raises:
      TypeError: an argument is no array or scalar, or only one of x and y is given.

    >>> import pyjx as jax
    >>> jax.numpy.where(jax.numpy.arange(3) > 1, 5, 0).tolist()
    [0, 0, 5]

    What must not be computed is kept out of both values: nan times a derivative of 0 is nan.

    >>> def safe_log(x):
    ...     inside = jax.numpy.where(x > 0, x, 1.0)
    ...     return jax.numpy.where(x > 0, jax.numpy.log(inside), 0.0)
    ...
    >>> float(jax.grad(safe_log)(0.0))
    0.0
    """
    if x is None and y is None:
        (given,) = operands("where", condition)
        if size is None and get_aval(given).ndim:
            concrete_or_error(None, condition, "With one argument, jnp.where gives as many indices "
                              "as the condition holds: give their number as size, or x and y. "
                              "The size argument of jnp.nonzero must be statically specified to "
                              "use jnp.nonzero within JAX transformations.", "")
        return as_array(given).nonzero(size=size, fill_value=fill_value)
    if size is not None or fill_value is not None:
        raise ValueError("size and fill_value arguments cannot be used in three-term where "
                         "function.")
    if x is None or y is None:
        missing, place = ("x", 1) if x is None else ("y", 2)
        raise TypeError("where requires ndarray or scalar arguments, got <class 'NoneType'> at "
                        f"position {place}. Give {missing} too, as in where(condition, x, y), or "
                        "neither x nor y for the indices where the condition holds.")
    if state.dynamic is not eager_trace:
        return _where_body(condition, x, y)
    return _where(condition, x, y)


@op_jit
def clip(arr: ArrayLike | None = None, /, min: ArrayLike | None = None, max: ArrayLike | None = None
        ) -> Array:
    """The values brought between `min` and `max`; None sets no bound.

    Returns:
      An array of the shape and dtype to which the arguments are broadcast and promoted.

    Raises:
      ValueError: complex values or bounds, which have no order.

    >>> import pyjx as jax
    >>> jax.numpy.clip(jax.numpy.arange(5), 1, 3).tolist()
    [1, 1, 2, 3, 3]
    """
    if arr is None:
        raise ValueError("No input was provided to the clip function.")
    (arr,) = operands("clip", arr)
    for x in (arr, min, max):
        if x is not None and is_complex(operands("clip", x)[0]):
            raise ValueError("Clip received a complex value either through the input or the "
                             "min/max keywords. Complex values have no ordering and cannot be "
                             "clipped.")
    if min is not None:
        arr = maximum(min, arr)
    if max is not None:
        arr = minimum(max, arr)
    return as_array(arr)


# -- parts of complex numbers, and tests -----------------------------------------------------------


def as_default_float(x: ArrayLike) -> Any:
    """Integers in the default float dtype, whatever their size; others as they are."""
    return x if is_inexact(x) else convert(x, dtypes.default_float_dtype())


def _imag(x: ArrayLike) -> Any:
    return ops.imag(x) if is_complex(x) else as_array(filled_like(x, 0))


real = _function("real", lambda x: ops.real(x) if is_complex(x) else as_array(x),
                 "The real part, elementwise.", "1 + 2j -> 1.0", of=_REAL)
imag = _function("imag", _imag, "The imaginary part, elementwise.", "1 + 2j -> 2.0", of=_REAL)


@op_jit(static_argnames=("deg",))
def angle(z: ArrayLike, deg: bool = False) -> Array:
    """The argument of complex numbers, in radians or degrees.

    Returns:
      An array of the argument's shape, of a float dtype: that of the parts of complex numbers.

    >>> import pyjx as jax
    >>> jax.numpy.angle(1j, deg=True).item()
    90.0
    """
    (z,) = operands("angle", z)
    re = ops.real(z) if is_complex(z) else as_default_float(z)
    if not is_inexact(z) or (not is_complex(z) and not get_aval(z).ndim):
        re = convert(re, dtypes.default_float_dtype())
    im = ops.imag(z) if is_complex(z) else filled_like(re, 0)
    out = ops.atan2(im, re)
    return _times(out, 180 / np.pi) if deg else out


def is_finite(x: ArrayLike) -> Any:
    if is_complex(x):
        return ops.bitwise_and(ops.is_finite(ops.real(x)), ops.is_finite(ops.imag(x)))
    return ops.is_finite(x) if is_inexact(x) else as_array(filled_like(x, True, bool))


def _isinf(x: ArrayLike) -> Any:
    if is_complex(x):
        return ops.bitwise_or(_isinf(ops.real(x)), _isinf(ops.imag(x)))
    if not is_inexact(x):
        return as_array(filled_like(x, False, bool))
    return ops.eq(ops.abs(x), scalar_constant(np.inf, dtype_of(x)))


def _infinity_test(name: str, value: float) -> _Unary:
    def body(x: ArrayLike, /, out: None = None) -> Any:
        if out is not None:
            raise NotImplementedError(f"{name}: The 'out' argument to isneginf/isposinf is not "
                                      "supported.")
        (x,) = operands(name, x)
        if is_complex(x):
            raise ValueError("isposinf/isneginf are not well defined for complex types")
        if not is_inexact(x):
            return as_array(filled_like(x, False, bool))
        return ops.eq(x, scalar_constant(value, dtype_of(x)))

    return _named(body, name, f"Where x is {value}.", _OF_ARGUMENT + _BOOLEANS, "1.0 -> False")


isfinite = _function("isfinite", is_finite, "Where x is neither infinite nor nan.", "1.0 -> True",
                     of=_BOOLEANS)
isinf = _function("isinf", _isinf, "Where x is infinite.", "1.0 -> False", of=_BOOLEANS)
isnan = _function("isnan", lambda x: ops.ne(x, x), "Where x is nan.", "1.0 -> False", of=_BOOLEANS)
isposinf = _infinity_test("isposinf", np.inf)
isneginf = _infinity_test("isneginf", -np.inf)
iscomplex = _function("iscomplex", lambda x: as_bool(_imag(x)), "Where x has an imaginary part.",
                      "1 + 2j -> True", by_keyword=True, of=_BOOLEANS)
isreal = _function("isreal", lambda x: ops.bitwise_not(as_bool(_imag(x))), "Where x is real.",
                   "1 + 2j -> False", by_keyword=True, of=_BOOLEANS)


def iscomplexobj(x: Any) -> bool:
    """Whether the dtype of x is complex.

    Returns:
      A Python bool.

    >>> import pyjx as jax
    >>> jax.numpy.iscomplexobj(jax.numpy.ones(2))
    False
    """
    return x is not None and not isinstance(x, str) and _complex_object(x)


def _complex_object(x: Any) -> bool:
    if hasattr(type(x), "__jax_array__"):
        x = x.__jax_array__()
    try:
        return bool(dtypes.dtype(x) in dtypes.complex_dtypes)
    except (TypeError, ValueError):
        return bool(np.iscomplexobj(x))


def isrealobj(x: object) -> bool:
    """Whether the dtype of x is not complex.

    Returns:
      A Python bool.

    >>> import pyjx as jax
    >>> jax.numpy.isrealobj(jax.numpy.ones(2))
    True
    """
    return not iscomplexobj(x)
