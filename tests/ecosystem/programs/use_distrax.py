"""Distributions and bijectors of distrax."""

import json

import distrax
import jax
import jax.numpy as jnp

key = jax.random.key(0)
mixture = distrax.MixtureSameFamily(
    distrax.Categorical(logits=jnp.array([0.1, 0.9])),
    distrax.Normal(jnp.array([-1.0, 2.0]), jnp.array([0.5, 1.0])))
flow = distrax.Transformed(
    distrax.MultivariateNormalDiag(jnp.zeros(2), jnp.ones(2)),
    distrax.Chain([distrax.Block(distrax.ScalarAffine(1.0, 2.0), 1),
                   distrax.MaskedCoupling(jnp.array([True, False]), lambda x: x,
                                          lambda p: distrax.ScalarAffine(p, jnp.exp(p)))]))
x, log = flow.sample_and_log_prob(seed=key, sample_shape=(5,))
custom = distrax.Lambda(lambda x: jnp.tanh(x) * 2.0)
y, logdet = custom.forward_and_log_det(jnp.array([0.1, 0.5]))
back = custom.inverse(y)
hmm = distrax.HMM(distrax.Categorical(probs=jnp.array([0.6, 0.4])),
                  distrax.Categorical(probs=jnp.array([[0.7, 0.3], [0.2, 0.8]])),
                  distrax.Normal(jnp.array([0.0, 3.0]), jnp.ones(2)))
states, observations = jax.jit(lambda k: hmm.sample(seed=k, seq_len=6))(key)
alpha, beta, post, lp = hmm.forward_backward(observations)
grad = jax.grad(lambda m: distrax.Normal(m, 1.0).kl_divergence(distrax.Normal(0.0, 2.0)))(1.5)
spline = distrax.RationalQuadraticSpline(jnp.ones(3 * 4 + 1), -1.0, 1.0)
print(json.dumps({
    "mixture": float(mixture.log_prob(0.3)), "sample": float(mixture.sample(seed=key)),
    "flow": [float(v) for v in log], "again": float(jnp.abs(flow.log_prob(x) - log).max()),
    "lambda": [float(v) for v in logdet], "back": [float(v) for v in back],
    "hmm": float(lp), "posterior": float(post[:, 0].sum()), "kl": float(grad),
    "spline": float(spline.forward(jnp.array(0.3)))}))
