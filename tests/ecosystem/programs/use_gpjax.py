"""Fitting a Gaussian process with gpjax."""

import json

import gpjax as gpx
import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)
x = jnp.linspace(-2, 2, 30)[:, None]
y = jnp.sin(3 * x) + 0.1 * jax.random.normal(jax.random.key(0), x.shape)
data = gpx.Dataset(X=x, y=y)
prior = gpx.gps.Prior(mean_function=gpx.mean_functions.Zero(), kernel=gpx.kernels.RBF())
posterior = prior * gpx.likelihoods.Gaussian(num_datapoints=30)


def loss(p, d):
    return -gpx.objectives.conjugate_mll(p, d)


before = float(loss(posterior, data))
fitted, history = gpx.fit_scipy(model=posterior, objective=loss, train_data=data, verbose=False)
found = fitted.predict(jnp.array([[0.25]]), train_data=data)
print(json.dumps({"before": before, "after": float(loss(fitted, data)),
                  "mean": float(found.mean[0]), "variance": float(found.covariance()[0, 0])}))
