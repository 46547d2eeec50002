"""`inspect.compare`: the first operation that deviates, and no rounding that is taken for one."""

from __future__ import annotations

import linecache

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from lowering import rules
from pyjx import inspect, lax
from pyjx.inspect import deviations
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


def chaotic(x, n=60):
    def body(i, x):
        return 4 * x * (1 - x)  # HERE
    return lax.fori_loop(0, n, body, x)


def cancels(x):
    y = x * x * 1e4
    z = y * y - (y - 1) * (y + 1)  # HERE
    return jnp.exp(z)



@pytest.mark.parametrize(("fun", "operation", "step"), [
    (chaotic, None, "of scan"), (cancels, "sub", None)])
def test_digits_that_are_lost(fun, operation, step):
    x = np.linspace(0.1, 0.9, 8, dtype="f4")
    found = inspect.compare(fun, x)
    assert not found and found.first is None, found
    line = linecache.getline(__file__, found.lost.line.start_line)
    assert "HERE" in line and operation in (None, found.lost.operation), found
    assert found.lost.allowed < 0.5 <= 2 * found.lost.found
    assert step is None or step in found.lost.steps[0].text
    assert "nothing can be told of compiled and numpy-float64" in str(found)
    assert inspect.compare(fun, x, b="compiled")  # there is no difference
    checked = inspect.check(inspect.trace(fun, x), "numpy-float64", [x])
    assert checked.blind and not checked and "nothing can be told" in str(checked)


def test_a_fault_is_found_where_digits_are_lost(wrong_rule):
    found = inspect.compare(lambda x: chaotic(abs(jnp.tanh(jnp.sinh(x)))), X)
    assert not found and found.first.operation == "sinh" and found.lost is None, found


def test_rounding_that_grows_is_none():
    assert inspect.compare(chaotic, np.linspace(0.1, 0.9, 8, dtype="f4"), n=10)


@pytest.mark.parametrize("name", FAULTS)
def test_programs_that_were_recorded(name, tmp_path, monkeypatch):
    fun, steps = FAULTS[name]
    right, wrong = str(tmp_path / "right.npz"), str(tmp_path / "wrong.npz")
    inspect.record(right, fun, X)
    with monkeypatch.context() as changed:
        known = rules.rules_for("cpu")
        changed.setitem(known, "sinh", known["cosh"])
        jax.clear_caches()
        inspect.record(wrong, fun, X)
    jax.clear_caches()
    assert inspect.compare(fun, X, b=right) and inspect.compare(fun, X, a=right, b=right)
    for ways in ({"b": wrong}, {"a": wrong}, {"a": right, "b": wrong}, {"a": wrong, "b": right}):
        found = inspect.compare(fun, X, **ways)
        assert not found and (found.first.operation, [s.text for s in found.first.steps]) == (
            "sinh", steps), found
        assert "HERE" in linecache.getline(__file__, found.first.line.start_line)
        assert wrong in str(found)
    with pytest.raises(ValueError, match="is of another program: add:float32"):
        inspect.compare(lambda x: x + 1, X, b=wrong)


def test_what_differs_together(monkeypatch):
    monkeypatch.setattr(deviations._Way, "run", changed(deviations._Way.run))
    found = inspect.compare(lambda x: jnp.cos(jnp.sin(x) + 1), X)
    assert not found and found.first is None and "No operation deviates alone" in str(found)


def changed(run):
    """Programs of several operations are a little wrong, if they are not run by NumPy."""
    def wrong(self, key, closed, args):
        outs = run(self, key, closed, args)
        several = len(closed.eqns) > 1 and len(outs) == 1 and self.name == "compiled"
        return [x + 0.1 for x in outs] if several else outs

    return wrong


def test_tangents_of_integers_and_dead_operations():
    assert inspect.compare(lambda x: jax.vjp(lambda n: n * 1.5, 3)[1](x), np.float32(1))

    @jax.custom_vjp
    def f(x):
        return jnp.tanh(x)

    f.defvjp(lambda x: (f(x), x), lambda x, g: (g,))
    assert inspect.compare(lambda x: jax.jvp(lambda x: (f(x), x * 2)[1], (x,), (x,)), X)


def test_integers_that_become_numbers_are_divided_as_such():
    assert inspect.compare(lambda n: n.sum().astype("f4") / 5, np.array([7, -2, 1]))


def test_ways_are_checked():
    with pytest.raises(ValueError, match="neither compiled, eager, numpy-float64, a file"):
        inspect.compare(jnp.sin, X, b="nowhere")
    assert inspect.compare(jnp.sin, X, a="cpu", b="eager")


def compare_generated(number, way):
    """The comparison of a program of the oracle's; None where it is refused."""
    if number == 2432:  # a fifth derivative that takes 10 GB
        return None
    made = programs.program(Gen(f"compare/{number}"))
    space = {"np": np, "jnp": jnp, "jax": jax, "lax": lax, "nn": jax.nn, "random": jax.random,
             "tree_util": jax.tree_util, "__name__": "program"}
    call = made.body[-1].value
    try:
        exec("\n".join([line for s in made.body[:-1] for line in s.lines()]), space)
        fun, args = eval(call.function, space), [eval(x.render(), space) for x in call.args]
        jax.jit(fun).lower(*args)
    except (AttributeError, TypeError, ValueError):
        return None
    return inspect.compare(fun, *args, b=way)


@pytest.mark.parametrize("numbers", [
    range(6), pytest.param(range(6, 3000), marks=pytest.mark.slow)], ids=["a few", "all"])
def test_generated_programs_agree(numbers):
    found = [compare_generated(i, WAYS[1 + i % 2]) for i in numbers]
    compared = [x for x in found if x is not None]
    assert len([x for x in compared if not x]) <= len(compared) / 100
