"""Special functions: error function, gamma and beta families, Bessel functions.

Their definitions are those of the NIST Digital Library of Mathematical Functions (DLMF).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from pyjx.core import dtypes
from pyjx.core.arithmetic import transcendental
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import get_aval
from pyjx.core.primitive import DEAR
from pyjx.core.scalars import scalar_constant
from pyjx.engine.conversion import cast
from pyjx.engine.forward import jvp_flat
from pyjx.engine.rules import jvp_by_operand
from pyjx.engine.tangents import Zero, full_aval
from pyjx.engine.types import Tangent, Value
from pyjx.lax import incomplete
from pyjx.lax.common import broadcast_operands, broadcast_shapes, check_same_dtypes
from pyjx.lax.compare import gt, le, select
from pyjx.lax.elementwise import (
    abs,
    add,
    div,
    integer_pow,
    mul,
    neg,
    sign,
    square,
    sub,
)
from pyjx.lax.hurwitz import hurwitz_zeta, polygamma_of, zeta_slope
from pyjx.lax.log_gamma import log_gamma
from pyjx.lax.nary import (
    FLOATING,
    coefficient,
    differentiate,
    differentiate_by_result,
    elementwise,
    like,
    operand,
    operands,
)
from pyjx.lax.transcendental import accurate, exp, log, log1p, rsqrt

if TYPE_CHECKING:
    from pyjx.lax.transcendental import AccuracyMode, Tolerance


def _no_derivative(message: str) -> Callable[..., NoReturn]:
    """The rule of an operand in which there is no derivative."""

    def rule(*_: Any, **__: Any) -> NoReturn:
        raise ValueError(message)

    return rule


# -- error function --------------------------------------------------------------------------------

erf_p = elementwise("erf", FLOATING, arithmetic=transcendental, cost=DEAR)
erfc_p = elementwise("erfc", FLOATING, arithmetic=transcendental)
erf_inv_p = elementwise("erf_inv", FLOATING, arithmetic=transcendental)


def _bell(g: Tangent, x: Value, scale: float) -> Value:
    # e^(-28^2) is 0 in every dtype; beyond, its own derivatives are 0 rather than 0 times infinity
    near = select(gt(abs(x), like(x, 28)), full_aval(get_aval(x), 28), x)
    factor = scalar_constant(scale / math.sqrt(math.pi), get_aval(x).dtype)
    return mul(factor, mul(g, exp(neg(square(near)))))


# d erf(x) = 2/sqrt(pi) e^(-x^2) dx
differentiate(erf_p, lambda g, x: _bell(g, x, 2))
# d erfc(x) = -2/sqrt(pi) e^(-x^2) dx
differentiate(erfc_p, lambda g, x: _bell(g, x, -2))
# d erf_inv(x) = sqrt(pi)/2 e^(erf_inv(x)^2) dx
differentiate_by_result(
    erf_inv_p,
    lambda g, ans, x: mul(coefficient(x, math.sqrt(math.pi) / 2), mul(g, exp(square(ans)))))


def erf(x: ArrayLike) -> Array:
    """The error function, 2/sqrt(pi) times the integral of e^(-t^2) from 0 to x (DLMF 7.2.1).

    Raises:
      TypeError: `x` is not of a floating dtype.

    >>> import pyjx as jax
    >>> float(jax.lax.erf(0.0))
    0.0
    """
    return erf_p.bind(operand("erf", x))


def erfc(x: ArrayLike, *, accuracy: AccuracyMode | Tolerance | None = None) -> Array:
    """The complementary error function 1 - erf(x), accurate for large x (DLMF 7.2.2).

    Raises:
      TypeError: `x` is not of a floating dtype.

    >>> import pyjx as jax
    >>> float(jax.lax.erfc(0.0))
    1.0
    """
    return erfc_p.bind(operand("erfc", x), accuracy=accurate("erfc", accuracy))


def erf_inv(x: ArrayLike) -> Array:
    """The number whose error function is x, for x in [-1, 1] (DLMF 7.17.1).

    Raises:
      TypeError: `x` is not of a floating dtype.

    >>> import pyjx as jax
    >>> float(jax.lax.erf_inv(0.0))
    0.0
    """
    return erf_inv_p.bind(operand("erf_inv", x))


# -- gamma function and its relatives --------------------------------------------------------------

lgamma_p = elementwise("lgamma", FLOATING, arithmetic=transcendental, decomposition=log_gamma)
digamma_p = elementwise("digamma", FLOATING, arithmetic=transcendental)
polygamma_p = elementwise("polygamma", FLOATING, FLOATING, decomposition=polygamma_of)
zeta_p = elementwise("zeta", FLOATING, FLOATING, decomposition=hurwitz_zeta)
# d log |Gamma(x)| = psi(x) dx
differentiate(lgamma_p, lambda g, x: mul(g, digamma(x)))

# d psi(x) = psi'(x) dx
differentiate(digamma_p, lambda g, x: mul(g, polygamma(coefficient(x, 1), x)))
# d/dx psi^(m)(x) = psi^(m+1)(x)
polygamma_p.define(jvp=jvp_by_operand(
    polygamma_p, _no_derivative("polygamma gradient with respect to m is not supported"),
    lambda g, m, x: mul(g, polygamma(add(m, like(m, 1)), x))))
# d/dq zeta(s, q) = -s zeta(s + 1, q)
zeta_p.define(jvp=jvp_by_operand(
    zeta_p, lambda g, s, q: mul(g, zeta_slope(s, q)),
    lambda g, s, q: mul(g, mul(neg(s), zeta(add(s, like(s, 1)), q)))))


def lgamma(x: ArrayLike) -> Array:
    """The logarithm of |Gamma(x)| (DLMF 5.2.1): infinite at 0, -1, -2, ...

    Raises:
      TypeError: `x` is not of a floating dtype.

    >>> import pyjx as jax
    >>> round(float(jax.lax.lgamma(5.0)), 4)
    3.1781
    """
    return lgamma_p.bind(operand("lgamma", x))


def digamma(x: ArrayLike) -> Array:
    """The logarithmic derivative of the gamma function, psi(x) (DLMF 5.2.2).

    Raises:
      TypeError: `x` is not of a floating dtype.

    >>> import pyjx as jax
    >>> round(float(jax.lax.digamma(1.0)), 4)
    -0.5772
    """
    return digamma_p.bind(operand("digamma", x))


def polygamma(m: ArrayLike, x: ArrayLike) -> Array:
    """The m-th derivative of `digamma` at x (DLMF 5.15).

    Args:
      m: an array of a floating dtype, whose elements are integers.
      x: an array of the same dtype.

    Raises:
      TypeError: the dtypes differ or are not floating; the shapes do not broadcast.

    >>> import pyjx as jax
    >>> round(float(jax.lax.polygamma(1.0, 1.0)), 4)
    1.6449
    """
    m, x = operands("polygamma", m, x)
    return polygamma_p.bind(m, x)


def zeta(x: ArrayLike, q: ArrayLike) -> Array:
    """The Hurwitz zeta function, the sum of (k + q)^-x over k = 0, 1, ... (DLMF 25.11.1).

    Raises:
      TypeError: the dtypes differ or are not floating; the shapes do not broadcast.

    >>> import pyjx as jax
    >>> round(float(jax.lax.zeta(2.0, 1.0)), 4)
    1.6449
    """
    x, q = operands("zeta", x, q)
    return zeta_p.bind(x, q)


# -- incomplete gamma functions --------------------------------------------------------------------


def _density(a: Value, x: Value) -> Value:
    # dP(a, x)/dx = e^-x x^(a-1) / Gamma(a), DLMF 8.8.13; 0 at infinity, as at the largest number
    largest = float(dtypes.finfo(get_aval(x).dtype).max)
    x = select(gt(x, like(x, largest)), full_aval(get_aval(x), largest), x)
    return exp(sub(sub(mul(sub(a, like(a, 1)), log(x)), x), lgamma(a)))


igamma_p = elementwise("igamma", FLOATING, FLOATING, decomposition=incomplete.lower_gamma)
igammac_p = elementwise("igammac", FLOATING, FLOATING, decomposition=incomplete.upper_gamma)
igamma_grad_a_p = elementwise("igamma_grad_a", FLOATING, FLOATING,
                              decomposition=incomplete.lower_gamma_slope)
random_gamma_grad_p = elementwise("random_gamma_grad", FLOATING, FLOATING,
                                  decomposition=incomplete.gamma_sample_slope)
igamma_p.define(jvp=jvp_by_operand(
    igamma_p, lambda g, a, x: mul(g, igamma_grad_a(a, x)),
    lambda g, a, x: mul(g, _density(a, x))))
# Q = 1 - P
igammac_p.define(jvp=jvp_by_operand(
    igammac_p, lambda g, a, x: neg(mul(g, igamma_grad_a(a, x))),
    lambda g, a, x: neg(mul(g, _density(a, x)))))
# d/dx dP/da = d/da dP/dx = (log x - psi(a)) dP/dx
igamma_grad_a_p.define(jvp=jvp_by_operand(
    igamma_grad_a_p,
    _no_derivative("igamma_grad_a gradient with respect to a is not supported"),
    lambda g, a, x: mul(g, mul(_density(a, x), sub(log(x), digamma(a))))))


def _sample_slope_rule(i: int) -> Callable[..., Tangent]:
    """The rule of an operand: there is no formula, so what computes the number is differentiated,
    which gives the slope at each element; the tangent times it is linear."""

    def rule(g: Tangent, *operands: Value) -> Tangent:
        units = [full_aval(get_aval(v), 1) if j == i else Zero.of_primal(v)
                 for j, v in enumerate(operands)]
        _, (slope,) = jvp_flat(lambda a, x: [incomplete.gamma_sample_slope(a, x)], operands, units)
        return mul(g, slope)

    return rule


random_gamma_grad_p.define(jvp=jvp_by_operand(
    random_gamma_grad_p, _sample_slope_rule(0), _sample_slope_rule(1)))


def igamma(a: ArrayLike, x: ArrayLike) -> Array:
    """The regularized lower incomplete gamma function P(a, x) (DLMF 8.2.4), for a, x >= 0.

    The integral of t^(a-1) e^-t from 0 to x, divided by Gamma(a).

    Raises:
      TypeError: the dtypes differ or are not floating; the shapes do not broadcast.

    >>> import pyjx as jax
    >>> round(float(jax.lax.igamma(1.0, 1.0)), 4)
    0.6321
    """
    a, x = operands("igamma", a, x)
    return igamma_p.bind(a, x)


def igammac(a: ArrayLike, x: ArrayLike) -> Array:
    """The regularized upper incomplete gamma function 1 - P(a, x) (DLMF 8.2.4), for a, x >= 0.

    Raises:
      TypeError: the dtypes differ or are not floating; the shapes do not broadcast.

    >>> import pyjx as jax
    >>> round(float(jax.lax.igammac(1.0, 1.0)), 4)
    0.3679
    """
    a, x = operands("igammac", a, x)
    return igammac_p.bind(a, x)


def igamma_grad_a(a: ArrayLike, x: ArrayLike) -> Array:
    """The derivative of `igamma(a, x)` in a.

    Raises:
      TypeError: the dtypes differ or are not floating; the shapes do not broadcast.

    >>> import pyjx as jax
    >>> round(float(jax.lax.igamma_grad_a(1.0, 1.0)), 3)
    -0.432
    """
    a, x = operands("igamma_grad_a", a, x)
    return igamma_grad_a_p.bind(a, x)


_halves = frozenset((np.dtype(np.float16), np.dtype(dtypes.bfloat16)))


def random_gamma_grad(a: ArrayLike, x: ArrayLike) -> Any:
    """The derivative in a of a sample x of the gamma distribution with shape a.

    It is that of the sample at a fixed quantile: -(dP/da) / (dP/dx), with P = `igamma`.

    Raises:
      TypeError: the dtypes are not floating, or they differ and that of `a` is not of 16 bits; the
        shapes do not broadcast.

    >>> import pyjx as jax
    >>> round(float(jax.lax.random_gamma_grad(1.0, 1.0)), 3)
    1.174
    """
    shapes = [get_aval(operand("random_gamma_grad", v, i)).shape for i, v in enumerate((a, x))]
    try:
        broadcast_shapes(*shapes)
    except ValueError:
        raise ValueError("random_gamma_grad: Incompatible shapes for broadcasting: "
                         f"shapes={shapes}") from None
    if get_aval(a).dtype in _halves:  # which is computed in float32: any number goes with it
        x = cast(x, get_aval(a).dtype)
    a, x = operands("random_gamma_grad", a, x)
    if get_aval(a).ndim:  # samples are of strong type
        a, x = cast(a, get_aval(a).dtype), cast(x, get_aval(x).dtype)
    return random_gamma_grad_p.bind(a, x)


# -- incomplete beta function ----------------------------------------------------------------------


def _betainc_slope(g: Tangent, a: Value, b: Value, x: Value) -> Value:
    # dI/dx = x^(a-1) (1-x)^(b-1) / B(a, b), DLMF 8.17.2
    one = like(x, 1)
    log_beta = sub(add(lgamma(a), lgamma(b)), lgamma(add(a, b)))
    exponent = add(mul(sub(b, one), log1p(neg(x))), mul(sub(a, one), log(x)))
    return mul(g, exp(sub(exponent, log_beta)))


_NO_BETA = _no_derivative("Betainc gradient with respect to a and b not supported.")
regularized_incomplete_beta_p = elementwise(
    "regularized_incomplete_beta", FLOATING, FLOATING, FLOATING,
    decomposition=incomplete.incomplete_beta)
regularized_incomplete_beta_p.define(jvp=jvp_by_operand(
    regularized_incomplete_beta_p, _NO_BETA, _NO_BETA, _betainc_slope))


def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """The regularized incomplete beta function I_x(a, b) (DLMF 8.17.2), for x in [0, 1].

    The integral of t^(a-1) (1-t)^(b-1) from 0 to x, divided by that from 0 to 1.

    Raises:
      TypeError: the dtypes differ or are not floating; the shapes do not broadcast.
      ValueError: the derivative in a or b is asked for.

    >>> import pyjx as jax
    >>> round(float(jax.lax.betainc(1.0, 1.0, 0.25)), 4)
    0.25
    """
    a, b, x = operand("betainc", a), operand("betainc", b, 1), operand("betainc", x, 2)
    check_same_dtypes("betainc", get_aval(a), get_aval(b), get_aval(x))
    a, b, x = broadcast_operands("regularized_incomplete_beta", a, b, x)
    return regularized_incomplete_beta_p.bind(a, b, x)


# -- modified Bessel functions ---------------------------------------------------------------------

# Chebyshev coefficients of e^-x I_0(x) in x/4 - 1 on [0, 8], and of sqrt(x) e^-x I_0(x) in
# 16/x - 1 on [8, inf): the function's values at Chebyshev nodes, transformed with 40 digits.
_I0E_SMALL = (
    0.33839763720473804, -0.3046826723431984, 0.17162090152220878, -0.094901097048047644,
    0.049305284239670708, -0.023737414805899469, 0.010546460394594998, -0.0043243099950505759,
    0.0016394756169413358, -0.00057637557453858237, 0.00018850288509584166,
    -5.7541950100821037e-5, 1.6448448070728897e-5, -4.4167383584587506e-6, 1.1173875391201037e-6,
    -2.6707938539406117e-7, 6.0469950225419189e-8, -1.300025009986248e-8, 2.6598237246823867e-9,
    -5.1897956016352629e-10, 9.6758090353732369e-11, -1.7268262914415557e-11,
    2.9550526631296398e-12, -4.8564467831119295e-13, 7.6761854986049356e-14,
    -1.1685332877993452e-14, 1.715391285555133e-15, -2.4312798465479547e-16,
    3.3307945188222381e-17,
)
_I0E_LARGE = (
    0.40224520550705442, 0.0033691164782556941, 6.889758346916824e-5, 2.8913705208347565e-6,
    2.0489185894690637e-7, 2.2666689904981781e-8, 3.3962320257083863e-9, 4.9406023882249696e-10,
    1.1889147107846438e-11, -3.1499165279632414e-11, -1.3215811840447713e-11,
    -1.7941785315068061e-12, 7.1801244513836662e-13, 3.8527783827421427e-13,
    1.5400862175214098e-14, -4.1505693472872221e-14, -9.5548466988283076e-15,
    3.8116806693526224e-15, 1.7725601330565264e-15, -3.4254856196772191e-16,
    -2.8276239805165835e-16, 3.4612228676974611e-17, 4.46562142029676e-17,
)


def _chebyshev(t: Value, coefficients: tuple[float, ...]) -> Value:
    # Clenshaw's recurrence: b_k = c_k + 2 t b_(k+1) - b_(k+2); the sum is c_0 + t b_1 - b_2.
    eps = float(dtypes.finfo(get_aval(t).dtype).eps)
    used = [c for c in coefficients if math.fabs(c) > eps / 16]
    twice = add(t, t)
    b1 = b2 = like(t, 0)
    for c in reversed(used[1:]):
        b1, b2 = add(sub(mul(twice, b1), b2), like(t, c)), b1
    return add(sub(mul(t, b1), b2), like(t, used[0]))


def _bessel_i0e(x: Value) -> Value:
    size = abs(x)
    eight = like(size, 8)
    is_small = le(size, eight)
    constant = full_aval(get_aval(size), 8)
    near = select(is_small, size, constant)
    far = select(is_small, constant, size)
    small = _chebyshev(sub(mul(near, like(x, 0.25)), like(x, 1)), _I0E_SMALL)
    large = _chebyshev(sub(div(like(x, 16), far), like(x, 1)), _I0E_LARGE)
    return select(is_small, small, mul(large, rsqrt(far)))


bessel_i0e_p = elementwise("bessel_i0e", FLOATING,
                           decomposition=incomplete.in_single(_bessel_i0e))
bessel_i1e_p = elementwise("bessel_i1e", FLOATING)
# With I_0' = I_1: d (e^-|x| I_0(x)) = (e^-|x| I_1(x) - sign(x) e^-|x| I_0(x)) dx
differentiate_by_result(
    bessel_i0e_p, lambda g, ans, x: mul(g, sub(bessel_i1e(x), mul(sign(x), ans))))


def _bessel_i1e_tangent(g: Tangent, ans: Value, x: Value) -> Value:
    # I_1'(x) = I_0(x) - I_1(x)/x, which is 1/2 at 0
    aval = get_aval(x)
    eps = dtypes.finfo(aval.dtype).eps
    regular = gt(abs(x), like(x, eps))
    safe = select(regular, x, full_aval(aval, eps))
    slope = sub(bessel_i0e(safe), mul(ans, add(sign(safe), integer_pow(safe, -1))))
    return mul(g, select(regular, slope, full_aval(aval, 0.5)))


differentiate_by_result(bessel_i1e_p, _bessel_i1e_tangent)


def bessel_i0e(x: ArrayLike) -> Array:
    """The modified Bessel function I_0 (DLMF 10.25.2), scaled: e^-|x| I_0(x).

    Raises:
      TypeError: `x` is not of a floating dtype.

    >>> import pyjx as jax
    >>> round(float(jax.lax.bessel_i0e(0.0)), 5)
    1.0
    """
    return bessel_i0e_p.bind(operand("bessel_i0e", x))


def bessel_i1e(x: ArrayLike) -> Array:
    """The modified Bessel function I_1 (DLMF 10.25.2), scaled: e^-|x| I_1(x).

    Raises:
      TypeError: `x` is not of a floating dtype.

    >>> import pyjx as jax
    >>> float(jax.lax.bessel_i1e(0.0))
    0.0
    """
    return bessel_i1e_p.bind(operand("bessel_i1e", x))
