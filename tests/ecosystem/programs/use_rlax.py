"""Returns, losses and exploration of rlax."""

import json

import jax
import jax.numpy as jnp
import rlax

key = jax.random.key(0)
r, d, v = jax.random.normal(key, (8,)), jnp.full(8, 0.9), jax.random.normal(jax.random.key(1), (9,))
q = jax.random.normal(jax.random.key(2), (4, 3))
logits = jax.random.normal(jax.random.key(3), (8, 5))
a = jnp.arange(8) % 5
vtrace = rlax.vtrace_td_error_and_advantage(v[:-1], v[1:], r, d, jnp.exp(0.1 * r), 0.95)
gae = rlax.truncated_generalized_advantage_estimation(r, d, 0.9, v)
learning = jax.vmap(rlax.double_q_learning)(q, jnp.arange(4) % 3, r[:4], d[:4], q * 2, q - 1)
atoms = jnp.linspace(-2.0, 2.0, 11)
categorical = rlax.categorical_l2_project(atoms * 0.9 + 0.1, jax.nn.softmax(atoms), atoms)
quantile = rlax.quantile_q_learning(
    jax.random.normal(key, (7, 3)), jnp.linspace(0.1, 0.9, 7), 1, 0.5, 0.9,
    jax.random.normal(key, (7, 3)), jax.random.normal(key, (7, 3)), 1.0)
policy = jax.grad(lambda x: rlax.policy_gradient_loss(x, a, gae, jnp.ones(8)))(logits)
print(json.dumps({
    "lambda": [float(x) for x in rlax.lambda_returns(r, d, v[1:], 0.8)],
    "vtrace": float(vtrace.errors.sum()), "gae": float(gae.sum()),
    "double": [float(x) for x in learning], "categorical": [float(x) for x in categorical],
    "quantile": float(quantile), "policy": float(jnp.abs(policy).sum()),
    "entropy": float(rlax.entropy_loss(logits, jnp.ones(8))),
    "greedy": [float(x) for x in rlax.epsilon_greedy(0.1).probs(q[0])],
    "sample": int(rlax.softmax().sample(key, q[0])),
    "popart": float(rlax.art(rlax.PopArtState(jnp.zeros(2), jnp.ones(2), jnp.ones(2)),
                             r, jnp.zeros(8, int), 0.1, 1e-4, 1e4).shift[0])}))
