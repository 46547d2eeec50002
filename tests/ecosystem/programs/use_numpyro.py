"""Inference of numpyro: NUTS, SVI, predictive, and a hierarchical model."""

import json

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS, SVI, Predictive, Trace_ELBO
from numpyro.infer.autoguide import AutoNormal

numpyro.enable_x64()

x = jnp.linspace(-1, 1, 30)
y = 2.0 * x + 0.5 + 0.1 * jax.random.normal(jax.random.key(0), (30,))


def model(x, y=None):
    a = numpyro.sample("a", dist.Normal(0, 1))
    b = numpyro.sample("b", dist.Normal(0, 1))
    s = numpyro.sample("s", dist.HalfNormal(1.0))
    with numpyro.plate("data", x.shape[0]):
        numpyro.sample("y", dist.Normal(a * x + b, s), obs=y)


mcmc = MCMC(NUTS(model), num_warmup=15, num_samples=15, progress_bar=False)
mcmc.run(jax.random.PRNGKey(0), x, y)
samples = mcmc.get_samples()

guide = AutoNormal(model)
svi = SVI(model, guide, numpyro.optim.Adam(0.02), Trace_ELBO())
result = svi.run(jax.random.PRNGKey(1), 300, x, y, progress_bar=False)
predicted = Predictive(model, samples)(jax.random.PRNGKey(2), x)["y"]
log = float(numpyro.infer.util.log_density(
    model, (x, y), {}, {"a": 2.0, "b": 0.5, "s": 0.1})[0])


def schools(sigma, obs):
    mu = numpyro.sample("mu", dist.Normal(0, 5))
    tau = numpyro.sample("tau", dist.HalfCauchy(5))
    with numpyro.plate("J", 8):
        with numpyro.handlers.reparam(config={
                "theta": numpyro.infer.reparam.TransformReparam()}):
            theta = numpyro.sample("theta", dist.TransformedDistribution(
                dist.Normal(0.0, 1.0), dist.transforms.AffineTransform(mu, tau)))
        numpyro.sample("obs", dist.Normal(theta, sigma), obs=obs)


sigma = jnp.array([15.0, 10, 16, 11, 9, 11, 10, 18])
obs = jnp.array([28.0, 8, -3, 7, -1, 1, 18, 12])
run = MCMC(NUTS(schools), num_warmup=15, num_samples=15, progress_bar=False)
run.run(jax.random.PRNGKey(3), sigma, obs)
print(json.dumps({
    "a": float(samples["a"].mean()), "b": float(samples["b"].mean()),
    "s": float(samples["s"].mean()), "svi": float(result.losses[-1]),
    "auto_a": float(result.params["a_auto_loc"]), "predicted": float(predicted.mean()),
    "log": log, "mu": float(run.get_samples()["mu"].mean())}))
