"""JAX's guides to debugging and to random numbers: each example, with the lines that it prints.

The guide's random bits are those of the flag `jax_threefry_partitionable` being off.
"""

import io
import logging

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import random


@pytest.fixture
def printed(capfd):
    """What has been printed since the last look."""
    def read():
        jax.effects_barrier()
        return capfd.readouterr().out.splitlines()

    return read


def test_python_prints_tracers(printed):
    @jax.jit
    def f(x):
        print("print(x) ->", x)
        y = jnp.sin(x)
        print("print(y) ->", y)
        return y

    f(2.0)
    assert printed() == ["print(x) -> JitTracer(~float32[])", "print(y) -> JitTracer(~float32[])"]
    f(3.0)
    assert printed() == []


def test_debug_print_prints_values(printed):
    @jax.jit
    def f(x):
        jax.debug.print("jax.debug.print(x) -> {x}", x=x)
        y = jnp.sin(x)
        jax.debug.print("jax.debug.print(y) -> {y}", y=y)
        return y

    f(2.0)
    assert printed() == ["jax.debug.print(x) -> 2.0", "jax.debug.print(y) -> 0.9092974066734314"]


def shown(x):
    jax.debug.print("jax.debug.print(x) -> {}", x)
    y = jnp.sin(x)
    jax.debug.print("jax.debug.print(y) -> {}", y)
    return y


XS = [f"jax.debug.print(x) -> {x}" for x in ("0.0", "1.0", "2.0")]
YS = [f"jax.debug.print(y) -> {y}" for y in ("0.0", "0.8414709568023682", "0.9092974066734314")]


def test_under_vmap(printed):
    jax.vmap(shown)(jnp.arange(3.0))
    assert printed() == XS + YS


def test_under_map(printed):
    """Each example after the one before; within one the order is not promised."""
    jax.lax.map(shown, jnp.arange(3.0))
    lines = printed()
    assert [set(lines[i:i + 2]) for i in (0, 2, 4)] == [
        {x, y} for x, y in zip(XS, YS, strict=True)]


def test_under_grad(printed):
    def f(x):
        jax.debug.print("jax.debug.print(x) -> {}", x)
        return x**2

    jax.grad(f)(1.0)
    assert printed() == ["jax.debug.print(x) -> 1.0"]


def test_ordered(printed):
    @jax.jit
    def f(x, y):
        jax.debug.print("jax.debug.print(x) -> {}", x, ordered=True)
        jax.debug.print("jax.debug.print(y) -> {}", y, ordered=True)
        return x + y

    assert repr(f(1, 2)) == "Array(3, dtype=int32, weak_type=True)"
    assert printed() == ["jax.debug.print(x) -> 1", "jax.debug.print(y) -> 2"]


def breakpoint_with(commands):
    """A breakpoint for which these lines are typed, and what it prints."""
    out = io.StringIO()
    typed = io.StringIO(commands)
    return out, lambda: jax.debug.breakpoint(stdin=typed, stdout=out, backend="cli")


def test_a_breakpoint():
    out, pause = breakpoint_with("u\np x\np y\nc\n")

    @jax.jit
    def f(x):
        y, z = jnp.sin(x), jnp.cos(x)
        pause()
        return y * z

    np.testing.assert_allclose(f(2.0), -0.37840125, rtol=1e-6)
    jax.effects_barrier()
    said = out.getvalue()
    assert said.startswith("Entering jdb:")
    assert "Array(2., dtype=float32" in said and "Array(0.9092974, dtype=float32" in said


def test_a_breakpoint_where_values_are_not_finite():
    out, pause = breakpoint_with("c\n")

    def breakpoint_if_nonfinite(x):
        is_finite = jnp.isfinite(x).all()

        def true_fn(x):
            pass

        def false_fn(x):
            pause()

        jax.lax.cond(is_finite, true_fn, false_fn, x)

    @jax.jit
    def f(x, y):
        z = x / y
        breakpoint_if_nonfinite(z)
        return z

    assert repr(f(2.0, 1.0)) == "Array(2., dtype=float32, weak_type=True)"
    jax.effects_barrier()
    assert out.getvalue() == ""
    assert np.isinf(f(2.0, 0.0))
    jax.effects_barrier()
    assert "Entering jdb:" in out.getvalue()


def test_callbacks(caplog):
    def log_value(x):
        logging.warning(f"Logged value: {x}")

    @jax.jit
    def f(x):
        jax.debug.callback(log_value, x)
        return x

    def logged():
        jax.effects_barrier()
        lines = [f"{r.levelname}:{r.name}:{r.getMessage()}" for r in caplog.records]
        caplog.clear()
        return lines

    f(1.0)
    assert logged() == ["WARNING:root:Logged value: 1.0"]
    jax.vmap(f)(jnp.arange(5.0))
    assert logged() == [f"WARNING:root:Logged value: {i}.0" for i in range(5)]
    jax.grad(f)(1.0)
    assert logged() == ["WARNING:root:Logged value: 1.0"]


# -- random numbers --------------------------------------------------------------------------------


def test_numpy_draws_from_a_state():
    np.random.seed(0)
    before = str(np.random.get_state())
    np.random.seed(0)
    assert str(np.random.get_state()) == before
    _ = np.random.uniform()
    assert str(np.random.get_state()) != before
    np.random.seed(0)
    individually = np.stack([np.random.uniform() for _ in range(3)])
    np.random.seed(0)
    at_once = np.random.uniform(size=3)
    assert str(individually) == str(at_once) == "[0.5488135  0.71518937 0.60276338]"
    np.random.seed(0)

    def bar():
        return np.random.uniform()

    def baz():
        return np.random.uniform()

    assert bar() + 2 * baz() == pytest.approx(1.9791922366721637, abs=1e-15)


@pytest.fixture
def bits_of_the_guide():
    with jax.threefry_partitionable(False):
        yield


def test_a_key(capsys):
    print(random.key(42))
    assert capsys.readouterr().out == "Array((), dtype=key<fry>) overlaying:\n[ 0 42]\n"


def test_a_key_gives_the_same_numbers(bits_of_the_guide):
    key = random.key(42)
    assert [str(random.normal(key)) for _ in range(2)] == ["-0.18471177", "-0.18471177"]


def test_splitting(bits_of_the_guide):
    key = random.key(42)
    lines = []
    for i in range(3):
        new_key, subkey = random.split(key)
        del key
        val = random.normal(subkey)
        del subkey
        lines.append(f"draw {i}: {val}")
        key = new_key
    assert lines == ["draw 0: 1.369469404220581", "draw 1: -0.19947023689746857",
                     "draw 2: -2.298278331756592"]
    key, *forty_two_subkeys = random.split(key, num=43)
    assert len(forty_two_subkeys) == 42


def test_no_sequential_equivalence(bits_of_the_guide):
    key = random.key(42)
    subkeys = random.split(key, 3)
    sequence = np.stack([random.normal(subkey) for subkey in subkeys])
    assert str(sequence) == "[-0.04838832  0.10796154 -1.2226542 ]"
    assert str(random.normal(key, shape=(3,))) == "[ 0.18693547 -1.2806505  -1.5593132 ]"
    assert str(jax.vmap(random.normal)(subkeys)) == "[-0.04838832  0.10796154 -1.2226542 ]"
