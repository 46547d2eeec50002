"""Samplers over keys and parameters that are cut along an Explicit axis."""

import inspect

import numpy as np
import pytest

import pyjx as jax
from pyjx import numpy as jnp
from pyjx import random
from pyjx.sharding import AxisType
from pyjx.sharding import PartitionSpec as P

LOGITS = jnp.arange(3.0)
SAMPLERS = {
    "ball": lambda key, a: random.ball(key, 2, shape=(3,)),
    "bernoulli": lambda key, a: random.bernoulli(key, a / 10),
    "beta": lambda key, a: random.beta(key, a, 2.0),
    "binomial": lambda key, a: random.binomial(key, 5.0, a / 10),
    "bits": lambda key, a: random.bits(key, (3,)),
    "categorical": lambda key, a: random.categorical(key, LOGITS * a),
    "cauchy": lambda key, a: random.cauchy(key, (3,)),
    "chisquare": lambda key, a: random.chisquare(key, a),
    "choice": lambda key, a: random.choice(key, 5, (3,)),
    "dirichlet": lambda key, a: random.dirichlet(key, a + LOGITS),
    "double_sided_maxwell": lambda key, a: random.double_sided_maxwell(key, a, 1.0),
    "exponential": lambda key, a: random.exponential(key, (3,)),
    "f": lambda key, a: random.f(key, a, 3.0),
    "gamma": lambda key, a: random.gamma(key, a, (3,)),
    "generalized_normal": lambda key, a: random.generalized_normal(key, 2.0, (3,)),
    "geometric": lambda key, a: random.geometric(key, a / 10),
    "gumbel": lambda key, a: random.gumbel(key, (3,)),
    "laplace": lambda key, a: random.laplace(key, (3,)),
    "loggamma": lambda key, a: random.loggamma(key, a),
    "logistic": lambda key, a: random.logistic(key, (3,)),
    "lognormal": lambda key, a: random.lognormal(key, a),
    "maxwell": lambda key, a: random.maxwell(key, (3,)),
    "multinomial": lambda key, a: random.multinomial(key, 5.0, jnp.full(3, 1 / 3)),
    "multivariate_normal": lambda key, a: random.multivariate_normal(key, LOGITS, jnp.eye(3)),
    "normal": lambda key, a: random.normal(key, (3,)),
    "orthogonal": lambda key, a: random.orthogonal(key, 3),
    "pareto": lambda key, a: random.pareto(key, a),
    "permutation": lambda key, a: random.permutation(key, 5),
    "poisson": lambda key, a: random.poisson(key, a),
    "rademacher": lambda key, a: random.rademacher(key, (3,)),
    "randint": lambda key, a: random.randint(key, (3,), 0, 9),
    "rayleigh": lambda key, a: random.rayleigh(key, a),
    "split": lambda key, a: random.split(key, 3),
    "t": lambda key, a: random.t(key, a, (3,)),
    "triangular": lambda key, a: random.triangular(key, 0.0, a / 20, 1.0),
    "truncated_normal": lambda key, a: random.truncated_normal(key, -a, a),
    "uniform": lambda key, a: random.uniform(key, (3,), maxval=a),
    "wald": lambda key, a: random.wald(key, a),
    "weibull_min": lambda key, a: random.weibull_min(key, a, 2.0),
}
NO_SAMPLERS = {"Key", "PRNGKey", "clone", "fold_in", "key", "key_data", "key_dtype", "key_impl",
               "wrap_key_data"}


def test_every_sampler_has_an_example():
    functions = {name for name in random.__all__ if inspect.isfunction(getattr(random, name))}
    assert functions - NO_SAMPLERS <= set(SAMPLERS)


@pytest.mark.parametrize("name", SAMPLERS)
def test_numbers_of_cut_keys_are_cut_and_those_of_whole_keys(name):
    keys, a = random.split(random.key(3), 8), np.arange(8, dtype=np.float32) + 1
    expected = jax.vmap(SAMPLERS[name])(keys, a)
    with jax.set_mesh(jax.make_mesh((4, 2), ("x", "y"), (AxisType.Explicit,) * 2)):
        out = jax.vmap(SAMPLERS[name])(jax.device_put(keys, P("x")), jax.device_put(a, P("x")))
    assert jax.typeof(out).sharding.spec[0] == "x"
    if name == "split":
        out, expected = random.key_data(out), random.key_data(expected)
    np.testing.assert_allclose(out, expected, rtol=1e-5)
