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
# # From Python to a TPU program
#
# What happens between a Python function and the instructions of a processor: tracing gives a
# *jaxpr*, lowering gives *StableHLO*, XLA optimizes that and compiles it. Each stage is a value
# that can be looked at. The last one needs no TPU: its compiler also runs on machines without one.

# %%
import re
from collections import Counter
from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np

import pyjx as jax
import pyjx.numpy as jnp

# %% [markdown]
# ## Python
# A layer of a network, and the gradient of a loss by its weights.


# %%
def layer(weights, bias, x):
    return jnp.tanh(x @ weights + bias)


def loss(weights, bias, x, y):
    return jnp.mean((layer(weights, bias, x) - y) ** 2)


gradient = jax.jit(jax.grad(loss, argnums=(0, 1)))
key = jax.random.key(0)
weights, x, y = (jax.random.normal(k, shape) for k, shape in zip(
    jax.random.split(key, 3), ((256, 128), (512, 256), (512, 128)), strict=True))
bias = jnp.zeros(128)
arguments = weights, bias, x, y

# %% [markdown]
# ## Jaxpr
# `trace` runs the Python code once, on tracers. The record is typed, has no Python in it any more,
# and holds the derivative as ordinary operations.

# %%
traced = gradient.trace(*arguments)
print(traced.out_info)

# %% tags=["pyjx"]
print(traced.jaxpr)

# %% [markdown]
# ## StableHLO
# `lower` writes the same program in the language that XLA reads. It is text, portable between
# versions and devices.

# %%
lowered = traced.lower()
text = lowered.as_text()

# %% tags=["pyjx"]
print(text)


# %% [markdown]
# Every operation of the jaxpr has become one or a few of these:

# %% tags=["pyjx"]
def operations(text):
    return Counter(re.findall(r"(?<!module )\bstablehlo\.(\w+)", text))


counts = operations(text)
names, heights = zip(*counts.most_common(), strict=True)
plt.figure(figsize=(9, 3))
plt.bar(names, heights)
plt.xticks(rotation=60, ha="right")
plt.title("operations of StableHLO")
plt.show()

# %% [markdown]
# ## An executable for the device at hand
# `compile` hands the text to XLA, which fuses operations, chooses memory layouts and writes machine
# code. Its own text is HLO; a *fusion* is a loop that does several operations at once.

# %%
compiled = lowered.compile()
optimized = compiled.as_text()

# %% tags=["varies"]
print("\n".join(line[:110] for line in optimized.splitlines()[:12]), "\n...")
print("fusions:", len(re.findall(r" fusion\(", optimized)))

# %% [markdown]
# The executable is called like the function:

# %%
gradients = compiled(*arguments)
print([g.shape for g in gradients])
print(np.allclose(gradients[1], jax.grad(loss, argnums=1)(*arguments), atol=1e-6))

# %% tags=["varies"]
start = perf_counter()
for _ in range(100):
    last = compiled(*arguments)
jax.block_until_ready(last)
print(f"{(perf_counter() - start) * 10:.3f} ms a call on {jax.devices()[0].device_kind}")

# %% [markdown]
# What it computes and moves, counted on the jaxpr:

# %% tags=["pyjx"]
print(traced.cost())

# %% [markdown]
# ## The same program for a TPU
# On a TPU, all of the above has just happened on it. Elsewhere, `lower` takes the platform, and the
# text may differ where a platform has operations of its own:

# %%
for_tpu = jax.jit(loss).trace(*arguments).lower(lowering_platforms=("tpu",))

# %% tags=["pyjx"]
print(for_tpu.as_text())

# %% [markdown]
# With the package `libtpu` its compiler is there, too, TPU or not (200 MB; docs/installation.md
# says which version belongs to a jaxlib). A *topology* describes devices to compile for, here four
# chips of a TPU v5e.

# %% tags=["pyjx"]
import importlib.util

if importlib.util.find_spec("libtpu") is None:
    print("libtpu is not installed, so the program stays text here")
else:
    from pyjx.experimental import topologies

    topology = topologies.get_topology_desc("v5e:2x2", "tpu")
    program = for_tpu.compile(device_assignment=topology.devices[:1])
    print("\n".join(line[:110] for line in program.as_text().splitlines()[:12]), "\n...")

# %% [markdown]
# ## All forms side by side
# In a notebook this shows the program as a page: jaxpr, StableHLO and XLA's HLO, with a line of one
# leading to what it became in the others.

# %% tags=["pyjx"]
jax.viewer.show(loss, *arguments)

# %% [markdown]
# ## From the command line
# `emit-hlo` shows any stage of a function in a file or a module:

# %% tags=["pyjx"]
import subprocess
import sys

command = [sys.executable, "-m", "emit_hlo", "pyjx.numpy:tanh", "f32[8]",
           "--emit", "stablehlo"]
print(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
