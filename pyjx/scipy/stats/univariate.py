"""Distributions of numbers: over the real numbers, and over the integers."""

from __future__ import annotations

import math

import numpy as np

from pyjx import lax
from pyjx import numpy as jnp
from pyjx.core.array_type import Array
from pyjx.core.avals import get_aval
from pyjx.nn.activations import log1mexp
from pyjx.numpy.operands import is_complex
from pyjx.scipy.special.gammas import betaln_of
from pyjx.scipy.special.logarithms import logit_of, xlog1py_of, xlogy_of
from pyjx.scipy.special.normal import log_ndtr_of, ndtr_of, ndtri_of, tail_of
from pyjx.scipy.special.operands import (
    floats,
    in_single,
    partials,
    strong_of,
    strong_of_arrays,
    strong_of_first,
    strong_throughout,
    strongly,
    weak_as,
)
from pyjx.scipy.stats.distribution import Body, Distribution, of_one_dtype
from pyjx.transforms.custom_jvp import custom_jvp

# -- over the real numbers -------------------------------------------------------------------------

PLACED = "x, loc=0, scale=1"
QUANTILES = "q, loc=0, scale=1"


@custom_jvp
@in_single
def _log_rest(q: Array) -> Array:
    """log(1 - q) for q in [0, 1], as log1p(-q), which takes two polynomials besides: what 1 - q
    lacks is less than its last bit, and nothing from 1/2 on."""
    rest = 1 - q
    return jnp.log(rest) + ((1 - rest) - q)


_log_rest.defjvps(lambda g, out, q: g / (q - 1))


@custom_jvp
@in_single
def _one_minus_exp(t: Array) -> Array:
    """1 - e^-t for t >= 0, as -expm1(-t), which takes an exponential besides."""
    if t.dtype == np.float64:
        return -jnp.expm1(-t)
    half = jnp.tanh(t / 2)
    return (half + half) / (1 + half)


_one_minus_exp.defjvps(lambda g, out, t: g * jnp.exp(-t))


beta = Distribution(
    "beta",
    "The beta distribution: density y^(a-1) (1-y)^(b-1)/(B(a, b) scale) of y = (x - loc)/scale.",
    "x, a, b, loc=0, scale=1", "0.3, 2.0, 3.0", lambda a, b, scale: (a > 0) & (b > 0) & (scale > 0))


@beta("logpdf", 0.568, mark=strong_of_arrays, weak=True)
def _(y: Array, a: Array, b: Array, scale: Array) -> Array:
    outside = (y < 0) | (y > 1)
    y = jnp.where(outside, 0.5, y)
    log = xlogy_of(a - 1, y) + xlog1py_of(b - 1, -y) - betaln_of(a, b) - jnp.log(scale)
    return jnp.where(outside, -math.inf, log)


beta("cdf", 0.348, mark=strong_of_arrays)(lambda y, a, b: lax.betainc(a, b, jnp.clip(y, 0, 1)))
beta("sf", 0.652, mark=strong_of_arrays)(lambda y, a, b: lax.betainc(b, a, 1 - jnp.clip(y, 0, 1)))
beta.derived(pdf=1.764, logcdf=-1.055, logsf=-0.428)

cauchy = Distribution(
    "cauchy", "The Cauchy distribution: density 1/(pi (1 + y^2) scale), y = (x - loc)/scale.",
    PLACED, "0.5")


def _cotangent(q: Array) -> Array:
    """cot(pi q) for q in [0, 1], infinite at both ends; complex q are ordered as by NumPy."""
    if is_complex(q):
        return jnp.where((q >= 0) & (q <= 1), 1 / jnp.tan(math.pi * q), math.nan)
    upper = q > 0.5
    rest = jnp.where(upper, 1 - q, q)
    size = 1 / jnp.tan(math.pi * jnp.where(rest >= 0, rest, math.nan))
    return jnp.where(upper, -size, size)


def _arctan_over_pi(x: Array) -> Array:
    """arctan(x)/pi for x in [-1, 1], which XLA's arctan has no need to bring there."""
    if x.dtype == np.float64:
        return lax.atan(x) / math.pi
    square = x * x
    below = lax.polynomial(square, (1.0, 1.4623865234817675, 0.5736162285634648,
                                    0.050457999160236494))
    return x * lax.polynomial(square, (0.3183098859039571, 0.35938883111860354,
                                       0.09108480363984825, 0.00283166781728722)) / below


@custom_jvp
@in_single
def _real_cauchy_cdf(y: Array) -> Array:
    """1/2 + arctan(y)/pi, which cancels far below 0."""
    far = jnp.abs(y) > 1
    within = _arctan_over_pi(jnp.where(far, -1 / y, y))
    return within + jnp.where(far, jnp.where(y < 0, 0, 1), 0.5)


_real_cauchy_cdf.defjvps(lambda g, out, y: g / (math.pi * (1 + y * y)))


def _cauchy_cdf(y: Array) -> Array:
    return 0.5 + jnp.arctan(y) / math.pi if is_complex(y) else _real_cauchy_cdf(y)


@cauchy("logpdf", -1.368, mark=strong_of_arrays, arrays=floats)
def _(y: Array, scale: Array) -> Array:
    return -jnp.log1p(y * y) - jnp.log(scale) - math.log(math.pi)


cauchy("cdf", 0.648, mark=strong_of_arrays, arrays=floats)(lambda y: _cauchy_cdf(y))
cauchy("logcdf", -0.435, mark=strong_of_arrays, arrays=floats)(lambda y: jnp.log(_cauchy_cdf(y)))
cauchy("sf", 0.352, mark=strong_of_arrays, arrays=floats)(lambda y: _cauchy_cdf(-y))
cauchy("logsf", -1.043, mark=strong_of_arrays, arrays=floats)(lambda y: jnp.log(_cauchy_cdf(-y)))


@cauchy("ppf", -1.0, "0.25", QUANTILES, strong_of_arrays, arrays=floats)
def _(q: Array, loc: Array, scale: Array) -> Array:
    return loc - scale * _cotangent(q)


@cauchy("isf", 1.0, "0.25", QUANTILES, strong_of_arrays, arrays=floats)
def _(q: Array, loc: Array, scale: Array) -> Array:
    return loc + scale * _cotangent(q)


cauchy.derived(pdf=0.255)

expon = Distribution(
    "expon",
    "The exponential distribution: density e^-y/scale for y >= 0, y = (x - loc)/scale.",
    PLACED, "0.5", lambda scale: scale > 0)


expon("logpdf", -0.5)(lambda y, scale: jnp.where(y < 0, -math.inf, -y - jnp.log(scale)))


@expon("cdf", 0.393)
def _(y: Array) -> Array:
    return _one_minus_exp(jnp.where(y < 0, 0, y))  # at the edge with the slope from the right


@expon("logcdf", -0.933)
def _(y: Array) -> Array:
    outside = y < 0
    return jnp.where(outside, -math.inf, log1mexp(jnp.where(outside, 1, y)))


expon("logsf", -0.5)(lambda y: -jnp.where(y < 0, 0, y))


@expon("ppf", 0.288, "0.25", QUANTILES, arrays=floats)
def _(q: Array, loc: Array, scale: Array) -> Array:
    valid = (q >= 0) & (q <= 1)
    return jnp.where(valid, loc - scale * _log_rest(jnp.where(valid, q, 0)), math.nan)


expon.derived(pdf=0.607, sf=0.607)

gamma = Distribution(
    "gamma",
    "The gamma distribution: density y^(a-1) e^-y/(Gamma(a) scale), y = (x - loc)/scale >= 0.",
    "x, a, loc=0, scale=1", "1.5, 3.0", lambda a, scale: (a > 0) & (scale > 0))


@gamma("logpdf", -1.382, mark=strong_of_arrays)
def _(y: Array, a: Array, scale: Array) -> Array:
    outside = y < 0
    y = jnp.where(outside, 1, y)
    log = xlogy_of(a - 1, y) - y - lax.lgamma(a) - jnp.log(scale)
    return jnp.where(outside, -math.inf, log)


def _tail(of: Body, y: Array, a: Array, end: int) -> Array:
    """An incomplete gamma function of y, and its value `end` where y is not above 0, without a
    slope."""
    outside = (y <= 0) & (a > 0)
    return jnp.where(outside, end, of(a, jnp.where(outside, 1, jnp.where(y < 0, 0, y))))


gamma("cdf", 0.191, mark=strong_of_first)(lambda y, a: _tail(lax.igamma, y, a, 0))
gamma("sf", 0.809)(lambda y, a: _tail(lax.igammac, y, a, 1))
gamma.derived(pdf=0.251, logcdf=-1.655, logsf=-0.212)

chi2 = Distribution(
    "chi2",
    "The chi-squared distribution: twice a variable of the gamma distribution with a = df/2.",
    "x, df, loc=0, scale=1", "1.5, 3.0")


def _as_gamma(name: str) -> Body:
    """A function of the gamma distribution that has these parameters."""
    return lambda x, df, loc, scale: gamma.functions[name](x, df / 2, loc, 2 * scale)


chi2("logpdf", -1.466, mark=strong_of_arrays, arrays=of_one_dtype)(_as_gamma("logpdf"))
for _name, _value in {"cdf": 0.318, "logcdf": -1.147, "sf": 0.682, "logsf": -0.382}.items():
    chi2(_name, _value, mark=lambda fun: strong_of("scale")(strong_of_first(fun)),
         arrays=of_one_dtype)(_as_gamma(_name))
chi2.derived(pdf=0.231)

gennorm = Distribution(
    "gennorm",
    "The generalized normal distribution: density beta e^(-|x|^beta)/(2 Gamma(1/beta)).",
    "x, beta", "0.5, 3.0")


@gennorm("logpdf", -0.705)
def _(x: Array, beta: Array) -> Array:
    beta = jnp.where(beta > 0, beta, math.nan)
    return jnp.log(beta / 2) - lax.lgamma(1 / beta) - jnp.abs(x) ** beta


@gennorm("cdf", 0.772)
def _(x: Array, beta: Array) -> Array:
    beta = jnp.where(beta > 0, beta, math.nan)
    tail = lax.igammac(1 / beta, jnp.abs(x) ** beta) / 2
    return jnp.where(x < 0, tail, 1 - tail)


gennorm.derived(pdf=0.494)

gumbel_l = Distribution(
    "gumbel_l",
    "The left-skewed Gumbel distribution: density e^(y - e^y)/scale, y = (x - loc)/scale.",
    PLACED, "0.5", lambda scale: scale > 0)


@gumbel_l("logpdf", -1.149)
def _(y: Array, scale: Array) -> Array:
    # both terms are infinite at the end, where the density is 0
    return jnp.where(y == math.inf, -math.inf, y - jnp.exp(y) - jnp.log(scale))


gumbel_l("cdf", 0.808)(lambda y: _one_minus_exp(jnp.exp(y)))
gumbel_l("logcdf", -0.214)(lambda y: log1mexp(jnp.exp(y)))
gumbel_l("logsf", -1.649)(lambda y: -jnp.exp(y))


@gumbel_l("ppf", -1.246, "0.25", "p, loc=0, scale=1")
def _(p: Array, loc: Array, scale: Array) -> Array:
    return loc + scale * jnp.log(-_log_rest(p))


gumbel_l.derived(pdf=0.317, sf=0.192)

gumbel_r = Distribution(
    "gumbel_r",
    "The right-skewed Gumbel distribution: density e^(-y - e^-y)/scale, y = (x - loc)/scale.",
    PLACED, "0.5", lambda scale: scale > 0)


@gumbel_r("logpdf", -1.107)
def _(y: Array, scale: Array) -> Array:
    # both terms are infinite at the end, where the density is 0
    return jnp.where(y == -math.inf, -math.inf, -y - jnp.exp(-y) - jnp.log(scale))


gumbel_r("logcdf", -0.607)(lambda y: -jnp.exp(-y))
gumbel_r("sf", 0.455, mark=strong_of_arrays)(lambda y: _one_minus_exp(jnp.exp(-y)))
gumbel_r("logsf", -0.788)(lambda y: log1mexp(jnp.exp(-y)))


@gumbel_r("ppf", -0.327, "0.25", "p, loc=0, scale=1")
def _(p: Array, loc: Array, scale: Array) -> Array:
    return loc - scale * jnp.log(-jnp.log(p))


gumbel_r.derived(pdf=0.331, cdf=0.545)

laplace = Distribution(
    "laplace", "The Laplace distribution: density e^-|y|/(2 scale), y = (x - loc)/scale.",
    PLACED, "0.5", lambda scale: scale > 0)


laplace("logpdf", -1.193, mark=strong_of_arrays)(lambda y, scale: -jnp.abs(y) - jnp.log(2 * scale))


@laplace("cdf", 0.697, mark=strong_of_arrays)
def _(y: Array) -> Array:
    tail = jnp.exp(-jnp.abs(y)) / 2
    return jnp.where(y < 0, tail, 1 - tail)


laplace.derived(pdf=0.303)

logistic = Distribution(
    "logistic",
    "The logistic distribution: density e^-y/((1 + e^-y)^2 scale), y = (x - loc)/scale.",
    PLACED, "0.5")


@logistic("logpdf", -1.448, arrays=floats)
def _(y: Array, scale: Array) -> Array:
    y = jnp.where(jnp.real(y) < 0, -y, y) if is_complex(y) else jnp.abs(y)  # the density is even
    log = -y - 2 * jnp.log1p(jnp.exp(-y)) - jnp.log(scale)
    # As JAX has it, whichever is the array
    return strong_throughout(log) if get_aval(log).shape else log


logistic("cdf", 0.622, arrays=floats)(lambda y: lax.logistic(y))
logistic("sf", 0.378, arrays=floats)(lambda y: lax.logistic(-y))


@logistic("ppf", 0.0, mark=strong_of_arrays, arrays=floats)
def _(x: Array, loc: Array, scale: Array) -> Array:
    return logit_of(x) * scale + loc


@logistic("isf", 0.0, mark=strong_of_arrays, arrays=floats)
def _(x: Array, loc: Array, scale: Array) -> Array:
    return logit_of(x) * -scale + loc


logistic.derived(pdf=0.235)

norm = Distribution(
    "norm", "The normal distribution: density e^(-y^2/2)/(sqrt(2 pi) scale), y = (x - loc)/scale.",
    PLACED, "0.5")


@norm("logpdf", -1.044, mark=strong_of_arrays, arrays=floats)
def _(y: Array, scale: Array) -> Array:
    # that of a scale and of its negative is the same
    size = jnp.log(scale * scale) / 2 if jnp.iscomplexobj(scale) else jnp.log(jnp.abs(scale))
    size = weak_as(size.astype(y.dtype), scale)
    return -(y * y) / 2 - size - math.log(2 * math.pi) / 2


norm("cdf", 0.691)(lambda y: ndtr_of(y))
norm("logcdf", -0.369)(lambda y: log_ndtr_of(y))
norm("sf", 0.309)(lambda y: ndtr_of(-y))
norm("logsf", -1.176)(lambda y: log_ndtr_of(-y))


@norm("ppf", -0.674, "0.25", QUANTILES)
def _(q: Array, loc: Array, scale: Array) -> Array:
    """The quantiles: the inverse of `cdf`, of the default float dtype."""
    return jnp.asarray(ndtri_of(q) * scale + loc, float)


@norm("isf", 0.674, "0.25", QUANTILES)
def _(q: Array, loc: Array, scale: Array) -> Array:
    """The inverse of `sf`, of the default float dtype."""
    return jnp.asarray(ndtri_of(q) * -scale + loc, float)


norm.derived(pdf=0.352)

pareto = Distribution(
    "pareto",
    "The Pareto distribution: density b/(y^(b+1) scale) for y >= 1, y = (x - loc)/scale.",
    "x, b, loc=0, scale=1", "1.5, 2.0", lambda b, scale: (b > 0) & (scale > 0))


@custom_jvp
def _exponent(y: Array, b: Array) -> Array:
    """-log of the probability of values above x; at the edge with the slope from the right."""
    return jnp.where(y <= 1, 0, b * jnp.log(y))


partials(_exponent,
         lambda out, y, b: jnp.where(y < 1, 0, b / y),
         lambda out, y, b: jnp.where(y < 1, 0, jnp.log(y)))


@pareto("logpdf", -0.523, mark=strong_of_arrays)
def _(y: Array, b: Array, scale: Array) -> Array:
    outside = y < 1
    log = jnp.log(b / scale) - (b + 1) * jnp.log(jnp.where(outside, 1, y))
    return jnp.where(outside, -math.inf, log)


pareto("cdf", 0.556, mark=strong_of_first)(lambda y, b: _one_minus_exp(_exponent(y, b)))


@pareto("logcdf", -0.588)
def _(y: Array, b: Array) -> Array:
    outside = y < 1
    return jnp.where(outside, -math.inf, log1mexp(_exponent(jnp.where(outside, 2, y), b)))


pareto("logsf", -0.811, mark=strong_of_arrays)(lambda y, b: -_exponent(y, b))


@pareto("ppf", 1.155, "0.25, 2.0", "q, b, loc=0, scale=1", strong_of_arrays, arrays=floats)
def _(q: Array, b: Array, loc: Array, scale: Array) -> Array:
    valid = (q >= 0) & (q <= 1)
    value = loc + scale * jnp.exp(-_log_rest(jnp.where(valid, q, 0)) / b)
    return jnp.where(valid, value, math.nan)


pareto.derived(pdf=0.593, sf=0.444)

t = Distribution(
    "t", "Student's t distribution of y = (x - loc)/scale.\n\n"
    "Its density is (1 + y^2/df)^(-(df+1)/2)/(sqrt(df) B(1/2, df/2) scale).",
    "x, df, loc=0, scale=1", "0.5, 3.0")


@t("logpdf", -1.161, mark=strong_of_arrays, weak=True)
def _(y: Array, df: Array, scale: Array) -> Array:
    norm = betaln_of(jnp.full_like(df, 0.5), df / 2) + jnp.log(df) / 2 + jnp.log(scale)
    return -(df + 1) / 2 * jnp.log1p(y * y / df) - norm


t.derived(pdf=0.313)

truncnorm = Distribution(
    "truncnorm", "The normal distribution within [a, b], in y = (x - loc)/scale.",
    "x, a, b, loc=0, scale=1", "0.5, -1.0, 2.0", lambda scale: scale > 0)

_ROOT_HALF = math.sqrt(0.5)


@custom_jvp
@strongly
@in_single
def _log_mass(a: Array, b: Array) -> Array:
    """The logarithm of the probability of [a, b] under the normal distribution, for a < b."""
    # turned to the left tail, where differences of probabilities do not cancel
    right = a > 0
    low, high = jnp.where(right, -b, a), jnp.where(right, -a, b)
    near = high > -0.5
    mass = (lax.erf(high * _ROOT_HALF) - lax.erf(low * _ROOT_HALF)) / 2
    # Elsewhere Phi(x) is e^(-x^2/2) times the tail: the larger exponential is taken out.
    square = high * high / 2
    tail = tail_of(high)
    lost = jnp.exp(jnp.where(near, -low * low, (high - low) * (high + low)) / 2) * tail_of(low)
    log = jnp.log(jnp.where(near, mass, tail - lost)) - jnp.where(near, 0, square)
    # what is near 1 is known by what is missing
    return jnp.where(near & (mass > 0.5), jnp.log1p(-lost - tail * jnp.exp(-square)), log)


def _at_end(x: Array, log_mass: Array, a: Array, b: Array) -> Array:
    """The density at an end of [a, b]."""
    density = jnp.exp(-x * x / 2 - log_mass) / math.sqrt(2 * math.pi)
    return jnp.where(a >= b, 0, density)


partials(_log_mass, lambda out, a, b: -_at_end(a, out, a, b),
         lambda out, a, b: _at_end(b, out, a, b))


def _checked(y: Array, a: Array, b: Array, out: Array) -> Array:
    return jnp.where((a < b) & (y == y), out, math.nan)


@truncnorm("logpdf", -0.844)
def _(y: Array, a: Array, b: Array, scale: Array) -> Array:
    log = -(y * y) / 2 - math.log(2 * math.pi) / 2 - jnp.log(scale) - _log_mass(a, b)
    return _checked(y, a, b, jnp.where((y < a) | (y > b), -math.inf, log))


@truncnorm("logcdf", -0.429)
def _(y: Array, a: Array, b: Array) -> Array:
    y = jnp.clip(y, a, b)
    log = jnp.where(y == a, -math.inf, _log_mass(a, jnp.where(y == a, b, y)) - _log_mass(a, b))
    return _checked(y, a, b, jnp.minimum(log, 0))


@truncnorm("logsf", -1.052)
def _(y: Array, a: Array, b: Array) -> Array:
    y = jnp.clip(y, a, b)
    log = jnp.where(y == b, -math.inf, _log_mass(jnp.where(y == b, a, y), b) - _log_mass(a, b))
    return _checked(y, a, b, jnp.minimum(log, 0))


truncnorm.derived(pdf=0.43, cdf=0.651, sf=0.349)

uniform = Distribution("uniform", "The uniform distribution over [loc, loc + scale].", PLACED,
                       "0.5", lambda scale: scale > 0)


@uniform("logpdf", 0.0, arrays=floats)
def _(x: Array, y: Array, loc: Array, scale: Array) -> Array:
    log = jnp.where((x < loc) | (x > loc + scale), -math.inf, jnp.log(1 / scale))
    return jnp.where(jnp.isnan(y), math.nan, log)


uniform("cdf", 0.5)(lambda y: jnp.clip(y, 0, 1))


@uniform("ppf", 0.25, "0.25", QUANTILES, arrays=floats)
def _(q: Array, loc: Array, scale: Array) -> Array:
    return jnp.where((q >= 0) & (q <= 1), loc + scale * q, math.nan)


uniform.derived(pdf=1.0)

vonmises = Distribution(
    "vonmises", "The von Mises distribution: density e^(kappa cos(x))/(2 pi I_0(kappa)).",
    "x, kappa", "0.5, 2.0", lambda kappa: kappa >= 0)


@vonmises("logpdf", -0.907)
def _(x: Array, kappa: Array) -> Array:
    return kappa * (jnp.cos(x) - 1) - jnp.log(2 * math.pi * lax.bessel_i0e(kappa))


vonmises.derived(pdf=0.404)

wrapcauchy = Distribution(
    "wrapcauchy",
    "The wrapped Cauchy distribution over [0, 2 pi]: density (1-c^2)/(2 pi (1+c^2-2c cos(x))).",
    "x, c", "0.5, 0.5")


@wrapcauchy("logpdf", -1.138)
def _(x: Array, c: Array) -> Array:
    log = jnp.log((1 - c * c) / (2 * math.pi)) - jnp.log1p(c * c - 2 * c * jnp.cos(x))
    log = jnp.where((x < 0) | (x > 2 * math.pi), -math.inf, log)
    return jnp.where((c > 0) & (c < 1), log, math.nan)


wrapcauchy.derived(pdf=0.321)


# -- over the integers -----------------------------------------------------------------------------


def _apart(k: Array, beyond: Array, whole: bool) -> tuple[Array, Array]:
    """Where k has the probability 0, `beyond` the support and between whole numbers; and k, which
    is 0 beyond the support."""
    return beyond if whole else beyond | (k > jnp.floor(k)), jnp.where(beyond, 0, k)


bernoulli = Distribution("bernoulli", "The Bernoulli distribution: 1 with probability p, else 0.",
                         "k, p, loc=0", "1, 0.3")


@bernoulli("logpmf", -1.204, mark=strong_of_first)
def _(j: Array, p: Array, whole: bool) -> Array:
    outside, j = _apart(j, (j < 0) | (j > 1), whole)
    log = jnp.where(outside, -math.inf, xlogy_of(j, p) + xlog1py_of(1 - j, -p))
    return jnp.where((p >= 0) & (p <= 1), log, math.nan)


@bernoulli("cdf", 1.0, parameters="k, p", mark=strong_of_arrays)
def _(k: Array, p: Array) -> Array:
    valid = (p >= 0) & (p <= 1) & ~jnp.isnan(k)
    return jnp.where(valid, jnp.where(k < 0, 0, jnp.where(k < 1, 1 - p, 1)), math.nan)


@bernoulli("ppf", 1.0, at="0.8, 0.3", parameters="q, p", mark=strong_of_arrays)
def _(q: Array, p: Array) -> Array:
    valid = (p >= 0) & (p <= 1) & (q >= 0) & (q <= 1)
    value = jnp.where(q == 0, -1, jnp.where(q <= 1 - p, 0, 1)).astype(q.dtype)
    return weak_as(jnp.where(valid, value, math.nan), q, p)


bernoulli.derived(pmf=0.3)

betabinom = Distribution(
    "betabinom",
    "The beta-binomial distribution: k - loc has probability binom(n, k) B(k+a, n-k+b)/B(a, b).",
    "k, n, a, b, loc=0", "2, 5, 2.0, 3.0", lambda n, a, b: (n >= 0) & (a > 0) & (b > 0))


@betabinom("logpmf", -1.435, mark=strong_of("k", "loc"), weak=True)
def _(j: Array, n: Array, a: Array, b: Array, whole: bool) -> Array:
    outside, k = _apart(j, (j < 0) | (j > n), whole)
    ways = -jnp.log(n + 1) - betaln_of(n - k + 1, k + 1)
    log = ways + betaln_of(k + a, n - k + b) - betaln_of(a, b)
    return jnp.where(outside, -math.inf, log)


betabinom.derived(pmf=0.238)

binom = Distribution(
    "binom", "The binomial distribution: probability binom(n, k) p^k (1-p)^(n-k), of k - loc.",
    "k, n, p, loc=0", "2, 5, 0.3", lambda n, p: (n >= 0) & (p >= 0) & (p <= 1))


@binom("logpmf", -1.175, weak=True)
def _(j: Array, n: Array, p: Array, whole: bool) -> Array:
    outside, j = _apart(j, (j < 0) | (j > n), whole)
    ways = -jnp.log(n + 1) - betaln_of(n - j + 1, j + 1)
    log = ways + xlogy_of(j, p) + xlog1py_of(n - j, -p)
    return jnp.where(outside, -math.inf, log)


binom.derived(pmf=0.309)

geom = Distribution(
    "geom", "The geometric distribution: probability p (1-p)^(k-1) for k = 1, 2, ..., of k - loc.",
    "k, p, loc=0", "2, 0.3")


@geom("logpmf", -1.561, mark=strong_of_first)
def _(j: Array, p: Array, whole: bool) -> Array:
    outside, j = _apart(j - 1, j <= 0, whole)
    log = jnp.where(outside, -math.inf, xlog1py_of(j, -p) + jnp.log(p))
    return jnp.where((p > 0) & (p <= 1), log, math.nan)


geom.derived(pmf=0.21)

nbinom = Distribution(
    "nbinom",
    "The negative binomial distribution: probability binom(k + n - 1, k) p^n (1-p)^k, of k - loc.",
    "k, n, p, loc=0", "2, 5, 0.3", lambda n, p: (n > 0) & (p > 0) & (p <= 1))


@nbinom("logpmf", -4.025, mark=strong_of_arrays, weak=True)
def _(j: Array, n: Array, p: Array, whole: bool) -> Array:
    outside, j = _apart(j, j < 0, whole)
    ways = -betaln_of(n, j + 1) - jnp.log(n + j)
    log = ways + xlogy_of(n, p) + xlog1py_of(j, -p)
    return jnp.where(outside, -math.inf, log)


nbinom.derived(pmf=0.018)

poisson = Distribution(
    "poisson", "The Poisson distribution: probability mu^k e^-mu/k!, of k - loc.",
    "k, mu, loc=0", "2, 3.0")


@poisson("logpmf", -1.496)
def _(k: Array, mu: Array, loc: Array) -> Array:
    k = jnp.where(mu >= 0, k, math.nan) - loc
    outside, k = _apart(k, (k < 0) | (k > jnp.floor(k)), True)
    return jnp.where(outside, -math.inf, xlogy_of(k, mu) - lax.lgamma(k + 1) - mu)


@poisson("cdf", 0.423, mark=strong_of_arrays)
def _(k: Array, mu: Array, loc: Array) -> Array:
    k = jnp.floor(jnp.where(mu >= 0, k, math.nan) - loc)
    return jnp.where(k < 0, 0, lax.igammac(jnp.maximum(k, 0) + 1, mu))


@poisson("entropy", 1.931, at="3.0", parameters="mu, loc=0")
def _(mu: Array) -> Array:
    """The entropy, in units of e."""
    # the sum over k; for large mu, of which it would need many, the asymptotic series
    limit, terms = (80, 180) if mu.dtype == np.float64 else (20, 64)
    small = jnp.where(mu < limit, mu, limit)[..., None]
    k = np.arange(terms, dtype=mu.dtype).reshape(*[1] * mu.ndim, terms)
    factorials = np.array([math.lgamma(i + 1) for i in range(terms)], mu.dtype).reshape(k.shape)
    log = xlogy_of(k, small) - factorials - small
    near = -(jnp.exp(log) * jnp.where(log > -math.inf, log, 0)).sum(-1)
    r = 1 / jnp.where(mu < limit, limit, mu)
    series = lax.polynomial(r, (0.0, -1 / 12, -1 / 24, -19 / 360, -9 / 80))
    far = (math.log(2 * math.pi * math.e) - jnp.log(r)) / 2 + series
    return jnp.where(mu >= 0, jnp.where(mu < limit, near, far), math.nan)


poisson.derived(pmf=0.224)
