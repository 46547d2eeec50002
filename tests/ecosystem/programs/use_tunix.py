"""Low-rank adaptation of a small model with tunix."""

import json

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from tunix.sft import peft_trainer


class Net(nnx.Module):
    def __init__(self, rngs):
        self.a = nnx.Linear(8, 16, rngs=rngs)
        self.b = nnx.Linear(16, 4, rngs=rngs)

    def __call__(self, x):
        return self.b(nnx.relu(self.a(x)))


x = jax.random.normal(jax.random.key(0), (32, 8))
y = jnp.stack([x[:, :4].sum(1), x[:, 4:].sum(1), x[:, 0], x[:, 1]], 1)
net = Net(nnx.Rngs(0))


def loss_fn(model, x, y):
    return jnp.mean((model(x) - y) ** 2)


before = float(loss_fn(net, x, y))
config = peft_trainer.TrainingConfig(eval_every_n_steps=100, max_steps=5)
trainer = peft_trainer.PeftTrainer(net, optax.adam(1e-2), config)
trainer = trainer.with_loss_fn(loss_fn).with_gen_model_input_fn(lambda d: d)
trainer.train([{"x": x, "y": y}] * 5, skip_jit=False)
print(json.dumps({"before": before, "after": float(loss_fn(net, x, y))}))
