"""`jit`: constants, traces and how long they are kept, threads."""

import gc
import subprocess
import sys
import threading
import weakref
from functools import partial
from operator import itemgetter

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from tests.runtime.jitted import equal

pytestmark = pytest.mark.smoke


@pytest.fixture
def x():
    return jnp.arange(3.0)


# -- constants -------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [np.arange, jnp.arange])
def test_captured_constants(make):
    large, small = make(1000.0), make(3.0)
    f = jax.jit(lambda unused, a, also: (a.sum() + large, small * 2, large.sum()))
    for _ in range(3):  # by Python, then by C++
        outs = f(1.0, jnp.ones(3), 2.0)
        equal(outs[0], np.arange(1000.0) + 3)
        equal(outs[1], [0, 2, 4])
        equal(outs[2], 499500.0)
    assert len(f.lower(1.0, jnp.ones(3), 2.0).as_text()) < 2000


def test_constant_of_an_outer_trace(x):
    @jax.jit
    def f(a):
        inner = jax.jit(lambda b: a * b)
        return inner(2.0) + inner(3.0)

    equal(f(x), x * 5)


def test_tracer_in_a_global_is_the_one_of_the_call(x):
    """A function that reads a global is traced again where the global is another tracer."""
    weight = [None]
    g = jax.jit(lambda y: weight[0] * y)

    def loss(w):
        weight[0] = w
        return g(3.0)

    def outer(w):
        weight[0] = w
        value = g(3.0)
        return value + jax.grad(loss)(w * 1.0)

    equal(jax.grad(loss)(2.0), 3.0)
    equal(jax.jit(outer)(2.0), 9.0)
    equal(jax.grad(loss)(5.0), 3.0)


# -- caches ----------------------------------------------------------------------------------------


def counting():
    calls = [0]

    def f(a):
        calls[0] += 1
        return a * 1.5 + 1

    return f, calls


def test_one_trace_for_each_signature(x):
    f, calls = counting()
    g, h = jax.jit(f), jax.jit(f)
    for _ in range(2):
        g(x), h(x), jax.jit(f)(x)
    assert calls == [1]  # wrappers of one function share
    g(jnp.arange(4.0)), g(1.0), g(2.0), g(1), g(np.float32(1)), g(np.ones(3, np.float32))
    assert calls == [5]
    jax.clear_caches()
    g(x)
    assert calls == [6]
    g.clear_cache()
    g(x)
    assert calls == [7]


def test_flags_are_in_the_key(x):
    f, calls = counting()
    g = jax.jit(f)
    g(1.0)
    with jax.enable_x64(True):
        assert g(1.0).dtype == np.float64
        assert g(2**40).dtype == np.float64
    assert g(1.0).dtype == np.float32
    assert calls == [3]
    add = jax.jit(lambda a, b: a + b)
    a, b = jnp.ones((2, 3)), jnp.ones(3)
    add(a, b)
    with jax.numpy_rank_promotion("raise"), pytest.raises(ValueError, match="rank"):
        add(a, b)
    add(a, b)


def test_functions_are_collected(x):
    class Big:
        pass

    def use():
        big = Big()
        f = jax.jit(lambda a: (big, a + x)[1])
        f(x), f(np.ones(3)), jax.make_jaxpr(f)(x), f.lower(x).compile()(x)
        return weakref.ref(big)

    reference = use()
    gc.collect()
    assert reference() is None


def test_callables_without_weak_references(x):
    """The later ones lie at the addresses of the earlier."""
    class Scale:
        __slots__ = ("factor",)

        def __init__(self, factor):
            self.factor = factor

        def __call__(self, x):
            return x * self.factor

    for factor in range(8):
        equal(jax.jit(Scale(factor))(x), x * factor)
        equal(jax.jit(jax.vjp(lambda x: x * factor, x)[1])(x)[0], x * factor)  # noqa: B023
    for _ in range(3):
        equal(jax.jit(itemgetter(1))((x, x + 1)), x + 1)
    first = itemgetter(0)
    for f in (jax.jit(first), jax.jit(first)):
        for _ in range(3):
            equal(f((x, 1)), x)
    assert jax.jit(first).__wrapped__ is first
    with jax.disable_jit():
        equal(jax.jit(first)((x, 1)), x)


def test_traces_are_collected():
    seen = []

    class Watched(np.ndarray):
        pass

    def f(a):
        constant = np.ones(100).view(Watched)
        seen.append(weakref.ref(constant))
        return jnp.sqrt(2.0) * a + constant  # jnp.sqrt(2.0): a call within a trace, of no tracer

    jax.make_jaxpr(lambda a: f(a))(1.0)
    gc.collect()
    assert seen[0]() is None


def test_raising_function_works_afterwards(x):
    calls = [0]

    def f(a):
        calls[0] += 1
        if calls[0] == 1:
            raise KeyError("boo")
        return a + 1

    g = jax.jit(f)
    outer = jax.jit(lambda a: g(a) * 2)
    with pytest.raises(KeyError, match="boo"):
        outer(x)
    equal(outer(x), [2, 4, 6])
    equal(g(x), [1, 2, 3])


def test_recursion(x):
    @partial(jax.jit, static_argnums=1)
    def f(a, n):
        return a if n == 0 else f(a * 2, n - 1)

    equal(f(x, 5), x * 32)


def test_threads(x):
    def deep(a):
        for _ in range(50):
            a = jnp.sin(a) * a
        return a

    shared = jax.jit(deep)
    expected = np.asarray(jax.jit(deep)(x))
    results = {}

    def work(i):
        try:
            results[i] = (
                np.allclose(shared(x), expected),
                np.allclose(jax.jit(lambda a: a * i)(x), x * i),
                np.allclose(jax.grad(lambda a: jnp.sin(a * i))(1.0), i * np.cos(i), atol=1e-5),
                np.allclose(jax.vmap(lambda a: a + i)(x), x + i),
            )
        except BaseException as error:
            results[i] = error

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert results == dict.fromkeys(range(8), (True,) * 4)


def test_a_nested_function_is_traced_once_for_a_signature():
    calls = []

    @jax.jit
    def inner(x):
        calls.append(x.shape)
        return jnp.sin(x) * x

    def outer(x):
        for _ in range(4):
            x = inner(x)
        return x.sum()

    jax.jit(outer)(1.0)
    jax.jit(jax.grad(outer))(1.0)
    jax.hessian(outer)(1.0)
    jax.jvp(outer, (1.0,), (1.0,))
    assert calls == [()]
    jax.jit(jax.vmap(jax.grad(outer)))(jnp.ones(3))  # not a weak type
    assert calls == [(), ()]
    jaxpr = jax.make_jaxpr(jax.vmap(jax.grad(outer)))(jnp.ones(3))
    programs = {id(e.params["jaxpr"]) for e in jaxpr.eqns if e.primitive.name == "jit"}
    assert len(programs) == 3  # forwards, and backwards from one cotangent or from a batch


def test_modules_that_load_later_do_not_trace_all_anew():
    """Each state in the key of traces is there from the start."""
    program = """if True:
        import importlib, pkgutil
        import pyjx as jax
        from pyjx import configuration
        before = len(configuration.trace_context())
        for package in ("engine", "core", "transforms", "runtime", "experimental.checkify"):
            found = importlib.import_module(f"pyjx.{package}")
            for module in pkgutil.iter_modules(found.__path__):
                importlib.import_module(f"pyjx.{package}.{module.name}")
        assert len(configuration.trace_context()) == before
    """
    subprocess.run([sys.executable, "-c", program], check=True)
