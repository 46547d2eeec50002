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
# # Flash attention as a kernel
#
# Attention needs a score for each pair of tokens. A kernel goes over them block by block, and has
# none of them in memory for longer than it takes to add them up. This one is written in Pallas; it
# is interpreted here, on any platform, and `interpret=False` compiles it for a TPU.

# %%
import pyjx as jax
import pyjx.numpy as jnp
from pyjx.experimental import pallas as pl
from pyjx.experimental.pallas import tpu as pltpu
from pyjx.experimental.pallas.ops.tpu.flash_attention import flash_attention

# %% [markdown]
# ## What it computes
# One head: a row of `q` for each query, rows of `k` and `v` for the tokens that it looks at.

# %%
def attention(q, k, v):
    return jax.nn.softmax(q @ k.T) @ v


length, size, block = 512, 128, 128
keys = jax.random.split(jax.random.key(0), 3)
q, k, v = [0.3 * jax.random.normal(key, (length, size)) for key in keys]
print(attention(q, k, v).shape)

# %% [markdown]
# ## Sums that can be continued
# A softmax divides by a sum over all tokens, which a block does not know. But a sum of exponentials
# over the tokens so far can be continued: when a greater score comes, what is there is scaled by
# the exponential of the difference. So three things stay from block to block, in scratch space: the
# greatest score, the sum, and the sum of the values times the exponentials. The first two are
# numbers for each row; vectors of a TPU have 128 lanes, and hold 128 copies of them.

# %%
def kernel(q_ref, k_ref, v_ref, out_ref, top_ref, total_ref, sum_ref):
    @pl.when(pl.program_id(1) == 0)
    def _():
        top_ref[...] = jnp.full_like(top_ref, -jnp.inf)
        total_ref[...] = jnp.zeros_like(total_ref)
        sum_ref[...] = jnp.zeros_like(sum_ref)

    scores = q_ref[...] @ k_ref[...].T
    old = top_ref[:, :1]
    top = jnp.maximum(old, jnp.max(scores, 1, keepdims=True))
    weights, shrink = jnp.exp(scores - top), jnp.exp(old - top)
    total = total_ref[:, :1] * shrink + jnp.sum(weights, 1, keepdims=True)
    sum_ref[...] = sum_ref[...] * shrink + weights @ v_ref[...]
    top_ref[...] = jnp.broadcast_to(top, top_ref.shape)
    total_ref[...] = jnp.broadcast_to(total, total_ref.shape)

    @pl.when(pl.program_id(1) == pl.num_programs(1) - 1)
    def _():
        out_ref[...] = sum_ref[...] / total_ref[:, :1]


# %% [markdown]
# ## Blocks
# The grid has an axis for blocks of queries and one for blocks of tokens. The last axis runs
# fastest: a program finds in scratch space what the one before it has left.

# %%
queries = pl.BlockSpec((block, size), lambda i, j: (i, 0))
tokens = pl.BlockSpec((block, size), lambda i, j: (j, 0))
numbers = pltpu.VMEM((block, 128), jnp.float32)
by_blocks = pl.pallas_call(
    kernel, out_shape=jax.ShapeDtypeStruct(q.shape, q.dtype),
    grid=(length // block, length // block), in_specs=[queries, tokens, tokens], out_specs=queries,
    scratch_shapes=[numbers, numbers, pltpu.VMEM((block, size), jnp.float32)], interpret=True)
print(bool(jnp.allclose(by_blocks(q, k, v), attention(q, k, v), atol=1e-5)))

# %% [markdown]
# Heads and batches are more axes of the grid: `vmap` adds them.

# %%
several = [jnp.stack([x, 2 * x]) for x in (q, k, v)]
same = jnp.allclose(jax.vmap(by_blocks)(*several), jax.vmap(attention)(*several), atol=1e-5)
print(bool(same))

# %% [markdown]
# ## The kernel that is there
# `flash_attention` has causal masks, segments, a bias, and gradients that are kernels themselves:
# they compute the weights again, block by block, from the greatest score and the sum of each row.

# %%
def loss(function):
    return lambda q: jnp.sum(function(q[None, None], k[None, None], v[None, None]) ** 2)


def causal(q, k, v):
    scores = jnp.where(jnp.tri(length, dtype=bool), q @ k.mT, -jnp.inf)
    return jax.nn.softmax(scores) @ v


with pltpu.force_tpu_interpret_mode():
    slopes = jax.grad(loss(lambda *qkv: flash_attention(*qkv, causal=True)))(q)
print(bool(jnp.allclose(slopes, jax.grad(loss(causal))(q), atol=1e-4)))
