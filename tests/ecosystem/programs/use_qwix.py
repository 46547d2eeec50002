"""Quantizing a model with qwix: after training, and while training."""

import json

import jax
import jax.numpy as jnp
import qwix
from flax import linen as nn


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(4)(nn.relu(nn.Dense(16)(x)))


x = jax.random.normal(jax.random.key(0), (8, 12))
net = Net()
variables = net.init(jax.random.key(1), x)
rules = [qwix.QuantizationRule(module_path=".*", weight_qtype=jnp.int8, act_qtype=jnp.int8)]
trained = qwix.quantize_model(net, qwix.QtProvider(rules))
gradient = jax.grad(lambda v: (trained.apply(v, x) ** 2).sum())(variables)
served = qwix.quantize_model(net, qwix.PtqProvider(rules))
abstract = jax.eval_shape(served.init, jax.random.key(1), x)["params"]
quantized = qwix.quantize_params(variables["params"], abstract)
array = qwix.quantize(x, jnp.int8, channelwise_axes=[0])
print(json.dumps({
    "plain": float(net.apply(variables, x).mean()),
    "trained": float(trained.apply(variables, x).mean()),
    "gradient": float(jnp.abs(gradient["params"]["Dense_0"]["kernel"]).sum()),
    "served": float(served.apply({"params": quantized}, x).mean()),
    "error": float(jnp.abs(qwix.dequantize(array) - x).max())}))
