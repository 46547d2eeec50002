"""Statistics: a module for each distribution, and summaries of samples.

Names load their module when they are first used.
"""

from __future__ import annotations

from pyjx.lazy import attach

FAMILIES: dict[str, str] = {
    "pyjx.scipy.stats.kernel_density": "gaussian_kde",
    "pyjx.scipy.stats.summaries": "mode rankdata sem",
}

SUBMODULES = (
    "bernoulli beta betabinom binom cauchy chi2 dirichlet expon gamma gennorm geom gumbel_l "
    "gumbel_r laplace logistic multinomial multivariate_normal nbinom norm pareto poisson t "
    "truncnorm uniform vonmises wrapcauchy"
)

__getattr__, __dir__, __all__ = attach(__name__, FAMILIES, SUBMODULES)
