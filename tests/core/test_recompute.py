"""What blocks compute again rather than read: less memory, the same results."""

import itertools
import re

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import configuration
from pyjx.core.check import check_jaxpr
from pyjx.core.flows import Network
from pyjx.core.jaxpr import subjaxprs
from pyjx.runtime.lower import prepare

SIZE = 256


def layer(x, p):
    """Normalization and a gated product: much is elementwise, and its derivatives need it."""
    mean = x.mean(-1, keepdims=True)
    h = (x - mean) / jnp.sqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-5)
    h = h * p["scale"] + p["shift"]
    gate = jax.nn.gelu(h @ p["in"] + p["bias"])
    return x + (gate * jax.nn.sigmoid(gate)) @ p["out"]


def loss(params, x):
    for p in params:
        x = layer(x, p)
    return (x ** 2).mean()


@pytest.fixture
def params():
    rng = np.random.default_rng(0)

    def one():
        return {"in": rng.normal(size=(SIZE, SIZE)) / 16, "out": rng.normal(size=(SIZE, SIZE)) / 16,
                "scale": np.ones(SIZE), "shift": np.zeros(SIZE), "bias": np.zeros(SIZE)}

    return jax.tree.map(jnp.float32, [one() for _ in range(6)])


@pytest.fixture
def x():
    return jnp.float32(np.random.default_rng(1).normal(size=(512, SIZE)))


def lowered(f, *args, mode):
    with configuration.outline(mode):
        return jax.jit(lambda *xs: f(*xs)).lower(*args)


def close(a, b):
    np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4 * np.abs(b).max())


def test_outlined_programs_need_no_more_memory(params, x):
    step = jax.value_and_grad(loss)
    on, off = (lowered(step, params, x, mode=mode).compile() for mode in ("on", "off"))
    sizes = [c.memory_analysis().temp_size_in_bytes for c in (on, off)]
    assert sizes[0] <= 1.1 * sizes[1]
    for a, b in zip(jax.tree.leaves(on(params, x)), jax.tree.leaves(off(params, x)), strict=True):
        close(a, b)


def test_products_and_sums_are_not_computed_again(params, x):
    closed = prepare(jax.make_jaxpr(jax.grad(loss))(params, x), outline=True)
    for name in ("dot_general", "reduce_sum"):
        plain = prepare(jax.make_jaxpr(jax.grad(loss))(params, x), outline=False)
        assert count(closed.jaxpr, name) == count(plain.jaxpr, name)
    assert count(closed.jaxpr, "tanh") > count(plain.jaxpr, "tanh")


def count(jaxpr, name):
    """How many times an operation is run."""
    return sum((e.primitive.name == name) + sum(count(j, name) for j in subjaxprs(e))
               for e in jaxpr.eqns)


def check_all(jaxpr):
    check_jaxpr(jaxpr)
    for e in jaxpr.eqns:
        for inner in subjaxprs(e):
            check_all(inner)


def test_programs_are_legal(params, x):
    check_all(prepare(jax.make_jaxpr(jax.value_and_grad(loss))(params, x), outline=True).jaxpr)


def test_small_values_are_read(params):
    small = jax.tree.map(lambda p: p[:4, :4] if p.ndim == 2 else p[:4], params)
    closed = prepare(jax.make_jaxpr(jax.grad(loss))(small, jnp.ones((2, 4))), outline=True)
    plain = prepare(jax.make_jaxpr(jax.grad(loss))(small, jnp.ones((2, 4))), outline=False)
    assert count(closed.jaxpr, "tanh") == count(plain.jaxpr, "tanh")


def test_results_of_the_program_are_read(params, x):
    """What is in memory anyway costs nothing to read."""
    def f(params, x):
        kept = []

        def total(params):
            h = x
            for p in params:
                h = layer(h, p)
                kept.append(jnp.tanh(h))
                h = h + kept[-1]
            return h.sum(), list(kept)

        return jax.grad(total, has_aux=True)(params)

    closed = prepare(jax.make_jaxpr(f)(params, x), outline=True)
    on, off = (jax.jit(lambda *a: f(*a)) for _ in range(2))
    with configuration.outline("on"):
        got = on(params, x)
    with configuration.outline("off"):
        want = off(params, x)
    check_all(closed.jaxpr)
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        close(a, b)


def test_the_text_is_the_same_each_time(params, x):
    texts = {lowered(jax.grad(loss), params, x, mode="on").as_text() for _ in range(3)}
    assert len(texts) == 1
    assert re.search("inlineable", texts.pop())


@pytest.mark.parametrize("seed", range(30))
def test_minimum_cuts(seed):
    """Against all cuts of a small network; of the smallest ones the sink's side is least."""
    rng = np.random.default_rng(seed)
    nodes = 7
    edges = [(int(a), int(b), int(rng.integers(0, 5))) for a, b in itertools.permutations(
        range(nodes), 2) if rng.random() < 0.45 and b != 0 and a != 1]
    network = Network(nodes)
    for edge in edges:
        network.edge(*edge)
    near = network.sink_side(0, 1)

    def cost(side):
        return sum(c for a, b, c in edges if side[b] and not side[a])

    sides = [(False, True, *bits) for bits in itertools.product((False, True), repeat=nodes - 2)]
    least = min(map(cost, sides))
    assert cost(near) == least
    assert sum(near) == min(sum(side) for side in sides if cost(side) == least)
