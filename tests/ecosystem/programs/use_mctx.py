"""Monte Carlo tree search over a learned-looking model, batched."""

import json

import jax
import jax.numpy as jnp
import mctx


def recurrent(params, key, action, embedding):
    nxt = jnp.tanh(embedding @ params["w"] + jax.nn.one_hot(action, 3) @ params["a"])
    return mctx.RecurrentFnOutput(
        reward=nxt[:, 0], discount=jnp.full(nxt.shape[0], 0.9),
        prior_logits=nxt[:, 1:4], value=nxt.sum(-1)), nxt


key = jax.random.key(0)
params = {"w": jax.random.normal(key, (5, 5)), "a": jax.random.normal(jax.random.key(1), (3, 5))}
embedding = jax.random.normal(jax.random.key(2), (4, 5))
root = mctx.RootFnOutput(prior_logits=embedding[:, 1:4], value=embedding.sum(-1),
                         embedding=embedding)


@jax.jit
def search(params, key):
    gumbel = mctx.gumbel_muzero_policy(params, key, root, recurrent, 16,
                                       max_num_considered_actions=3)
    muzero = mctx.muzero_policy(params, key, root, recurrent, 16)
    return gumbel.action, gumbel.action_weights, muzero.action, muzero.action_weights


a, w, b, v = search(params, jax.random.key(3))
print(json.dumps({"gumbel": a.tolist(), "weights": w.ravel().tolist(), "muzero": b.tolist(),
                  "visits": v.ravel().tolist()}))
