"""Distributions over the integers."""

from __future__ import annotations

import math

import numpy as np

from pyjx import lax
from pyjx import numpy as jnp
from pyjx.core.array_type import Array
from pyjx.scipy.special.gammas import betaln_of
from pyjx.scipy.special.logarithms import xlog1py_of, xlogy_of
from pyjx.scipy.special.operands import strong_of, strong_of_arrays, strong_of_first, weak_as
from pyjx.scipy.stats.distribution import Distribution


def _apart(k: Array, beyond: Array, whole: bool) -> tuple[Array, Array]:
    """Where k has the probability 0, `beyond` the support and between whole numbers; and k, which
    is 0 beyond the support."""
    return beyond if whole else beyond | (k > jnp.floor(k)), jnp.where(beyond, 0, k)


bernoulli = Distribution(
    "bernoulli", "The Bernoulli distribution: 1 with probability p, else 0.", "k, p, loc=0",
    "1, 0.3")


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
