"""Exponentials, logarithms, roots, trigonometric and hyperbolic functions, elementwise."""

from __future__ import annotations

import enum
import math
from typing import Any

import numpy as np

from pyjx.core import dtypes
from pyjx.core.arithmetic import Runs, transcendental
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.jaxpr import JaxprEqn
from pyjx.core.primitive import DEAR, Primitive, register
from pyjx.core.records import Alike
from pyjx.core.scalars import is_scalar_constant, scalar_constant
from pyjx.core.value_texts import shortened
from pyjx.engine.decompose import program_of
from pyjx.engine.moves import constant_beside
from pyjx.engine.primitives import cast
from pyjx.engine.rules import elementwise_batch, jvp_by_operand, jvp_by_result
from pyjx.engine.tangents import full_aval
from pyjx.engine.types import Value
from pyjx.lax.common import all_weak, nary_shape, operand
from pyjx.lax.compare import abs, clamp, eq, select
from pyjx.lax.convert import complex, imag, real, stop_gradient
from pyjx.lax.elementwise import (
    FLOATING,
    INEXACT,
    REAL_OR_COMPLEX,
    add,
    broadcast_operands,
    check_kinds,
    coefficient,
    differentiate,
    differentiate_by_result,
    div,
    elementwise,
    in_single,
    integer_pow,
    like,
    mul,
    neg,
    one_minus_square,
    operands,
    square,
    sub,
)


class AccuracyMode(enum.Enum):
    """How accurately to compute a function, where an implementation has a choice.

    By DEFAULT slopes of `tanh` and `logistic` are as accurate as the functions, which are rounded
    to 1 long before their slopes are 0; without a mode slopes are accurate to their own size.
    """

    HIGHEST = 1
    DEFAULT = 2


class Tolerance(Alike):
    """The error that is allowed of a function: absolute, relative, and in units in the last place.

    Raises:
      ValueError: one of them is negative, or all are zero.
    """

    __slots__ = ("atol", "rtol", "ulps")

    def __init__(self, atol: float = 0.0, rtol: float = 0.0, ulps: int = 0) -> None:
        if atol < 0.0 or rtol < 0.0 or ulps < 0:
            raise ValueError("Tolerances must be non-negative.")
        if atol == rtol == ulps == 0:
            raise ValueError("At least one of atol, rtol, or ulps must be set.")
        self.atol = atol
        self.rtol = rtol
        self.ulps = ulps

    def __repr__(self) -> str:
        return f"Tolerance(atol={self.atol}, rtol={self.rtol}, ulps={self.ulps})"


def accurate(name: str, accuracy: AccuracyMode | Tolerance | None
            ) -> AccuracyMode | Tolerance | None:
    """The argument `accuracy` of a function of this name; NotImplementedError where it is none."""
    if accuracy is not None and not isinstance(accuracy, (AccuracyMode, Tolerance)):
        raise NotImplementedError(f"{name}: Accuracy {shortened(accuracy)} not supported: accuracy "
                                  "must be None, an AccuracyMode or a Tolerance.")
    return accuracy


# -- exponentials and logarithms -------------------------------------------------------------------

exp_p = elementwise("exp", INEXACT, arithmetic=transcendental, cost=DEAR)
# d e^x = e^x dx
differentiate_by_result(exp_p, lambda g, ans, x: mul(g, ans))


def exp(x: ArrayLike, *, accuracy: AccuracyMode | Tolerance | None = None) -> Array:
    """e^x.

    Args:
      x: an array of an inexact dtype.
      accuracy: an `AccuracyMode` or a `Tolerance`, where the result need be more, or may be less,
        accurate than usual.

    Raises:
      TypeError: `x` is not of an inexact dtype, or `accuracy` of another type.

    >>> import pyjx as jax
    >>> float(jax.lax.exp(0.0))
    1.0
    """
    return exp_p.bind(operand("exp", x), accuracy=accurate("exp", accuracy))


def _exp2(x: Value, *, accuracy: AccuracyMode | Tolerance | None = None) -> Array:
    return exp(mul(like(x, math.log(2.0)), x), accuracy=accuracy)


exp2_p = elementwise("exp2", INEXACT, arithmetic=transcendental, decomposition=_exp2, cost=DEAR)
# d 2^x = log(2) 2^x dx
differentiate_by_result(exp2_p, lambda g, ans, x: mul(coefficient(x, math.log(2.0)), mul(g, ans)))


def exp2(x: ArrayLike, *, accuracy: AccuracyMode | Tolerance | None = None) -> Array:
    """2^x. Arguments and errors as for `exp`.

    Args:
      x: an array or a number, of a floating or complex dtype.
      accuracy: how exact XLA computes it: None for what it does by itself, an `AccuracyMode`, or a
        `Tolerance`.

    >>> import pyjx as jax
    >>> float(jax.lax.exp2(0.0))
    1.0
    """
    return exp2_p.bind(operand("exp2", x), accuracy=accurate("exp2", accuracy))


expm1_p = elementwise("expm1", INEXACT, arithmetic=transcendental, cost=DEAR)
# d (e^x - 1) = e^x dx
differentiate(expm1_p, lambda g, x: mul(g, exp(x)))


def expm1(x: ArrayLike, *, accuracy: AccuracyMode | Tolerance | None = None) -> Array:
    """e^x - 1, accurate near 0. Arguments and errors as for `exp`.

    Args:
      x: an array or a number, of a floating or complex dtype.
      accuracy: how exact XLA computes it: None for what it does by itself, an `AccuracyMode`, or a
        `Tolerance`.

    >>> import pyjx as jax
    >>> float(jax.lax.expm1(0.0))
    0.0
    """
    return expm1_p.bind(operand("expm1", x), accuracy=accurate("expm1", accuracy))


log_p = elementwise("log", INEXACT, arithmetic=transcendental, cost=DEAR)
# d log x = dx / x
differentiate(log_p, lambda g, x: div(g, x))


def log(x: ArrayLike, *, accuracy: AccuracyMode | Tolerance | None = None) -> Array:
    """The natural logarithm: nan for negative real x. Arguments and errors as for `exp`.

    Args:
      x: an array or a number, of a floating or complex dtype.
      accuracy: how exact XLA computes it: None for what it does by itself, an `AccuracyMode`, or a
        `Tolerance`.

    >>> import pyjx as jax
    >>> float(jax.lax.log(1.0))
    0.0
    """
    return log_p.bind(operand("log", x), accuracy=accurate("log", accuracy))


def _log2(x: Value, *, accuracy: AccuracyMode | Tolerance | None = None) -> Array:
    # log2(z) = log(z) / log(2), part by part: a complex product would spoil infinities.
    y = log(x, accuracy=accuracy)
    if not dtypes.issubdtype(get_aval(x).dtype, np.complexfloating):
        return mul(y, like(y, 1 / math.log(2.0)))

    re, im = real(y), imag(y)
    scale = like(re, 1 / math.log(2.0))
    return complex(mul(re, scale), mul(im, scale))


log2_p = elementwise("log2", INEXACT, decomposition=_log2)
# d log2 x = dx / (x log 2)
differentiate(log2_p, lambda g, x: div(g, mul(x, coefficient(x, math.log(2.0)))))


def log2(x: ArrayLike, *, accuracy: AccuracyMode | Tolerance | None = None) -> Array:
    """The logarithm to base 2. Arguments and errors as for `exp`.

    Args:
      x: an array or a number, of a floating or complex dtype.
      accuracy: how exact XLA computes it: None for what it does by itself, an `AccuracyMode`, or a
        `Tolerance`.

    >>> import pyjx as jax
    >>> float(jax.lax.log2(1.0))
    0.0
    """
    return log2_p.bind(operand("log2", x), accuracy=accurate("log2", accuracy))


log1p_p = elementwise("log1p", INEXACT, arithmetic=transcendental, cost=DEAR)
# d log(1 + x) = dx / (1 + x)
differentiate(log1p_p, lambda g, x: div(g, add(x, like(x, 1))))


def log1p(x: ArrayLike, *, accuracy: AccuracyMode | Tolerance | None = None) -> Array:
    """log(1 + x), accurate near 0. Arguments and errors as for `exp`.

    Args:
      x: an array or a number, of a floating or complex dtype.
      accuracy: how exact XLA computes it: None for what it does by itself, an `AccuracyMode`, or a
        `Tolerance`.

    >>> import pyjx as jax
    >>> float(jax.lax.log1p(0.0))
    0.0
    """
    return log1p_p.bind(operand("log1p", x), accuracy=accurate("log1p", accuracy))


def _logistic(x: Value, *, accuracy: AccuracyMode | Tolerance | None = None) -> Array:
    # in these operations also for half-precision numbers, whose last bits then agree with JAX's
    return div(like(x, 1), add(like(x, 1), exp(neg(x))))


logistic_p = elementwise("logistic", INEXACT, arithmetic=transcendental, decomposition=_logistic,
                         cost=DEAR)


def _told_by_value(x: Value, accuracy: AccuracyMode | Tolerance | None) -> bool:
    """Whether the value of a sigmoid function tells its slope: of complex numbers always."""
    return accuracy is AccuracyMode.DEFAULT or get_aval(x).dtype in dtypes.complex_dtypes


@in_single
def _logistic_grad(x: Value) -> Array:
    """s (1 - s) for s = 1 / (1 + e^-x), as s (s e^-x): right where s is rounded to 1, too.

    The exponential is that of the function, but s is made again, of one without infinities, where
    the slope is 0: XLA would keep the function's s beside it for the backward pass.
    """
    e = exp(neg(x))
    e = select(eq(e, like(x, math.inf)), full_aval(get_aval(x), 0), e)
    s = div(like(x, 1), add(like(x, 1), e))
    return mul(s, mul(s, e))


logistic_grad_p = elementwise("logistic_grad", FLOATING, arithmetic=transcendental,
                              decomposition=_logistic_grad, cost=DEAR)
logistic_p.define(jvp=jvp_by_result(logistic_p, lambda g, ans, x, accuracy=None: mul(g, (
    mul(ans, sub(like(x, 1), ans)) if _told_by_value(x, accuracy) else logistic_grad_p.bind(x)))))
# d s' = s' (1 - 2 s) dx
differentiate_by_result(logistic_grad_p, lambda g, ans, x: mul(g, mul(ans, sub(
    like(x, 1), mul(like(x, 2), logistic_p.bind(x, accuracy=None))))))


def logistic(x: ArrayLike, *, accuracy: AccuracyMode | Tolerance | None = None) -> Array:
    """1 / (1 + e^-x). Arguments and errors as for `exp`.

    Args:
      x: an array or a number, of a floating or complex dtype.
      accuracy: how exact XLA computes it: None for what it does by itself, an `AccuracyMode`, or a
        `Tolerance`.

    >>> import pyjx as jax
    >>> float(jax.lax.logistic(0.0))
    0.5
    """
    return logistic_p.bind(operand("logistic", x), accuracy=accurate("logistic", accuracy))


# -- roots -----------------------------------------------------------------------------------------

sqrt_p = elementwise("sqrt", INEXACT, arithmetic=transcendental, cost=DEAR)
# d sqrt(x) = dx / (2 sqrt(x))
differentiate_by_result(sqrt_p, lambda g, ans, x: mul(g, div(coefficient(x, 0.5), ans)))


def sqrt(x: ArrayLike, *, accuracy: AccuracyMode | Tolerance | None = None) -> Array:
    """The square root: nan for negative real x. Arguments and errors as for `exp`.

    Args:
      x: an array or a number, of a floating or complex dtype.
      accuracy: how exact XLA computes it: None for what it does by itself, an `AccuracyMode`, or a
        `Tolerance`.

    >>> import pyjx as jax
    >>> float(jax.lax.sqrt(4.0))
    2.0
    """
    return sqrt_p.bind(operand("sqrt", x), accuracy=accurate("sqrt", accuracy))


rsqrt_p = elementwise("rsqrt", INEXACT, arithmetic=transcendental, cost=DEAR)
# d x^(-1/2) = -x^(-1/2) / (2 x) dx
differentiate_by_result(rsqrt_p, lambda g, ans, x: mul(g, mul(coefficient(x, -0.5), div(ans, x))))


def rsqrt(x: ArrayLike, *, accuracy: AccuracyMode | Tolerance | None = None) -> Array:
    """1 / sqrt(x). Arguments and errors as for `exp`.

    Args:
      x: an array or a number, of a floating or complex dtype.
      accuracy: how exact XLA computes it: None for what it does by itself, an `AccuracyMode`, or a
        `Tolerance`.

    >>> import pyjx as jax
    >>> float(jax.lax.rsqrt(4.0))
    0.5
    """
    return rsqrt_p.bind(operand("rsqrt", x), accuracy=accurate("rsqrt", accuracy))


cbrt_p = elementwise("cbrt", FLOATING, arithmetic=transcendental)
# d x^(1/3) = dx / (3 x^(2/3))
differentiate_by_result(
    cbrt_p, lambda g, ans, x: mul(g, mul(coefficient(x, 1 / 3), integer_pow(ans, -2))))


def cbrt(x: ArrayLike, *, accuracy: AccuracyMode | Tolerance | None = None) -> Array:
    """The real cube root, of negative x too. Arguments as for `exp`.

    Args:
      x: an array or a number, of a floating dtype.
      accuracy: how exact XLA computes it: None for what it does by itself, an `AccuracyMode`, or a
        `Tolerance`.

    Raises:
      TypeError: `x` is not of a floating dtype.

    >>> import pyjx as jax
    >>> float(jax.lax.cbrt(-8.0))
    -2.0
    """
    return cbrt_p.bind(operand("cbrt", x), accuracy=accurate("cbrt", accuracy))


# -- powers ---------------------------------------------------------------------------------------


def _pow_shape(x: ShapedArray, y: ShapedArray) -> ShapedArray:
    check_kinds("pow", (INEXACT, REAL_OR_COMPLEX), (x, y))
    if x.dtype != y.dtype and not dtypes.issubdtype(y.dtype, np.integer):
        raise TypeError("the first argument to pow must have an inexact dtype (float or complex), "
                        "and the second argument must have an inexact or integer dtype, and two "
                        f"inexact dtypes must match, but got {x.dtype} and {y.dtype} respectively.")
    return ShapedArray(nary_shape("pow", (x, y)), x.dtype, all_weak((x, y)))


def _pow_tangent_x(g: Value, x: Value, y: Array) -> Array:
    # d/dx x^y = y x^(y-1); for integers y = 0 it is 0 even at x = 0
    dtype = get_aval(x).dtype
    integer = dtypes.issubdtype(get_aval(y).dtype, np.integer)
    if is_scalar_constant(y):
        less = y if integer and y == 0 else y - 1
        less = less if integer else scalar_constant(less, dtype)
        return mul(g, mul(scalar_constant(y, dtype), pow(cast(x, dtype), less)))
    less = sub(y, scalar_constant(1, get_aval(y).dtype))
    if integer:
        less = select(eq(y, like(y, 0)), y, less)
        y = constant_beside(cast(y, dtype), get_aval(x))
    return mul(g, mul(y, pow(x, less)))


def _pow_tangent_y(g: Value, ans: Value, x: Value, y: Value) -> Array:
    # d/dy x^y = log(x) x^y, where log(0) is taken as 0: its limit for y > 0

    if is_scalar_constant(x):
        safe = like(g, x if x != 0 else 1)
    else:
        safe = select(eq(x, like(x, 0)), full_aval(get_aval(x), 1), x)
    return cast(mul(g, mul(log(safe), ans)), get_aval(ans).dtype)


pow_p = register(Primitive("pow", arithmetic=transcendental, shape_rule=_pow_shape, cost=DEAR))
pow_p.define(batch=elementwise_batch(pow_p), jvp=jvp_by_result(
    pow_p, lambda g, ans, x, y: _pow_tangent_x(g, x, y), _pow_tangent_y))


def pow(x: ArrayLike, y: ArrayLike) -> Array:
    """x to the power y.

    Args:
      x: an array of an inexact dtype.
      y: an array of the same dtype, or of integers.

    Raises:
      TypeError: other dtypes, or shapes that do not broadcast.

    >>> import pyjx as jax
    >>> float(jax.lax.pow(9.0, 0.5))
    3.0
    """
    x, y = operand("pow", x), operand("pow", y, 1)
    if get_aval(x).shape != get_aval(y).shape:
        x, y = broadcast_operands("pow", x, y)
    return pow_p.bind(x, y)


# -- trigonometric functions -----------------------------------------------------------------------

sin_p = elementwise("sin", INEXACT, arithmetic=transcendental, cost=DEAR)
cos_p = elementwise("cos", INEXACT, arithmetic=transcendental, cost=DEAR)
tan_p = elementwise("tan", INEXACT, arithmetic=transcendental)
# d sin x = cos x dx
differentiate(sin_p, lambda g, x: mul(g, cos(x)))
# d cos x = -sin x dx
differentiate(cos_p, lambda g, x: neg(mul(g, sin(x))))
# d tan x = (1 + tan^2 x) dx
differentiate_by_result(tan_p, lambda g, ans, x: mul(g, add(coefficient(x, 1), square(ans))))


def sin(x: ArrayLike, *, accuracy: AccuracyMode | Tolerance | None = None) -> Array:
    """The sine of x, an angle in radians. Arguments and errors as for `exp`.

    Args:
      x: an array or a number, of a floating or complex dtype.
      accuracy: how exact XLA computes it: None for what it does by itself, an `AccuracyMode`, or a
        `Tolerance`.

    >>> import pyjx as jax
    >>> float(jax.lax.sin(0.0))
    0.0
    """
    return sin_p.bind(operand("sin", x), accuracy=accurate("sin", accuracy))


def cos(x: ArrayLike, *, accuracy: AccuracyMode | Tolerance | None = None) -> Array:
    """The cosine of x, an angle in radians. Arguments and errors as for `exp`.

    Args:
      x: an array or a number, of a floating or complex dtype.
      accuracy: how exact XLA computes it: None for what it does by itself, an `AccuracyMode`, or a
        `Tolerance`.

    >>> import pyjx as jax
    >>> float(jax.lax.cos(0.0))
    1.0
    """
    return cos_p.bind(operand("cos", x), accuracy=accurate("cos", accuracy))


def tan(x: ArrayLike, *, accuracy: AccuracyMode | Tolerance | None = None) -> Array:
    """The tangent of x, an angle in radians. Arguments and errors as for `exp`.

    Args:
      x: an array or a number, of a floating or complex dtype.
      accuracy: how exact XLA computes it: None for what it does by itself, an `AccuracyMode`, or a
        `Tolerance`.

    >>> import pyjx as jax
    >>> float(jax.lax.tan(0.0))
    0.0
    """
    return tan_p.bind(operand("tan", x), accuracy=accurate("tan", accuracy))


asin_p = elementwise("asin", INEXACT, arithmetic=transcendental)
acos_p = elementwise("acos", INEXACT, arithmetic=transcendental)
atan_p = elementwise("atan", INEXACT, arithmetic=transcendental)
# d asin x = dx / sqrt(1 - x^2)
differentiate(asin_p, lambda g, x: mul(g, rsqrt(one_minus_square(x))))
# d acos x = -dx / sqrt(1 - x^2)
differentiate(acos_p, lambda g, x: mul(g, neg(rsqrt(one_minus_square(x)))))
# d atan x = dx / (1 + x^2)
differentiate(atan_p, lambda g, x: div(g, add(coefficient(x, 1), square(x))))


def asin(x: ArrayLike) -> Array:
    """The angle in [-pi/2, pi/2] whose sine is x; nan for real x outside [-1, 1].

    Args:
      x: an array or a number, of a floating or complex dtype.

    Raises:
      TypeError: `x` is not of an inexact dtype.

    >>> import pyjx as jax
    >>> float(jax.lax.asin(0.0))
    0.0
    """
    return asin_p.bind(operand("asin", x))


def acos(x: ArrayLike) -> Array:
    """The angle in [0, pi] whose cosine is x; nan for real x outside [-1, 1].

    Args:
      x: an array or a number, of a floating or complex dtype.

    Raises:
      TypeError: `x` is not of an inexact dtype.

    >>> import pyjx as jax
    >>> float(jax.lax.acos(1.0))
    0.0
    """
    return acos_p.bind(operand("acos", x))


def atan(x: ArrayLike) -> Array:
    """The angle in [-pi/2, pi/2] whose tangent is x.

    Args:
      x: an array or a number, of a floating or complex dtype.

    Raises:
      TypeError: `x` is not of an inexact dtype.

    >>> import pyjx as jax
    >>> float(jax.lax.atan(0.0))
    0.0
    """
    return atan_p.bind(operand("atan", x))


atan2_p = elementwise("atan2", INEXACT, INEXACT, arithmetic=transcendental)
# d atan2(y, x) = (x dy - y dx) / (x^2 + y^2)
atan2_p.define(jvp=jvp_by_operand(
    atan2_p,
    lambda g, y, x: mul(g, div(x, add(square(y), square(x)))),
    lambda g, y, x: mul(g, div(neg(y), add(square(y), square(x)))),
))


def atan2(x: ArrayLike, y: ArrayLike) -> Array:
    """The angle of the point (y, x): atan(x / y), in the quadrant of the signs of both.

    Args:
      x, y: ordinate and abscissa: arrays or numbers of one floating or complex dtype. Shapes are
        equal, but for axes of size 1; one may be a scalar. Nothing is promoted.

    Raises:
      TypeError: the dtypes differ or are not inexact, or the shapes do not broadcast.

    >>> import pyjx as jax
    >>> float(jax.lax.atan2(0.0, 1.0))
    0.0
    """
    return atan2_p.bind(*operands("atan2", x, y))


# -- hyperbolic functions --------------------------------------------------------------------------

sinh_p = elementwise("sinh", INEXACT, arithmetic=transcendental)
cosh_p = elementwise("cosh", INEXACT, arithmetic=transcendental)
tanh_p = elementwise("tanh", INEXACT, arithmetic=transcendental, cost=DEAR)
# d sinh x = cosh x dx
differentiate(sinh_p, lambda g, x: mul(g, cosh(x)))
# d cosh x = sinh x dx
differentiate(cosh_p, lambda g, x: mul(g, sinh(x)))


# Programs of fewer operations on numbers than a thousand run in the thread that calls them; so few
# numbers are better served by exponentials, which are not counted.
_FEW = 180
# How often to halve a number to where a series of how many terms has all digits.
_HALVED = {np.dtype(np.float32): (5, 7), np.dtype(np.float64): (8, 12)}


def _paired(x: Value, coefficients: list[Any]) -> Array:
    """A polynomial, c_0 first, as one in x^2 of sums of two terms, and so on (Estrin's scheme), so
    that little waits for what is before it."""
    if len(coefficients) == 1:
        return coefficients[0]
    pairs = [add(mul(x, high), low) for low, high in zip(
        coefficients[::2], coefficients[1::2], strict=False)]
    return _paired(mul(x, x), pairs + coefficients[2 * len(pairs):])


@in_single
def _tanh_grad(x: Value) -> Array:
    """1 - tanh^2 x = 1 / cosh^2 x, right in the tails, too, where it is less than what tanh x is
    rounded to.

    Of many numbers it takes no exponential: s = 4 sinh^2 x has a series, and becomes s (s + 4)
    where x doubles; and 4 cosh^2 x = (s + 2)^2 for s at x / 2.
    """
    aval = get_aval(x)
    halvings, terms = _HALVED[aval.dtype]
    if type(aval.size) is int and aval.size < _FEW:
        e = exp(mul(x, like(x, 2)))
        return div(like(x, 4), add(add(e, like(x, 2)), div(like(x, 1), e)))
    square = mul(x, x)
    s = mul(square, _paired(square, [like(x, 2 * 4.0 ** (n - n * halvings) / math.factorial(2 * n))
                                     for n in range(1, terms + 1)]))
    for _ in range(halvings - 1):
        s = mul(s, add(s, like(x, 4)))
    root = add(s, like(x, 2))
    return div(like(x, 4), mul(root, root))


def _tanh_grad_arithmetic(eqn: JaxprEqn) -> list[Runs]:
    """A series, its doublings and a quotient; of few numbers an exponential in their place."""
    return [Runs(program_of(eqn, _tanh_grad), 1.0)]


tanh_grad_p = elementwise("tanh_grad", FLOATING, arithmetic=_tanh_grad_arithmetic,
                          decomposition=_tanh_grad, cost=DEAR)
tanh_p.define(jvp=jvp_by_result(tanh_p, lambda g, ans, x, accuracy=None: mul(g, (
    one_minus_square(ans) if _told_by_value(x, accuracy) else tanh_grad_p.bind(x)))))
# d t' = -2 t t' dx
differentiate_by_result(tanh_grad_p, lambda g, ans, x: mul(g, mul(
    ans, mul(like(x, -2), tanh_p.bind(x, accuracy=None)))))


def sinh(x: ArrayLike) -> Array:
    """The hyperbolic sine, (e^x - e^-x) / 2.

    Args:
      x: an array or a number, of a floating or complex dtype.

    Raises:
      TypeError: `x` is not of an inexact dtype.

    >>> import pyjx as jax
    >>> float(jax.lax.sinh(0.0))
    0.0
    """
    return sinh_p.bind(operand("sinh", x))


def cosh(x: ArrayLike) -> Array:
    """The hyperbolic cosine, (e^x + e^-x) / 2.

    Args:
      x: an array or a number, of a floating or complex dtype.

    Raises:
      TypeError: `x` is not of an inexact dtype.

    >>> import pyjx as jax
    >>> float(jax.lax.cosh(0.0))
    1.0
    """
    return cosh_p.bind(operand("cosh", x))


def tanh(x: ArrayLike, *, accuracy: AccuracyMode | Tolerance | None = None) -> Array:
    """The hyperbolic tangent, sinh x / cosh x. Arguments and errors as for `exp`.

    Args:
      x: an array or a number, of a floating or complex dtype.
      accuracy: how exact XLA computes it: None for what it does by itself, an `AccuracyMode`, or a
        `Tolerance`.

    >>> import pyjx as jax
    >>> float(jax.lax.tanh(0.0))
    0.0
    """
    return tanh_p.bind(operand("tanh", x), accuracy=accurate("tanh", accuracy))


def _asinh_slope(x: Value) -> Array:
    # 1 / sqrt(x^2 + 1), as r / sqrt((r x)^2 + r^2) with r = 1 / max(|x|, 1): x^2 may overflow
    size = stop_gradient(abs(x))
    bound = float(dtypes.finfo(get_aval(size).dtype).max) ** 0.5
    r = integer_pow(clamp(like(size, 1), size, like(size, bound)), -1)
    aval = get_aval(x)
    r = cast(r, aval.dtype, aval.weak_type and not aval.shape)  # as a `coefficient`
    return mul(r, rsqrt(add(square(mul(x, r)), square(r))))


asinh_p = elementwise("asinh", INEXACT, arithmetic=transcendental)
acosh_p = elementwise("acosh", INEXACT, arithmetic=transcendental)
atanh_p = elementwise("atanh", INEXACT, arithmetic=transcendental)
# d asinh x = dx / sqrt(x^2 + 1)
differentiate(asinh_p, lambda g, x: mul(g, _asinh_slope(x)))
# d acosh x = dx / (sqrt(x - 1) sqrt(x + 1))
differentiate(
    acosh_p, lambda g, x: mul(g, mul(rsqrt(sub(x, like(x, 1))), rsqrt(add(x, like(x, 1))))))
# d atanh x = dx / (1 - x^2)
differentiate(atanh_p, lambda g, x: div(g, one_minus_square(x)))


def asinh(x: ArrayLike) -> Array:
    """The number whose hyperbolic sine is x.

    Args:
      x: an array or a number, of a floating or complex dtype.

    Raises:
      TypeError: `x` is not of an inexact dtype.

    >>> import pyjx as jax
    >>> float(jax.lax.asinh(0.0))
    0.0
    """
    return asinh_p.bind(operand("asinh", x))


def acosh(x: ArrayLike) -> Array:
    """The number whose hyperbolic cosine is x; nan for real x below 1.

    Args:
      x: an array or a number, of a floating or complex dtype.

    Raises:
      TypeError: `x` is not of an inexact dtype.

    >>> import pyjx as jax
    >>> float(jax.lax.acosh(1.0))
    0.0
    """
    return acosh_p.bind(operand("acosh", x))


def atanh(x: ArrayLike) -> Array:
    """The number whose hyperbolic tangent is x; nan for real x outside [-1, 1].

    Args:
      x: an array or a number, of a floating or complex dtype.

    Raises:
      TypeError: `x` is not of an inexact dtype.

    >>> import pyjx as jax
    >>> float(jax.lax.atanh(0.0))
    0.0
    """
    return atanh_p.bind(operand("atanh", x))
