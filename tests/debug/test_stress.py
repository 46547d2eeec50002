"""Effects by the ten thousand, from many threads, and callbacks that end badly."""

import contextlib
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax
from pyjx.experimental import io_callback

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
LIKE = jax.ShapeDtypeStruct((), np.float32)

PROGRAMS = {
    "scan": """
def f(x):
    def step(c, i):
        jax.debug.print("{}", i, ordered=ORDERED)
        return c + 1, None
    return lax.scan(step, x, jnp.arange(10_000))[0]
f(0)
""",
    "jitted scan": """
@jax.jit
def f(x):
    def step(c, i):
        jax.debug.print("{}", i, ordered=ORDERED)
        return c + 1, None
    return lax.scan(step, x, jnp.arange(10_000))[0]
f(0)
""",
    "fori_loop": """
jax.jit(lambda x: lax.fori_loop(
    0, 10_000, lambda i, c: (jax.debug.print("{}", i, ordered=ORDERED), c)[1], x))(0)
""",
    "calls": """
f = jax.jit(lambda i: (jax.debug.print("{}", i, ordered=ORDERED), i)[1])
for i in range(10_000):
    f(i)
""",
    "derivative of a scan": """
def f(x):
    def step(c, i):
        jax.debug.print("{}", i, ordered=ORDERED)
        return c * 1.5, None
    return lax.scan(step, x, jnp.arange(10_000))[0]
jax.jit(jax.grad(f))(1.0)
""",
}


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("program", PROGRAMS)
def test_ten_thousand_prints_are_all_there_when_the_process_ends(program, ordered, tmp_path):
    """Nothing waits for them but the end of the process."""
    code = ("import pyjx as jax, pyjx.numpy as jnp\nfrom pyjx import lax\n"
            f"ORDERED = {ordered}\n{PROGRAMS[program]}")
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYJX_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], env=env, text=True,
                          capture_output=True, timeout=300)
    assert done.returncode == 0, done.stderr
    numbers = [int(line) for line in done.stdout.split()]
    assert (numbers if ordered else sorted(numbers)) == list(range(10_000))


@pytest.mark.parametrize("ordered", [False, True])
def test_a_hundred_threads_with_callbacks(ordered):
    seen = {k: [] for k in range(100)}
    wrong = []

    @jax.jit
    def f(k, i):
        io_callback(lambda k, i: seen[int(k)].append(int(i)), None, k, i, ordered=ordered)
        # NumPy's arithmetic: the locks of jaxlib before 0.12 do not bear that of so many threads.
        return jax.pure_callback(
            lambda k, i: np.float32(np.asarray(k) * 1000 + np.asarray(i)), LIKE, k, i)

    def work(k):
        for i in range(50):
            if f(k, i) != k * 1000 + i:
                wrong.append((k, i))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(100)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(300)
        assert not t.is_alive()
    jax.effects_barrier()
    assert not wrong
    assert {tuple(x if ordered else sorted(x)) for x in seen.values()} == {tuple(range(50))}


def test_a_hundred_threads_whose_callbacks_compute():
    inner = jax.jit(lambda x: jnp.sin(x) + 1)
    f = jax.jit(lambda x: jax.pure_callback(lambda x: np.asarray(inner(x)), LIKE, x) * 2)
    wanted = [2 * np.sin(np.float32(k)) + 2 for k in range(100)]
    found = [None] * 100

    def work(k):
        found[k] = [float(f(np.float32(k))) for _ in range(10)]

    threads = [threading.Thread(target=work, args=(k,)) for k in range(100)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(300)
        assert not t.is_alive()
    np.testing.assert_allclose(found, np.repeat(np.array(wanted)[:, None], 10, 1),
                               rtol=1e-5, atol=1e-6)


def _raises(error):
    def host(x):
        raise error("in the callback")

    return host


def _exits(x):
    sys.exit(3)


BAD = {
    "ValueError": _raises(ValueError), "KeyboardInterrupt": _raises(KeyboardInterrupt),
    "SystemExit": _exits, "GeneratorExit": _raises(GeneratorExit),
    "MemoryError": _raises(MemoryError), "StopIteration": _raises(StopIteration),
    "another shape": lambda x: np.zeros(3, np.float32), "another type": lambda x: np.array("a"),
    "nothing": lambda x: None, "an object": lambda x: object(), "a tree": lambda x: {"a": x},
    "a large result": lambda x: np.zeros((1000, 1000), np.float32),
    "a ragged list": lambda x: [[1], [1, 2]], "a complex number": lambda x: 1j,
}
AROUND = {
    "eager": lambda f: f(1.0),
    "jit": lambda f: jax.jit(f)(1.0),
    "scan": lambda f: lax.scan(lambda c, x: (f(c), x), 1.0, jnp.arange(3.0))[0],
    "while_loop": lambda f: lax.while_loop(lambda c: c < 3, f, 1.0),
    "cond": lambda f: jax.jit(lambda p: lax.cond(p, f, lambda x: x, 1.0))(True),
    "vmap": lambda f: jax.vmap(f)(jnp.arange(2.0)),
    "checkpoint": lambda f: jax.jit(jax.checkpoint(f))(1.0),
    "grad": lambda f: jax.grad(lambda x: x * lax.stop_gradient(f(lax.stop_gradient(x))))(1.0),
}


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("kind", ["pure", "ordered io"])
def test_callbacks_that_end_badly(bad, around, kind):
    def f(x):
        if kind == "pure":
            return jax.pure_callback(BAD[bad], LIKE, x, vmap_method="sequential")
        return io_callback(BAD[bad], LIKE, x, ordered=around != "vmap")

    with pytest.raises(BaseException) as raised:
        jax.block_until_ready(AROUND[around](f))
        jax.effects_barrier()
    if isinstance(raised.value, Exception):
        assert isinstance(raised.value, jax.errors.JaxRuntimeError)
        assert "callback" in str(raised.value)
    else:  # what ends a program ends one that has not been compiled
        assert around in ("eager", "grad") and raised.type.__name__ == bad
    # the process lives, and the next call works
    with contextlib.suppress(jax.errors.JaxRuntimeError):
        jax.effects_barrier()
    good = jax.jit(lambda x: io_callback(lambda x: np.asarray(x) + 1, LIKE, x, ordered=True))
    assert good(1.0) == 2.0
