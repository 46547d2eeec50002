"""Programs of users' kind at many lengths: few programs, and the values of the functions."""

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax
from pyjx.dynamic.buckets import Bucket

RNG = np.random.default_rng(0)
D = 16


def matrix(*shape):
    return (RNG.normal(size=shape) / np.sqrt(shape[0])).astype(np.float32)


WEIGHTS = [matrix(D, D) for _ in range(4)]


def evaluated(ws, x, labels):
    for w in ws:
        x = jax.nn.relu(x @ w)
    scores = jax.nn.log_softmax(x)
    return (-jnp.mean(jnp.take_along_axis(scores, labels[:, None], 1)),
            jnp.mean(jnp.argmax(scores, 1) == labels))


def trained(ws, x, labels):
    return jax.grad(lambda ws: evaluated(ws, x, labels)[0])(ws)


def attended(ws, x, length):
    q, k, v = [x @ w for w in ws[:3]]
    scores = jnp.where(jnp.arange(x.shape[0]) < length, q @ k.T / 4, -1e9)
    return jax.nn.softmax(scores) @ v


def decoded(ws, keys, values, x):
    keys = jnp.concatenate([keys, (x @ ws[0])[None]])
    values = jnp.concatenate([values, (x @ ws[1])[None]])
    return keys, values, jnp.tanh(jax.nn.softmax(keys @ x) @ values @ ws[2])


def passed(ws, nodes, senders, receivers):
    for w in ws:
        got = jax.ops.segment_sum(nodes[senders] @ w, receivers, num_segments=nodes.shape[0])
        nodes = jax.nn.relu(nodes + got)
    return nodes.mean(0)


def clustered(centres, x):
    def step(_, centres):
        nearest = jnp.argmin(((x[:, None] - centres) ** 2).sum(-1), 1)
        which = jax.nn.one_hot(nearest, len(centres))
        return which.T @ x / jnp.maximum(which.sum(0), 1)[:, None]

    return lax.fori_loop(0, 3, step, centres)


def read(ws, table, text):
    return lax.scan(lambda h, word: (jnp.tanh(table[word] @ ws[0] + h @ ws[1]), None),
                    jnp.zeros(D), text)[0]


def aligned(scores, labels):
    def step(alpha, now):
        before = jnp.concatenate([jnp.full(1, -1e9), alpha[:-1]])
        return jnp.logaddexp(alpha, before) + now[labels], None

    start = jnp.where(jnp.arange(labels.shape[0]) == 0, 0.0, -1e9)
    return lax.scan(step, start, scores)[0][-1]


def integers(high, n):
    return RNG.integers(0, high, n).astype(np.int32)


CASES = {
    "evaluation": (evaluated, {"x": ("n", None), "labels": ("n",)}, "pow2",
                   lambda n: (WEIGHTS, matrix(n, D), integers(D, n))),
    "training": (trained, {"x": ("n", None), "labels": ("n",)}, "pow2",
                 lambda n: (WEIGHTS, matrix(n, D), integers(D, n))),
    "attention": (attended, {"x": ("n", None)}, "pow2",
                  lambda n: (WEIGHTS, matrix(n, D), max(1, n - 2))),
    "decoding": (decoded, {"keys": ("n", None), "values": ("n", None)}, "pow2",
                 lambda n: (WEIGHTS, matrix(n, D), matrix(n, D), matrix(D))),
    "graphs": (passed, {"nodes": ("n", None), "senders": ("e",), "receivers": ("e",)},
               {"n": [32, 128], "e": [64, 512]},
               lambda n: (WEIGHTS, matrix(n, D), integers(n, 3 * n), integers(n, 3 * n))),
    "clusters": (clustered, {"x": ("n", None)}, "pow2", lambda n: (matrix(4, D), matrix(n, D))),
    "texts": (read, {"text": ("n",)}, "pow2",
              lambda n: (WEIGHTS, jnp.asarray(matrix(50, D)), integers(50, n))),
    "alignment": (aligned, {"scores": ("n", None), "labels": ("k",)},
                  {"n": [16, 64, 128], "k": [64]},
                  lambda n: (np.log(RNG.dirichlet(np.ones(20), n)).astype(np.float32),
                             integers(20, (n + 1) // 2))),
}


def check(name, lengths, monkeypatch):
    fun, dims, policy, arguments = CASES[name]
    made = []
    init = Bucket.__init__
    monkeypatch.setattr(Bucket, "__init__", lambda self, *a: (made.append(self), init(self, *a))[1])
    dynamic = jax.jit(fun, dynamic=dims, dynamic_policy=policy)
    dynamic.clear_cache()
    for n in lengths:
        args = arguments(n)
        for x, y in zip(jax.tree.leaves(dynamic(*args)), jax.tree.leaves(jax.jit(fun)(*args)),
                        strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-4)
    unpadded = [plan for plan in dynamic._jit_spec.padded.values() if plan is None]
    assert made and len(made) + len(unpadded) <= 7


@pytest.mark.parametrize("name", CASES)
def test_few_programs_serve_all_lengths(name, monkeypatch):
    check(name, (1, 2, 9, 30, 61), monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_seven_programs_serve_a_hundred_lengths(name, monkeypatch):
    check(name, range(1, 101), monkeypatch)
