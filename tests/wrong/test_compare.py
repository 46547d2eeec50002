"""`inspect.compare`: the first operation that deviates, and no rounding that is taken for one."""

from __future__ import annotations

import linecache

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from lowering import rules
from pyjx import inspect, lax
from tests.oracle import programs
from tests.oracle.values import Gen

X = np.linspace(-1, 1, 8, dtype="f4")
WAYS = ["eager", "numpy-float64", {"xla_disable_hlo_passes": "fusion"}]


def plain(x):
    return jnp.tanh(jnp.sinh(x) * 2).sum()  # HERE


def looped(x):
    def body(c, i):
        grown = lax.cond(i == 2, jnp.sinh, lambda c: c * 0.5, c)  # HERE
        return jnp.tanh(c) + grown, c.sum()

    return lax.scan(body, x, jnp.arange(4.0))


def reversed_loop(x):
    return lax.scan(lambda c, y: (jnp.cos(c) + y, jnp.sinh(c + y)), 0.5, x, reverse=True)  # HERE


def differentiated(x):
    def f(x):
        y = jnp.cosh(x)  # HERE
        return (y * y).sum()
    return jax.grad(f)(x)


def batched(x):
    return jax.vmap(lambda r: jax.jit(jnp.sinh)(r).sum())(x.reshape(2, 4))  # HERE


FAULTS = {"plain": (plain, []), "looped": (looped, ["iteration 2 of scan", "branch 1 of cond"]),
          "reversed_loop": (reversed_loop, ["iteration 0 of scan"]),
          "differentiated": (differentiated, []), "batched": (batched, [])}


@pytest.fixture
def wrong_rule(monkeypatch):
    """The compiled `sinh` is that of `cosh`."""
    known = rules.rules_for("cpu")
    monkeypatch.setitem(known, "sinh", known["cosh"])
    jax.clear_caches()
    yield
    jax.clear_caches()


@pytest.mark.parametrize("name", FAULTS)
def test_operation_and_line_of_planted_faults(name, wrong_rule):
    fun, steps = FAULTS[name]
    found = inspect.compare(fun, X)
    assert not found and (found.first.operation, [s.text for s in found.first.steps]) == (
        "sinh", steps), found
    line = linecache.getline(__file__, found.first.line.start_line)
    assert "HERE" in line, found
    assert found.first.found > 1000 * found.first.allowed and found.growth
    assert "compiled and numpy-float64 differ, first in sinh at" in str(found)


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("fun", [plain, looped, differentiated, batched])
def test_what_is_right(fun, way):
    assert inspect.compare(fun, X, b=way)


def test_rounding_that_grows_is_none():
    def chaotic(x):
        return lax.fori_loop(0, 60, lambda i, x: 4 * x * (1 - x), x)

    x = np.linspace(0.1, 0.9, 8, dtype="f4")
    found = inspect.compare(chaotic, x)
    assert found, found
    assert inspect.compare(lambda x: (x + 1e6) - 1e6 - x, x)


def test_ways_are_checked():
    with pytest.raises(ValueError, match="neither compiled, eager, numpy-float64 nor a platform"):
        inspect.compare(jnp.sin, X, b="nowhere")
    assert inspect.compare(jnp.sin, X, a="cpu", b="eager")


def compare_generated(number, way):
    """The comparison of a program of the oracle's; None where it is refused."""
    made = programs.program(Gen(f"compare/{number}"))
    space = {"np": np, "jnp": jnp, "jax": jax, "lax": lax, "nn": jax.nn, "random": jax.random,
             "tree_util": jax.tree_util, "__name__": "program"}
    call = made.body[-1].value
    try:
        exec("\n".join([line for s in made.body[:-1] for line in s.lines()]), space)
        fun, args = eval(call.function, space), [eval(x.render(), space) for x in call.args]
        fun(*args)
    except (TypeError, ValueError):
        return None
    return inspect.compare(fun, *args, b=way)


@pytest.mark.parametrize("numbers", [
    range(6), pytest.param(range(6, 3000), marks=pytest.mark.slow)], ids=["a few", "all"])
def test_generated_programs_agree(numbers):
    found = [compare_generated(i, WAYS[1 + i % 2]) for i in numbers]
    compared = [x for x in found if x is not None]
    assert len([x for x in compared if not x]) <= len(compared) / 100
