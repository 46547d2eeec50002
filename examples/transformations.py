# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Composable transformations
#
# `grad`, `jit`, `vmap` and `pmap`, one after the other and nested. The first program is an old
# acquaintance: a network, its gradient, and its gradient for each example.

# %%
from functools import partial
from timeit import timeit

import numpy as np

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import grad, jacfwd, jacrev, jit, lax, pmap, random, vmap


def predict(params, inputs):
    for weights, biases in params:
        outputs = jnp.dot(inputs, weights) + biases
        inputs = jnp.tanh(outputs)
    return outputs


def loss(params, inputs, targets):
    return jnp.sum((predict(params, inputs) - targets) ** 2)


grad_fun = jit(grad(loss))  # one compiled program
perex_grads = jit(vmap(grad_fun, in_axes=(None, 0, 0)))  # a gradient for each example

# %%
rng = np.random.default_rng(0)
params = [(rng.normal(size=(m, n)).astype(np.float32), rng.normal(size=n).astype(np.float32))
          for m, n in ((4, 5), (5, 2))]
inputs = rng.normal(size=(3, 4)).astype(np.float32)
targets = rng.normal(size=(3, 2)).astype(np.float32)

print(jax.tree.map(jnp.shape, grad_fun(params, inputs, targets)))
print(jax.tree.map(jnp.shape, perex_grads(params, inputs, targets)))

# %% [markdown]
# ## Derivatives
# `grad` differentiates scalar functions, as often as wanted.


# %%
def tanh(x):
    y = jnp.exp(-2.0 * x)
    return (1.0 - y) / (1.0 + y)


grad_tanh = grad(tanh)
print(grad_tanh(1.0))
print(grad(grad(grad(tanh)))(1.0))

# %% [markdown]
# Forward and reverse mode combine. Columns of a Jacobian come by forward mode (`jacfwd`), its rows
# by reverse mode (`jacrev`); one of the other is the Hessian, compiled.


# %%
def hessian(fun):
    return jit(jacfwd(jacrev(fun)))


print(hessian(lambda x: jnp.sum(tanh(x)) ** 2)(jnp.array([0.5, -1.0, 2.0])))

# %% [markdown]
# Outside `jit` values are known, so Python's own `if` works under `grad`; the function runs anew in
# each call.


# %%
def abs_val(x):
    if x > 0:
        return x
    else:
        return -x


abs_val_grad = grad(abs_val)
print(abs_val_grad(1.0))
print(abs_val_grad(-1.0))

# %% [markdown]
# `jvp` and `vjp` are the two modes themselves: a tangent pushed forward, a cotangent pulled back.

# %%
value, tangent = jax.jvp(tanh, (1.0,), (1.0,))
value, pull = jax.vjp(tanh, 1.0)
print(tangent, *pull(1.0))

# %% [markdown]
# ## Compilation
# Elementwise operations gain most: compiled together, they read and write memory once.


# %%
def slow_f(x):
    return x * x + x * 2.0


x = jnp.ones((2000, 2000))
fast_f = jit(slow_f)
print(np.array_equal(fast_f(x), slow_f(x)))

# %% tags=["varies"]
for name, function in (("one by one", slow_f), ("compiled", fast_f)):
    seconds = timeit(lambda function=function: function(x).block_until_ready(), number=10) / 10
    print(f"{name:10} {seconds * 1e3:6.2f} ms")

# %% [markdown]
# ## Mapping
# A network for one input vector, with the matrix on the left:


# %%
def predict_one(params, input_vec):
    assert input_vec.ndim == 1
    for weights, biases in params:
        output_vec = jnp.dot(weights.T, input_vec) + biases
        input_vec = jnp.tanh(output_vec)
    return output_vec


input_batch = inputs
by_loop = jnp.stack(list(map(partial(predict_one, params), input_batch)))

# %% [markdown]
# The loop calls it once for each row. `vmap` moves the loop into the operations: products of a
# matrix and a vector become one product of matrices.

# %%
predictions = vmap(partial(predict_one, params))(input_batch)
also = vmap(predict_one, in_axes=(None, 0))(params, input_batch)
print(np.allclose(predictions, by_loop, atol=1e-5), np.allclose(predictions, also, atol=1e-5))

per_example_gradients = vmap(partial(grad(loss), params))(inputs, targets)
total = grad_fun(params, inputs, targets)
print(all(np.allclose(each.sum(0), whole, atol=1e-4) for each, whole in zip(
    jax.tree.leaves(per_example_gradients), jax.tree.leaves(total), strict=True)))

# %% [markdown]
# ## Several devices
# `pmap` runs one program on several devices, an example on each. Collectives such as `psum` let
# them exchange values. With one device the axis has length one; on a TPU board, or with
# `JAX_NUM_CPU_DEVICES=8`, it has eight.

# %%
devices = jax.device_count()
keys = random.split(random.key(0), devices)
mats = pmap(lambda key: random.normal(key, (500, 600)))(keys)
result = pmap(lambda x: jnp.dot(x, x.T))(mats)  # each product stays on its device
print(result.shape == (devices, 500, 500))
print(pmap(jnp.mean)(result).round(1))


# %%
@partial(pmap, axis_name="i")
def normalize(x):
    return x / lax.psum(x, "i")


print(normalize(jnp.arange(1.0, devices + 1)))

# %% [markdown]
# Maps nest, and gradients pass through them. The inner map here takes what is left of the devices,
# so it needs eight; `vmap` computes the same on one.


# %%
def nested(outer, inner):
    @outer
    def f(x):
        y = jnp.sin(x)

        @inner
        def g(z):
            return jnp.cos(z) * jnp.tan(y.sum()) * jnp.tanh(x).sum()

        return grad(lambda w: jnp.sum(g(w)))(x)

    return f


x = jnp.arange(8.0).reshape(4, 2)
f = nested(vmap, vmap)
print(f(x))
print(grad(lambda x: jnp.sum(f(x)))(x))

# %% tags=["pyjx"]
if devices >= 8:
    on_devices = nested(pmap, pmap)
    print(np.allclose(on_devices(x), f(x), rtol=1e-4))
    gradients = [grad(lambda x, f=f: jnp.sum(f(x)))(x) for f in (on_devices, f)]
    print(np.allclose(*gradients, rtol=1e-4))

# %% [markdown]
# ## Sharp edges
# - Functions should be pure: what they do besides returning a value happens when they are traced,
#   not when they run.
# - Arrays do not change; `x.at[i].add(y)` gives what `x[i] += y` would.
# - Randomness comes from keys that are passed around.
# - Numbers are 32 bits wide; `jax.config.update("jax_enable_x64", True)` at the start allows 64.
# - Promotion is not quite NumPy's:

# %%
print(jnp.add(np.int32(1), np.array([2], np.float32)).dtype,
      np.add(np.int32(1), np.array([2], np.float32)).dtype)
