"""Metrics of clu, over batches and by their means."""

import json

import flax.struct
import jax
import jax.numpy as jnp
from clu import metrics


@flax.struct.dataclass
class Seen(metrics.Collection):
    accuracy: metrics.Accuracy
    loss: metrics.Average.from_output("loss")


seen = Seen.empty()
for i in range(3):
    logits = jax.random.normal(jax.random.key(i), (8, 4))
    seen = seen.merge(jax.jit(lambda x: Seen.single_from_model_output(
        logits=x, labels=jnp.arange(8) % 4, loss=jnp.abs(x).mean(1)))(logits))
print(json.dumps({name: float(value) for name, value in seen.compute().items()}))
