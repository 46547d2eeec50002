"""A network on a graph with jraph."""

import json

import jax
import jax.numpy as jnp
import jraph

graph = jraph.GraphsTuple(
    nodes=jnp.arange(12.0).reshape(4, 3), edges=jnp.ones((5, 2)),
    senders=jnp.array([0, 1, 2, 3, 0]),
    receivers=jnp.array([1, 2, 3, 0, 2]), n_node=jnp.array([4]), n_edge=jnp.array([5]),
    globals=jnp.ones((1, 1)))
weights = jax.random.normal(jax.random.key(0), (3, 3))


def loss(weights):
    net = jraph.GraphNetwork(
        update_edge_fn=lambda e, s, r, g: jnp.tanh(e.sum() + s @ weights + r),
        update_node_fn=lambda n, s, r, g: jnp.tanh(n @ weights + r),
        update_global_fn=lambda n, e, g: n.sum(-1, keepdims=True) + g)
    return net(jraph.batch([graph, graph])).globals.sum()


convolved = jraph.GraphConvolution(lambda n: n @ weights)(jraph.pad_with_graphs(graph, 6, 8, 2))
print(json.dumps({"loss": float(loss(weights)), "gradient": jax.grad(loss)(weights).sum(0).tolist(),
                  "convolved": convolved.nodes.sum(0).tolist()}))
