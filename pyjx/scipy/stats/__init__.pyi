# Written by `python -m pyjx.cli.stubs` from the table of pyjx.scipy.stats.

from pyjx.scipy.stats import bernoulli as bernoulli
from pyjx.scipy.stats import beta as beta
from pyjx.scipy.stats import betabinom as betabinom
from pyjx.scipy.stats import binom as binom
from pyjx.scipy.stats import cauchy as cauchy
from pyjx.scipy.stats import chi2 as chi2
from pyjx.scipy.stats import dirichlet as dirichlet
from pyjx.scipy.stats import expon as expon
from pyjx.scipy.stats import gamma as gamma
from pyjx.scipy.stats import gennorm as gennorm
from pyjx.scipy.stats import geom as geom
from pyjx.scipy.stats import gumbel_l as gumbel_l
from pyjx.scipy.stats import gumbel_r as gumbel_r
from pyjx.scipy.stats import laplace as laplace
from pyjx.scipy.stats import logistic as logistic
from pyjx.scipy.stats import multinomial as multinomial
from pyjx.scipy.stats import multivariate_normal as multivariate_normal
from pyjx.scipy.stats import nbinom as nbinom
from pyjx.scipy.stats import norm as norm
from pyjx.scipy.stats import pareto as pareto
from pyjx.scipy.stats import poisson as poisson
from pyjx.scipy.stats import t as t
from pyjx.scipy.stats import truncnorm as truncnorm
from pyjx.scipy.stats import uniform as uniform
from pyjx.scipy.stats import vonmises as vonmises
from pyjx.scipy.stats import wrapcauchy as wrapcauchy
from pyjx.scipy.stats.summaries import gaussian_kde as gaussian_kde
from pyjx.scipy.stats.summaries import mode as mode
from pyjx.scipy.stats.summaries import rankdata as rankdata
from pyjx.scipy.stats.summaries import sem as sem

__all__ = [
    "bernoulli",
    "beta",
    "betabinom",
    "binom",
    "cauchy",
    "chi2",
    "dirichlet",
    "expon",
    "gamma",
    "gennorm",
    "geom",
    "gumbel_l",
    "gumbel_r",
    "laplace",
    "logistic",
    "multinomial",
    "multivariate_normal",
    "nbinom",
    "norm",
    "pareto",
    "poisson",
    "t",
    "truncnorm",
    "uniform",
    "vonmises",
    "wrapcauchy",
    "gaussian_kde",
    "mode",
    "rankdata",
    "sem",
]
