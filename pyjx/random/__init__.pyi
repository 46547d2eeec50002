# Written by `python -m pyjx.cli.stubs` from the table of pyjx.random.

from pyjx.random.base import Key as Key
from pyjx.random.base import PRNGKey as PRNGKey
from pyjx.random.base import bits as bits
from pyjx.random.base import clone as clone
from pyjx.random.base import fold_in as fold_in
from pyjx.random.base import key as key
from pyjx.random.base import key_data as key_data
from pyjx.random.base import key_dtype as key_dtype
from pyjx.random.base import key_impl as key_impl
from pyjx.random.base import split as split
from pyjx.random.base import wrap_key_data as wrap_key_data
from pyjx.random.samplers import bernoulli as bernoulli
from pyjx.random.samplers import cauchy as cauchy
from pyjx.random.samplers import exponential as exponential
from pyjx.random.samplers import gumbel as gumbel
from pyjx.random.samplers import laplace as laplace
from pyjx.random.samplers import logistic as logistic
from pyjx.random.samplers import normal as normal
from pyjx.random.samplers import rademacher as rademacher
from pyjx.random.samplers import randint as randint
from pyjx.random.samplers import truncated_normal as truncated_normal
from pyjx.random.samplers import uniform as uniform
from pyjx.random.distributions import double_sided_maxwell as double_sided_maxwell
from pyjx.random.distributions import geometric as geometric
from pyjx.random.distributions import lognormal as lognormal
from pyjx.random.distributions import maxwell as maxwell
from pyjx.random.distributions import multivariate_normal as multivariate_normal
from pyjx.random.distributions import orthogonal as orthogonal
from pyjx.random.distributions import pareto as pareto
from pyjx.random.distributions import rayleigh as rayleigh
from pyjx.random.distributions import triangular as triangular
from pyjx.random.distributions import wald as wald
from pyjx.random.distributions import weibull_min as weibull_min
from pyjx.random.discrete import binomial as binomial
from pyjx.random.discrete import categorical as categorical
from pyjx.random.discrete import choice as choice
from pyjx.random.discrete import multinomial as multinomial
from pyjx.random.discrete import permutation as permutation
from pyjx.random.discrete import poisson as poisson
from pyjx.random.gamma_samplers import ball as ball
from pyjx.random.gamma_samplers import beta as beta
from pyjx.random.gamma_samplers import chisquare as chisquare
from pyjx.random.gamma_samplers import dirichlet as dirichlet
from pyjx.random.gamma_samplers import f as f
from pyjx.random.gamma_samplers import gamma as gamma
from pyjx.random.gamma_samplers import generalized_normal as generalized_normal
from pyjx.random.gamma_samplers import loggamma as loggamma
from pyjx.random.gamma_samplers import random_gamma_p as random_gamma_p
from pyjx.random.gamma_samplers import t as t

__all__ = [
    "Key",
    "PRNGKey",
    "bits",
    "clone",
    "fold_in",
    "key",
    "key_data",
    "key_dtype",
    "key_impl",
    "split",
    "wrap_key_data",
    "bernoulli",
    "cauchy",
    "exponential",
    "gumbel",
    "laplace",
    "logistic",
    "normal",
    "rademacher",
    "randint",
    "truncated_normal",
    "uniform",
    "double_sided_maxwell",
    "geometric",
    "lognormal",
    "maxwell",
    "multivariate_normal",
    "orthogonal",
    "pareto",
    "rayleigh",
    "triangular",
    "wald",
    "weibull_min",
    "binomial",
    "categorical",
    "choice",
    "multinomial",
    "permutation",
    "poisson",
    "ball",
    "beta",
    "chisquare",
    "dirichlet",
    "f",
    "gamma",
    "generalized_normal",
    "loggamma",
    "random_gamma_p",
    "t",
]
