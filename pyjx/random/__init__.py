"""Random numbers, as functions of a key.

    key = random.key(42)
    key, subkey = random.split(key)
    x = random.normal(subkey, (3,))

A key must be used once: the same key gives the same numbers. Names load their module when they are
first used.
"""

from __future__ import annotations

from pyjx.lazy import attach

FAMILIES: dict[str, str] = {
    "pyjx.random.base": (
        "Key PRNGKey bits clone fold_in key key_data key_dtype key_impl split wrap_key_data"),
    "pyjx.random.samplers": (
        "bernoulli cauchy exponential gumbel laplace logistic normal rademacher randint "
        "truncated_normal uniform"),
    "pyjx.random.distributions": (
        "double_sided_maxwell geometric lognormal maxwell multivariate_normal orthogonal pareto "
        "rayleigh triangular wald weibull_min"),
    "pyjx.random.discrete": "binomial categorical choice multinomial permutation poisson",
    "pyjx.random.gamma_samplers": (
        "ball beta chisquare dirichlet f gamma generalized_normal loggamma random_gamma_p t"),
}

__getattr__, __dir__, __all__ = attach(__name__, FAMILIES)
