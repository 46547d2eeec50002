"""Statistics: a module for each distribution, and summaries of samples.

Names load their module when they are first used.
"""

from __future__ import annotations

from pyjx.lazy import FilledModule, attach

FAMILIES: dict[str, str] = {
    "pyjx.scipy.stats.summaries": "gaussian_kde mode rankdata sem",
}

# The modules that others make.
DISTRIBUTIONS = {
    "pyjx.scipy.stats.univariate": (
        "bernoulli beta betabinom binom cauchy chi2 expon gamma gennorm geom gumbel_l gumbel_r "
        "laplace logistic nbinom norm pareto poisson t truncnorm uniform vonmises wrapcauchy"),
    "pyjx.scipy.stats.vectors": "dirichlet multinomial multivariate_normal",
}
for _home, _names in DISTRIBUTIONS.items():
    for _name in _names.split():
        FilledModule(f"{__name__}.{_name}", _home)

SUBMODULES = " ".join(sorted(" ".join(DISTRIBUTIONS.values()).split()))

__getattr__, __dir__, __all__ = attach(__name__, FAMILIES, SUBMODULES)
