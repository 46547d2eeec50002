"""Elementwise functions made of several operations: parts of floats, closeness, formulas."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from pyjx import lax as ops
from pyjx import numpy as jnp
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike, AxisLike, DTypeLike
from pyjx.core.avals import get_aval
from pyjx.core.scalars import scalar_constant
from pyjx.lax.elementwise import in_single, stretch
from pyjx.numpy import monoids
from pyjx.numpy.operands import (
    alias,
    beside_constants,
    canonical_axes,
    constant_like,
    dtype_of,
    filled_like,
    is_complex,
    is_inexact,
    is_integer,
    numpy_function,
)
from pyjx.numpy.promotion import (
    any_ranks,
    common_shape,
    convert,
    narrowed,
    no_out,
    operands,
    promote_args,
    promote_args_inexact,
    promote_dtypes,
    promote_dtypes_inexact,
    promote_inexact,
    spread_all,
)
from pyjx.numpy.ufuncs import as_array, is_finite
from pyjx.numpy.universal import BinaryUfunc, universal, unsupported
from pyjx.runtime.operations import op_jit
from pyjx.transforms.custom_jvp import custom_jvp

# -- two arguments ---------------------------------------------------------------------------------


@op_jit
def arctan2(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The angle of the point (x2, x1), in radians from -pi to pi, elementwise.

    >>> import pyjx as jax
    >>> jax.numpy.arctan2(0.0, jax.numpy.array([1.0, -1.0])).tolist()
    [0.0, 3.1415927410125732]
    """
    return ops.atan2(*promote_args_inexact("arctan2", x1, x2))


atan2 = alias("atan2", arctan2)


def _log_of_sum(exponential: Callable[[Any], Any], scale: float) -> Callable[[Any, Any], Any]:
    """log_b(b^x + b^y) = max(x, y) + log_b(1 + b^-|x - y|) of real numbers; `scale` is 1 / log(b).

    Its derivative is s dx + (1 - s) dy with s = 1 / (1 + b^(y - x)). The difference of equal
    infinities counts as 0; that of other numbers has derivatives, for which s asks.
    """
    def gap(same: ArrayLike, x: ArrayLike, y: ArrayLike) -> Any:
        return ops.select(same, filled_like(x, 0), ops.sub(x, y))

    def share(x: ArrayLike, y: ArrayLike) -> Any:
        infinite = ops.eq(ops.abs(x), constant_like(x, math.inf))
        difference = gap(ops.bitwise_and(ops.eq(x, y), infinite), x, y)
        return ops.logistic(times(difference, 1 / scale))

    def times(x: ArrayLike, factor: float) -> Any:
        return x if factor == 1 else ops.mul(x, constant_like(x, factor))

    @custom_jvp
    def log_of_sum(x: ArrayLike, y: ArrayLike) -> Any:
        rest = ops.log1p(exponential(ops.neg(ops.abs(gap(ops.eq(x, y), x, y)))))
        return ops.add(ops.max(x, y), times(rest, scale))

    log_of_sum.defjvps(
        lambda g, out, x, y: ops.mul(g, share(x, y)), lambda g, out, x, y: ops.mul(g, share(y, x)))
    return log_of_sum


_logaddexp = _log_of_sum(ops.exp, 1)
_logaddexp2 = _log_of_sum(ops.exp2, 1 / math.log(2.0))


@universal(2)
def logaddexp(x1: ArrayLike, x2: ArrayLike, /, *, out: None = None, where: None = None) -> Array:
    """log(exp(x1) + exp(x2)), elementwise, without overflow.

    >>> import pyjx as jax
    >>> jax.numpy.logaddexp(1000.0, 1000.0).item()
    1000.6931762695312
    """
    if out is not None or where is not None:
        raise unsupported("logaddexp", out)
    x, y = promote_args_inexact("logaddexp", x1, x2)
    if is_complex(x):
        return _complex_logaddexp(x, y)
    return _logaddexp(*spread_all("logaddexp", x, y))


def _complex_logaddexp(x: ArrayLike, y: ArrayLike) -> Any:
    """The value with the larger real part, plus log1p(exp(-gap)); brought to the main branch."""
    x, y = map(beside_constants, spread_all("logaddexp", x, y))
    swap = ops.lt(ops.real(x), ops.real(y))
    top, low = ops.select(swap, y, x), ops.select(swap, x, y)
    same = ops.bitwise_and(ops.eq(x, y), ops.bitwise_not(is_finite(x)))
    gap = ops.select(same, filled_like(x, 0), ops.sub(low, top))
    out = ops.add(top, ops.log1p(ops.exp(gap)))
    angle = ops.imag(out)
    turn = constant_like(angle, 2 * np.pi)
    half = constant_like(angle, np.pi)
    turns = ops.ceil(ops.div(ops.sub(angle, half), turn))
    return ops.complex(ops.real(out), ops.sub(angle, ops.mul(turns, turn)))


@universal(2)
def logaddexp2(x1: ArrayLike, x2: ArrayLike, /, *, out: None = None, where: None = None) -> Array:
    """log2(2**x1 + 2**x2), elementwise, without overflow.

    >>> import pyjx as jax
    >>> jax.numpy.logaddexp2(3.0, 3.0).item()
    4.0
    """
    if out is not None or where is not None:
        raise unsupported("logaddexp2", out)
    x, y = promote_args_inexact("logaddexp2", x1, x2)
    if is_complex(x):
        scale = constant_like(x, np.log(2.0))
        return ops.div(_complex_logaddexp(ops.mul(x, scale), ops.mul(y, scale)), scale)
    return _logaddexp2(*map(beside_constants, spread_all("logaddexp2", x, y)))


@numpy_function(static_argnames=("function", "axis", "dtype", "keepdims"))
def _log_sum(function: BinaryUfunc, a: ArrayLike, axis: AxisLike, dtype: DTypeLike, keepdims: bool,
             initial: ArrayLike | None, where: ArrayLike | None) -> Any:
    """log sum exp(a) to the base of the function, as m + log sum exp(a - m)."""
    x = monoids.cast(a, dtype)
    if function is logaddexp:
        exp, log = ops.exp, ops.log
        (x,) = promote_dtypes_inexact(x)
    else:
        exp, log = ops.exp2, ops.log2
        x = x if is_inexact(x) else convert(x, dtypes.default_float_dtype())
    if where is not None:
        x = jnp.where(where, x, -np.inf)
    top = jnp.max(jnp.real(x), axis, keepdims=True, initial=-np.inf)
    top = convert(ops.stop_gradient(jnp.where(ops.is_finite(top), top, 0)), dtype_of(x))
    total = jnp.sum(exp(x - top), axis, keepdims=True)
    out = log(total) + top
    if not keepdims:
        out = ops.squeeze(out, canonical_axes(axis, get_aval(x).ndim))
    return out if initial is None else function(initial, out)


logaddexp.define(
    identity=-np.inf, reduce=lambda a, **options: _log_sum(logaddexp, a, **options),
    accumulate=monoids.prefixes(
        lambda a, axis: ops.cumlogsumexp(promote_dtypes_inexact(a)[0], axis)))
logaddexp2.define(identity=-np.inf, reduce=lambda a, **options: _log_sum(logaddexp2, a, **options))


@custom_jvp
@in_single
def _hypot(x: ArrayLike, y: ArrayLike) -> Any:
    x, y = ops.abs(x), ops.abs(y)
    high, low = ops.max(x, y), ops.min(x, y)
    zero = ops.eq(high, constant_like(high, 0))
    one = filled_like(high, 1)
    ratio = ops.div(low, ops.select(zero, one, high))
    out = ops.mul(high, ops.sqrt(ops.add(one, ops.square(ratio))))
    infinity = constant_like(high, np.inf)
    infinite = ops.bitwise_or(ops.eq(x, infinity), ops.eq(y, infinity))
    out = ops.select(zero, high, out)
    return ops.select(infinite, filled_like(out, np.inf), out)


def _share(g: ArrayLike, out: ArrayLike, x: ArrayLike) -> Any:
    zero = ops.eq(out, constant_like(out, 0))
    return ops.mul(g, ops.div(x, ops.select(zero, filled_like(out, 1), out)))


# Not that of the steps, whose maximum has no second derivative where |x| = |y|. At 0 it is 0.
_hypot.defjvps(lambda g, out, x, y: _share(g, out, x), lambda g, out, x, y: _share(g, out, y))


@op_jit
def hypot(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """sqrt(x1**2 + x2**2), elementwise, without overflow: m * sqrt(1 + (n / m)**2), m >= n.

    Raises:
      ValueError: complex arguments.

    >>> import pyjx as jax
    >>> jax.numpy.hypot(3.0, 4.0).item()
    5.0
    """
    x, y = promote_dtypes_inexact(*operands("hypot", x1, x2))
    if is_complex(x):
        raise ValueError("jnp.hypot is not well defined for complex-valued inputs. Please convert "
                         "to real values first, such as by using abs(x)")
    return _hypot(*spread_all("hypot", x, y))


@op_jit
@any_ranks
def heaviside(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """0 where x1 < 0, 1 where x1 > 0, x2 where x1 == 0, elementwise.

    >>> import pyjx as jax
    >>> jax.numpy.heaviside(jax.numpy.array([-1.0, 0.0, 2.0]), 0.5).tolist()
    [0.0, 0.5, 1.0]
    """
    x, y = promote_args_inexact("heaviside", x1, x2)
    weak = get_aval(x).weak_type and not get_aval(x1).ndim  # as JAX's constants are beside x1
    x, y = spread_all("heaviside", x, y)
    if is_complex(x):
        raise TypeError("heaviside is not well defined for complex-valued inputs.")
    zero = constant_like(x, 0)
    at_zero = ops.select(ops.ne(x, x), x, y)
    above = ops.select(ops.gt(x, zero), filled_like(x, 1), at_zero)
    out = ops.select(ops.lt(x, zero), filled_like(x, 0), above)
    return out if weak else convert(out, dtype_of(out))


def _bits_of(x: ArrayLike) -> tuple[Any, Any]:
    """The bits of floats as signed integers, and that integer dtype."""
    dtype = np.dtype(f"int{dtypes.itemsize_bits(dtype_of(x))}")
    return _reinterpreted(x, dtype), dtype


def _reinterpreted(x: ArrayLike, dtype: DTypeLike) -> Any:
    """The bits of x as another dtype, one of 64 bits too for an array that has so many."""
    return ops.bitcast_convert_type_p.bind(x, new_dtype=dtype)


def _signbit(x: ArrayLike) -> Any:
    if is_integer(x) or dtype_of(x) == np.bool_:
        return ops.lt(convert(x, dtype_of(x)), constant_like(x, 0))
    bits, _ = _bits_of(x)
    return ops.lt(bits, constant_like(bits, 0))


@op_jit
def signbit(x: ArrayLike, /) -> Array:
    """Where the sign of x is negative; also of -0.0.

    >>> import pyjx as jax
    >>> jax.numpy.signbit(jax.numpy.array([-1.0, -0.0, 0.0])).tolist()
    [True, True, False]
    """
    (x,) = operands("signbit", x)
    if is_complex(x):
        raise ValueError(f"jax.numpy.signbit is not well defined for {dtype_of(x)}")
    return _signbit(x)


@op_jit
def copysign(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """|x1| with the sign of x2, elementwise.

    >>> import pyjx as jax
    >>> jax.numpy.copysign(2.0, jax.numpy.array([1.0, -0.0])).tolist()
    [2.0, -2.0]
    """
    x, y = spread_all("copysign", *promote_args_inexact("copysign", x1, x2))
    if is_complex(x):
        raise TypeError("copysign does not support complex-valued inputs")
    x = ops.abs(x)
    return ops.select(_signbit(y), ops.neg(x), x)


@op_jit
def nextafter(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The next number after x in the direction of y, elementwise.

    >>> import pyjx as jax
    >>> bool(jax.numpy.nextafter(1.0, 2.0) > 1.0)
    True
    """
    return ops.nextafter(*spread_all("nextafter", *promote_args_inexact("nextafter", x, y)))


@op_jit
def spacing(x: ArrayLike, /) -> Array:
    """The distance from x to the next number farther from 0; negative for negative x.

    That of a float16 is to the next number above, as in NumPy.

    >>> import pyjx as jax
    >>> bool(jax.numpy.spacing(1.0) == jax.numpy.finfo("float32").eps)
    True
    """
    x = promote_inexact("spacing", x)
    if is_complex(x):
        raise ValueError("jnp.spacing is not defined for complex inputs.")
    x = ops.stop_gradient(x)  # steps have no slope
    if dtype_of(x) == np.float16:
        negative = filled_like(x, False, np.bool_)
        above = ops.nextafter(x, filled_like(x, np.inf))
        following = ops.select(ops.is_finite(x), above, filled_like(x, np.nan))
    else:  # it has the next bits; those behind infinity are of nan
        bits, _ = _bits_of(x)
        negative = ops.lt(bits, constant_like(bits, 0))
        following = _reinterpreted(ops.add(bits, constant_like(bits, 1)), dtype_of(x))
    gap = ops.sub(following, convert(x, dtype_of(x)))
    least = float(dtypes.finfo(dtype_of(x)).smallest_subnormal)
    tiny = ops.select(negative, filled_like(gap, -least), filled_like(gap, least))
    return ops.select(ops.eq(gap, constant_like(gap, 0)), tiny, gap)


# -- mantissa and exponent -------------------------------------------------------------------------


_BEYOND_INT32 = frozenset(map(np.dtype, ("uint32", "int64", "uint64")))


def _power_of_two(k: ArrayLike, dtype: DTypeLike) -> Any:
    """2**k as float of `dtype`, exact, where k is in the range of normal numbers."""
    info = dtypes.finfo(dtype)
    integer = np.dtype(f"int{info.bits}")
    bits = ops.shift_left(ops.add(convert(k, integer), scalar_constant(1 - info.minexp, integer)),
                          scalar_constant(info.nmant, integer))
    return _reinterpreted(bits, dtype)


def _saturated(k: ArrayLike) -> Any:
    """Integers as 32-bit ones; beyond these 2**k is infinity or 0 anyway."""
    if dtype_of(k) in _BEYOND_INT32:
        most = np.iinfo(np.int32).max
        least = max(-most, np.iinfo(dtype_of(k)).min)
        k = ops.clamp(constant_like(k, least), k, constant_like(k, most))
    return convert(k, np.dtype(np.int32))


def _scaled(x: ArrayLike, k: Array) -> Any:
    """x * 2**k, in three steps that stay in range."""
    info = dtypes.finfo(dtype_of(x))
    high, low = constant_like(k, info.maxexp - 1), constant_like(k, info.minexp)
    for _ in range(3):
        step = ops.min(ops.max(k, low), high)
        x = ops.mul(x, _power_of_two(step, dtype_of(x)))
        k = ops.sub(k, step)
    return x


@custom_jvp
def _parted(x: ArrayLike) -> tuple[Any, Any]:
    """Mantissas and exponents, by the bits of x; those of subnormals by the bits of a multiple."""
    info, whole = dtypes.finfo(dtype_of(x)), np.dtype(np.int32)
    subnormal = ops.lt(ops.abs(x), constant_like(x, info.smallest_normal))
    lifted = ops.select(subnormal, ops.mul(x, constant_like(x, 2.0 ** info.nmant)), x)
    bits, dtype = _bits_of(lifted)
    most = 2**info.nexp - 1
    field = ops.bitwise_and(ops.shift_right_logical(bits, constant_like(bits, info.nmant)),
                            constant_like(bits, most))
    special = ops.bitwise_or(ops.eq(field, constant_like(field, 0)),  # zero, infinity or nan
                             ops.eq(field, constant_like(field, most)))
    least = ops.select(subnormal, filled_like(field, info.minexp - info.nmant, dtype),
                       filled_like(field, info.minexp, dtype))
    exponent = ops.select(special, filled_like(field, 0, dtype), ops.add(field, least))
    kept = ops.bitwise_and(bits, constant_like(bits, ~(most << info.nmant)))
    half = ops.bitwise_or(kept, constant_like(bits, -info.minexp << info.nmant))
    mantissa = ops.select(special, x, _reinterpreted(half, dtype_of(x)))
    return mantissa, convert(exponent, whole)


def _parted_jvp(primals: tuple[Any], tangents: tuple[Any]) -> Any:
    """The mantissa is x times a power of two, here the product of two that are in range."""
    mantissa, exponent = _parted(*primals)
    low = ops.shift_right_arithmetic(exponent, constant_like(exponent, 1))
    slope = tangents[0]
    for part in (low, ops.sub(exponent, low)):
        slope = ops.mul(slope, _power_of_two(ops.neg(part), dtype_of(mantissa)))
    return (mantissa, exponent), (slope, np.zeros(get_aval(exponent).shape, dtypes.float0))


_parted.defjvp(_parted_jvp)


@op_jit
def frexp(x: ArrayLike, /) -> tuple[Array, Array]:
    """Mantissa m and exponent e of floats: x == m * 2**e with 0.5 <= |m| < 1; (x, 0) for 0, and
    for subnormal numbers where the device takes them for 0, as CPUs do.

    Returns:
      A pair of arrays of the argument's shape: mantissas of a float dtype, and exponents, integers.

    >>> import pyjx as jax
    >>> [x.item() for x in jax.numpy.frexp(6.0)]
    [0.75, 3]
    """
    x = narrowed(promote_inexact("frexp", x))
    if is_complex(x):
        raise TypeError("frexp does not support complex-valued inputs")
    return _parted(convert(x, dtype_of(x)))


@op_jit
def ldexp(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1 * 2**x2, elementwise, for integers x2.

    Raises:
      ValueError: x1 is complex or x2 is no integer.

    >>> import pyjx as jax
    >>> jax.numpy.ldexp(0.75, 3).item()
    6.0
    """
    x, k = operands("ldexp", x1, x2)
    if is_complex(x) or is_inexact(k):
        raise ValueError(f"ldexp not supported for input types {(dtype_of(x), dtype_of(k))}")
    x = promote_inexact("ldexp", x)
    x = convert(x, dtype_of(x))
    return _scaled(*spread_all("ldexp", x, _saturated(k)))


@op_jit
def modf(x: ArrayLike, /, out: None = None) -> tuple[Array, Array]:
    """The fractional and the whole part of x, both with the sign of x.

    Returns:
      A pair of arrays of the argument's shape, of a float dtype: fractions and integers.

    Raises:
      TypeError: x is complex.

    >>> import pyjx as jax
    >>> [x.item() for x in jax.numpy.modf(-2.5)]
    [-0.5, -2.0]
    """
    no_out("modf", out)
    x = promote_inexact("modf", x)
    if is_complex(x):
        raise TypeError("modf does not support complex-valued inputs")
    whole = ops.select(ops.ge(x, constant_like(x, 0)), ops.floor(x), ops.ceil(x))
    return ops.sub(x, whole), whole


# -- special formulas ------------------------------------------------------------------------------


def _sinc_series(dtype: DTypeLike) -> list[Any]:
    """The coefficients c_k of sin(pi r) / (pi r) = sum c_k r^2k, enough of them for |r| <= 1/2."""
    terms = 12 if dtypes.itemsize_bits(dtype) == 64 else 7
    return [scalar_constant((-np.pi**2)**k / math.factorial(2 * k + 1), dtype)
            for k in range(terms)]


def _real_sinc(x: ArrayLike) -> Any:
    # With r the distance from the next even number, sin(pi x) = sin(pi r) = sin(pi (1 - r)), the
    # latter for r > 1/2. Both are continuous where they meet: XLA may compute x twice, in two ways.
    half, end = constant_like(x, 0.5), ops.eq(ops.abs(x), constant_like(x, np.inf))
    n = ops.round(ops.mul(x, half), ops.RoundingMethod.TO_NEAREST_EVEN)
    r = ops.select(end, filled_like(x, 0), ops.sub(x, ops.add(n, n)))
    r = ops.select(ops.gt(ops.abs(r), half), ops.sub(ops.sign(r), r), r)
    series = ops.polynomial(ops.square(r), _sinc_series(dtype_of(x)))
    sine = ops.mul(r, series)
    negative = ops.lt(x, constant_like(x, 0))
    sine = ops.select(negative, ops.sub(filled_like(x, 0), sine), sine)  # +0 at whole ones
    near_zero = ops.le(ops.abs(x), half)
    divisor = ops.select(near_zero, filled_like(x, 1), ops.abs(x))
    return ops.select(near_zero, series, ops.div(sine, divisor))


@op_jit
def sinc(x: ArrayLike, /) -> Array:
    """sin(pi x) / (pi x), elementwise, and 1 at 0; exactly 0 at other whole numbers.

    >>> import pyjx as jax
    >>> jax.numpy.sinc(jax.numpy.array([0.0, 0.5, 1.0])).tolist()
    [1.0, 0.6366198062896729, 0.0]
    """
    x = promote_inexact("sinc", x)
    if not is_complex(x):
        x = narrowed(x)
        return convert(_real_sinc(x), dtype_of(x), get_aval(beside_constants(x)).weak_type)
    x = beside_constants(x)
    x = ops.mul(x, constant_like(x, np.pi))
    near = ops.lt(ops.abs(x), constant_like(ops.abs(x), 1e-2))
    one = filled_like(x, 1)
    square = ops.square(x)
    tail = ops.sub(ops.mul(square, constant_like(x, 1 / 120)), constant_like(x, 1 / 6))
    series = ops.add(one, ops.mul(square, tail))
    safe = ops.select(near, one, x)
    return ops.select(near, series, ops.div(ops.sin(safe), safe))


@custom_jvp
def _i0(x: ArrayLike) -> Any:
    return ops.mul(ops.exp(ops.abs(x)), ops.bessel_i0e(x))


# I_0' = I_1 (DLMF 10.29.3); the rule of products would give infinity less infinity for large x
_i0.defjvps(lambda g, out, x: ops.mul(g, ops.mul(ops.exp(ops.abs(x)), ops.bessel_i1e(x))))


@op_jit
def i0(x: ArrayLike) -> Array:
    """The modified Bessel function of the first kind of order 0, elementwise.

    >>> import pyjx as jax
    >>> jax.numpy.i0(0.0).round(4).item()
    1.0
    """
    x = promote_inexact("i0", x)
    if is_complex(x):
        raise ValueError(f"Unsupported input type to jax.numpy.i0: {dtype_of(x)}")
    return _i0(x)


@op_jit
@any_ranks
def nan_to_num(x: ArrayLike, copy: bool = True, nan: ArrayLike = 0.0,
               posinf: ArrayLike | None = None, neginf: ArrayLike | None = None) -> Array:
    """x with nan and infinities replaced by numbers.

    Args:
      x: array.
      copy: has no effect, since arrays are immutable.
      nan, posinf, neginf: the replacements; by default 0 and the largest and least finite number.

    Returns:
      An array of the argument's shape and dtype.

    >>> import pyjx as jax
    >>> jax.numpy.nan_to_num(jax.numpy.array([1.0, jax.numpy.nan])).tolist()
    [1.0, 0.0]
    """
    x = narrowed(*operands("nan_to_num", x))
    if not is_inexact(x):
        return as_array(x)
    if is_complex(x):
        parts = [nan_to_num(part, copy, nan, posinf, neginf) for part in (ops.real(x), ops.imag(x))]
        return ops.complex(*parts)
    dtype = dtype_of(x)
    x = convert(x, dtype)
    info = dtypes.finfo(dtype)
    posinf = float(info.max) if posinf is None else posinf
    neginf = float(info.min) if neginf is None else neginf
    shapes = [get_aval(v).shape for v in (x, nan, posinf, neginf)]
    shape = common_shape("nan_to_num", shapes) if any(shapes) else ()
    x = stretch(x, shape)

    def value(v: ArrayLike) -> Any:
        return stretch(convert(v, dtype), shape)

    x = ops.select(ops.ne(x, x), value(nan), x)
    x = ops.select(ops.eq(x, constant_like(x, np.inf)), value(posinf), x)
    return ops.select(ops.eq(x, constant_like(x, -np.inf)), value(neginf), x)


# -- closeness and equality ------------------------------------------------------------------------


@op_jit(static_argnames=("equal_nan",))
def isclose(a: ArrayLike, b: ArrayLike, rtol: ArrayLike = 1e-5, atol: ArrayLike = 1e-8,
            equal_nan: bool = False) -> Array:
    """Where |a - b| <= atol + rtol * |b|; infinities are close if they are equal.

    With `equal_nan` nan is close to nan.

    Returns:
      A boolean array of the shape that the arguments are broadcast to.

    >>> import pyjx as jax
    >>> jax.numpy.isclose(jax.numpy.array([1.0, 2.0]), 1.000001).tolist()
    [True, False]
    """
    x, y = promote_args("isclose", a, b)
    if not is_inexact(x):
        if dtypes.is_extended(dtype_of(x)):
            return ops.eq(x, y)
        x, y = promote_args_inexact("isclose", x, y)
    size = ops.abs(y)
    rtol, atol = convert(rtol, dtype_of(size)), convert(atol, dtype_of(size))
    margin = ops.add(*promote_args("isclose", atol, ops.mul(*promote_args("isclose", rtol, size))))
    x, y, margin = spread_all("isclose", x, y, margin)
    near = ops.le(ops.abs(ops.sub(x, y)), margin)
    out = ops.bitwise_or(ops.eq(x, y), ops.bitwise_and(is_finite(y), near))
    if equal_nan:
        out = ops.bitwise_or(out, ops.bitwise_and(ops.ne(x, x), ops.ne(y, y)))
    return convert(out, dtypes.bool_dtype)


def _all(x: ArrayLike) -> Any:
    return ops.reduce_and(convert(x, dtypes.bool_dtype), tuple(range(get_aval(x).ndim)))


@op_jit(static_argnames=("equal_nan",))
def allclose(a: ArrayLike, b: ArrayLike, rtol: ArrayLike = 1e-5, atol: ArrayLike = 1e-8,
             equal_nan: bool = False) -> Array:
    """Whether all elements of a and b are close, as an array; see `isclose`.

    Returns:
      A boolean array of no axes; `bool` of it is Python's, unless arguments are traced.

    >>> import pyjx as jax
    >>> bool(jax.numpy.allclose(jax.numpy.ones(3), 1.000001))
    True
    """
    return _all(isclose(a, b, rtol, atol, equal_nan))


@op_jit(static_argnames=("equal_nan",))
def _array_equal(a1: ArrayLike, a2: ArrayLike, equal_nan: bool) -> Any:
    x, y = promote_args("array_equal", a1, a2)
    out = ops.eq(x, y)
    if equal_nan:
        out = ops.bitwise_or(out, ops.bitwise_and(ops.ne(x, x), ops.ne(y, y)))
    return _all(out)


def array_equal(a1: ArrayLike, a2: ArrayLike, equal_nan: bool = False) -> Array:
    """Whether a1 and a2 have the same shape and equal elements, as an array.

    With `equal_nan` nan equals nan.

    Returns:
      A boolean array of no axes; `bool` of it is Python's, unless arguments are traced.

    >>> import pyjx as jax
    >>> bool(jax.numpy.array_equal(jax.numpy.arange(3), [0, 1, 2]))
    True
    """
    pair = jnp.asarray(a1), jnp.asarray(a2)
    if pair[0].shape != pair[1].shape:
        return jnp.asarray(False)
    return _array_equal(*pair, equal_nan=equal_nan and is_inexact(pair[0]))


def array_equiv(a1: ArrayLike, a2: ArrayLike) -> Array:
    """Whether a1 and a2 have equal elements after broadcasting, as an array.

    Returns:
      A boolean array of no axes; `bool` of it is Python's, unless arguments are traced.

    >>> import pyjx as jax
    >>> bool(jax.numpy.array_equiv(jax.numpy.ones(3), 1))
    True
    """
    pair = jnp.asarray(a1), jnp.asarray(a2)
    try:
        shape = ops.broadcast_shapes(pair[0].shape, pair[1].shape)
        dtypes.lattice_result_type(*pair)
    except ValueError:  # shapes or dtypes that do not go together
        return jnp.asarray(False)
    x, y = (jnp.broadcast_to(a, shape) for a in pair)
    return _array_equal(x, y, equal_nan=False)


# -- divisors --------------------------------------------------------------------------------------


def _gcd(x: ArrayLike, y: ArrayLike) -> Any:
    """Euclid's algorithm, elementwise, until all second numbers are 0."""
    def unfinished(pair: tuple[ArrayLike, ArrayLike]) -> Any:
        rest = ops.ne(pair[1], constant_like(pair[1], 0))
        return ops.reduce_or(rest, tuple(range(get_aval(rest).ndim)))

    def step(pair: tuple[ArrayLike, ArrayLike]) -> Any:
        a, b = pair
        zero = constant_like(b, 0)
        done = ops.eq(b, zero)
        divisor = ops.select(done, filled_like(b, 1), b)
        return (ops.select(done, a, b), ops.select(done, b, ops.rem(a, divisor)))

    return ops.while_loop(unfinished, step, (x, y))[0]


def _magnitudes(name: str, x1: ArrayLike, x2: ArrayLike) -> list[Any]:
    args = promote_dtypes(*operands(name, x1, x2))
    if not all(map(is_integer, args)):
        raise ValueError(f"Arguments to jax.numpy.{name} must be integers.")
    return [_magnitude(beside_constants(x)) for x in spread_all(name, *args)]


def _magnitude(x: ArrayLike) -> Any:
    return x if dtypes.issubdtype(dtype_of(x), np.unsignedinteger) else ops.abs(x)


@op_jit
@any_ranks
def gcd(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The greatest common divisor of integers, elementwise.

    Raises:
      ValueError: the arguments are no integers.

    >>> import pyjx as jax
    >>> int(jax.numpy.gcd(12, 18))
    6
    """
    # Remainders of the least integer are negative, because its magnitude is.
    return _magnitude(_gcd(*_magnitudes("gcd", x1, x2)))


@op_jit
def lcm(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The least common multiple of integers, elementwise.

    Raises:
      ValueError: the arguments are no integers.

    >>> import pyjx as jax
    >>> jax.numpy.lcm(4, 6).item()
    12
    """
    x, y = _magnitudes("lcm", x1, x2)
    divisor = _gcd(x, y)
    zero = constant_like(divisor, 0)
    safe = ops.select(ops.eq(divisor, zero), filled_like(divisor, 1), divisor)
    return ops.mul(x, ops.div(y, safe))
