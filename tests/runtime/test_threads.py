"""Many threads at once: each signature is traced once, and no value is another call's."""

import random
import threading
import time
from collections import Counter

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx.numpy import array_methods, indexing
from pyjx.runtime import programs

THREADS = 32


def run_in_threads(work):
    """`work(number)` in many threads that start together; the first error is raised."""
    barrier = threading.Barrier(THREADS)
    errors = []

    def run(number):
        barrier.wait()
        try:
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
        assert not thread.is_alive(), "a thread waits for ever"
    if errors:
        raise errors[0]


def counted(function):
    """The function, and how often it was traced for each signature."""
    traces = Counter()

    def wrapped(x):
        traces[x.shape, str(x.dtype)] += 1
        time.sleep(0.01)  # so that the others come meanwhile
        return function(x)

    return wrapped, traces


CALLS = {
    "call": (lambda f: f, lambda x: np.sin(x) * x),
    "grad": (lambda f: jax.grad(lambda x: f(x).sum()), lambda x: np.cos(x) * x + np.sin(x)),
    "jvp": (lambda f: lambda x: jax.jvp(f, (x,), (x,))[1],
            lambda x: (np.cos(x) * x + np.sin(x)) * x),
    "vmap": (lambda f: jax.vmap(f), lambda x: np.sin(x) * x),
    "in jit": (lambda f: lambda x: jax.jit(lambda x: f(x) + 1)(x), lambda x: np.sin(x) * x + 1),
}


@pytest.mark.parametrize("how", CALLS)
def test_one_function_in_all_threads(how):
    function, traces = counted(lambda x: jnp.sin(x) * x)
    transform, expected = CALLS[how]
    called = transform(jax.jit(function))

    def work(number):
        for turn in range(6):
            x = np.linspace(0, 1, 3 + (number + turn) % 4).astype(np.float32)
            np.testing.assert_allclose(called(x), expected(x), rtol=1e-4, atol=1e-5)

    run_in_threads(work)
    assert set(traces.values()) == {1}, traces


def test_a_function_for_each_thread():
    def work(number):
        f = jax.jit(lambda x: x * number + 1)
        for _ in range(5):
            np.testing.assert_allclose(f(jnp.arange(3.0)), np.arange(3.0) * number + 1)
            np.testing.assert_allclose(jax.grad(lambda x: f(x).sum())(jnp.ones(2)), number)

    run_in_threads(work)


def test_functions_that_call_each_other():
    """Two threads that need each other's trace do not wait for each other."""
    started = threading.Barrier(2)

    def first(x, depth):
        if depth == 2:
            started.wait(30)
        return x + 1 if not depth else second_jit(x, depth - 1)

    def second(x, depth):
        if depth == 2:
            started.wait(30)
        return x * 2 if not depth else first_jit(x, depth - 1)

    first_jit = jax.jit(first, static_argnums=1)
    second_jit = jax.jit(second, static_argnums=1)
    results = {}

    def start(name, function):
        results[name] = float(function(1.0, 2))

    threads = [threading.Thread(target=start, args=args)
               for args in (("first", first_jit), ("second", second_jit))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert results == {"first": 2.0, "second": 2.0}


def test_an_error_while_tracing_reaches_every_thread():
    def fails(x):
        time.sleep(0.01)
        raise ValueError("not today")

    f = jax.jit(fails)

    def work(number):
        for transform in (lambda f: f, jax.vmap):
            with pytest.raises(ValueError, match="not today"):
                transform(f)(np.ones(3, np.float32))

    run_in_threads(work)


def storm(seconds):
    """Calls, derivatives and maps of shared and new functions, eager operations, contexts."""
    functions = [jax.jit(lambda x, k=k: jnp.tanh(x * k).sum() + k) for k in range(5)]
    expected = [lambda x, k=k: np.tanh(x * k).sum() + k for k in range(5)]
    slopes = [lambda x, k=k: k * (1 - np.tanh(x * k) ** 2) for k in range(5)]
    end = time.monotonic() + seconds

    def work(number):
        dice = random.Random(number)
        while time.monotonic() < end:
            k = dice.randrange(5)
            size = dice.randrange(1, 9)
            x = np.linspace(-1, 1, size).astype(np.float32)
            what = dice.randrange(7)
            if what == 0:
                np.testing.assert_allclose(functions[k](x), expected[k](x), rtol=1e-5)
            elif what == 1:
                np.testing.assert_allclose(jax.grad(functions[k])(x), slopes[k](x), atol=1e-5)
            elif what == 2:
                rows = np.stack([x, 2 * x])
                np.testing.assert_allclose(
                    jax.vmap(functions[k])(rows), [expected[k](r) for r in rows], rtol=1e-5)
            elif what == 3:
                new = jax.jit(lambda x, k=k, number=number: x * k + number)
                # x * k + number is rounded once where the processor does both at a time
                np.testing.assert_allclose(new(x), x * k + number, rtol=1e-5, atol=1e-6)
            elif what == 4:
                np.testing.assert_allclose(jnp.cumsum(jnp.asarray(x)) * k, np.cumsum(x) * k,
                                           atol=1e-5)
            elif what == 5:
                with jax.enable_x64(True):
                    out = functions[k](x.astype(np.float64))
                    assert out.dtype == np.float64
                    np.testing.assert_allclose(out, expected[k](x.astype(np.float64)), rtol=1e-9)
            elif dice.random() < 0.02:
                jax.clear_caches()

    run_in_threads(work)


def test_storm():
    storm(3)


def test_programs_while_another_thread_loads_logging(run_python, tmp_path):
    """A module that is half loaded is in `sys.modules`, and lacks what it is looked up for."""
    (tmp_path / "logging.py").write_text("""
import time
time.sleep(1)
class Logger:
    def isEnabledFor(self, level):
        return False
def getLogger(name):
    return Logger()
""")
    assert run_python(f"""
import sys, threading
import pyjx as jax
assert "logging" not in sys.modules
sys.path.insert(0, {str(tmp_path)!r})
other = threading.Thread(target=lambda: __import__("logging"))
other.start()
while "logging" not in sys.modules:
    pass
print(jax.jit(lambda x: x + 1)(1.0))
""") == "2.0\n"


def finishes(work):
    """Run something in a thread that must come to an end; what it gives."""
    found = []
    thread = threading.Thread(target=lambda: found.append(work()), daemon=True)
    thread.start()
    thread.join(20)
    assert not thread.is_alive(), "it waits for ever"
    return found[0]


class Finalizing:
    """A key that is looked up while a finalizer runs."""

    def __hash__(self):
        with programs.one_thread("another key"):
            return 1


def test_a_finalizer_may_trace_while_work_is_handed_out():
    def work():
        with programs.one_thread(Finalizing()):
            return True

    assert finishes(work)


def test_a_finalizer_may_wait_while_its_thread_waits(monkeypatch):
    """The thread waits as before, then, and others see that it does."""
    first, second = programs._Work(1), programs._Work(2)
    monkeypatch.setattr(programs, "_working", {"first": first, "second": second})
    waits = []

    class Awaited(dict):
        def __setitem__(self, thread, work):
            super().__setitem__(thread, work)
            if work is not None:
                waits.append(work)
            if waits == [first]:
                with programs.one_thread("second"):
                    pass
                del programs._working["first"]
                first.going.release()
            elif work is second:
                del programs._working["second"]
                second.going.release()

    monkeypatch.setattr(programs, "_awaited", Awaited())

    def work():
        with programs.one_thread("first"):
            return True

    assert finishes(work)
    assert waits == [first, second, first]


def test_a_row_is_read_while_another_thread_makes_the_same_program(monkeypatch):
    """All that is kept by rank is of that rank, whoever made it."""
    x, make = jnp.arange(24.0).reshape(2, 3, 4), indexing.reader
    monkeypatch.setattr(array_methods, "_rows", type(array_methods._rows)())
    others = [x]

    def reader(pattern):
        if others:
            others.pop()[1]
        return make(pattern)

    monkeypatch.setattr(indexing, "reader", reader)
    np.testing.assert_array_equal(x[1], np.asarray(x)[1])
    deeper = x.reshape(1, 2, 3, 4)
    np.testing.assert_array_equal(deeper[0], np.asarray(deeper)[0])


@pytest.mark.slow
def test_long_storm():
    storm(60)
