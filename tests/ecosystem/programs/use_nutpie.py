"""Sampling a model of PyMC with nutpie, whose log density JAX computes."""

import json

import numpy as np
import nutpie
import pymc as pm

with pm.Model() as model:
    mean = pm.Normal("mean", 0, 10)
    scale = pm.HalfNormal("scale", 5)
    pm.Normal("y", mean, scale, observed=np.linspace(-1, 3, 20))
compiled = nutpie.compile_pymc_model(model, backend="jax", gradient_backend="jax")
trace = nutpie.sample(compiled, draws=200, tune=200, chains=1, seed=1, progress_bar=False)
print(json.dumps({"mean": float(trace.posterior["mean"].mean()),
                  "scale": float(trace.posterior["scale"].mean())}))
