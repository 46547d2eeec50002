"""Caches: bounded, and emptied by `clear_caches`."""

import sys
import threading

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx.core import bounded
from pyjx.core.bounded import BoundedDict, kept
from pyjx.engine import batching, tangents
from pyjx.inspect import numpy_interpreter
from pyjx.lax import common, indexing, references
from pyjx.numpy import polynomials
from pyjx.numpy.linalg import products
from pyjx.runtime import cache


def test_what_was_put_in_first_goes():
    calls = []

    @kept(2)
    def f(n):
        calls.append(n)
        return [n]

    first = f(1)
    assert f(1) is first and f(2) == [2] and f(1) is first
    assert f(3) == [3] and f(1) == [1] and calls == [1, 2, 3, 1]


def test_no_way_of_putting_in_passes_the_bound():
    table = BoundedDict(2)
    for n in range(4):
        assert table.setdefault(n, str(n)) == str(n)
    assert table == {2: "2", 3: "3"} and table.setdefault(3, "another") == "3"
    table.update({4: "4"}, five="5")
    assert table == {4: "4", "five": "5"}


def test_they_are_counted_while_other_threads_make_some():
    """An interpreter that switches threads all the time finds what goes wrong once in an hour."""
    stop = threading.Event()

    def make():
        while not stop.is_set():
            made = [BoundedDict(2) for _ in range(500)]
            jax.jit(lambda x: x).trace(1.0)
            del made

    interval = sys.getswitchinterval()
    threads = [threading.Thread(target=make) for _ in range(3)]
    try:
        sys.setswitchinterval(1e-6)
        for thread in threads:
            thread.start()
        for _ in range(200):
            bounded.sizes()
        for _ in range(20):
            jax.clear_caches()
    finally:
        stop.set()
        for thread in threads:
            thread.join()
        sys.setswitchinterval(interval)


AVAL = jax.core.ShapedArray((3,), np.float32)
FUNCTIONS = {
    "a reader of references": lambda: references._reader(()),
    "a writer of references": lambda: references._writer((), True),
    "a swapper of references": lambda: references._swapper(()),
    "zeros of references": lambda: references._zeros(AVAL),
    "orders of products": lambda: products._best_order((1, 2, 3)),
    "combiners of scatters": lambda: indexing._combiner(jax.lax.mul, np.dtype(np.float32)),
    "broadcast shapes": lambda: common.joint_shape(((3000, 1), (1, 2000))),
    "loops of polyval": lambda: polynomials._horner(3),
    "rules of NumPy": lambda: numpy_interpreter.rule_of(jax.lax.sin_p),
    "zero tangents": lambda: tangents.zero_tangent(AVAL),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_clear_caches_forgets(name):
    found = FUNCTIONS[name]()
    assert FUNCTIONS[name]() is found
    jax.clear_caches()
    assert FUNCTIONS[name]() is not found


def test_no_cache_grows_without_end():
    for dim in range(20):
        jax.vmap(lambda x: x + 1)(jnp.ones((2, dim)))
    assert isinstance(batching._examples, BoundedDict)
    assert len(batching._examples) <= batching._examples.capacity

    class Options:
        def SerializeAsString(self):  # as XLA's
            return b"options"

    for _ in range(cache._option_bytes.capacity + 10):
        assert cache._serialized(Options()) == b"options"
    assert len(cache._option_bytes) == cache._option_bytes.capacity
    assert bounded.sizes()["compiler options as bytes"] == (256, 256)
    jax.clear_caches()
    assert not any(entries for entries, _ in bounded.sizes().values())
