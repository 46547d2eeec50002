"""Functions that call each other: how deep they may do so before Python's stack ends.

A program may nest as deep as these do with the recursion limit that Python has by default.
"""

import sys
import threading

import pytest

import pyjx as jax
import pyjx.numpy as jnp


def nested(wrap, levels):
    """A function that calls a wrapped one, which calls a wrapped one, and so on."""
    f = jnp.sin
    for _ in range(levels):
        f = _called(wrap(f))
    return f


def _called(g):
    return lambda x: g(x) * 0.5


def in_scan(f):
    return lambda x: jax.lax.scan(lambda c, _: (f(c), None), x, None, length=1)[0]


def in_loop(f):
    return lambda x: jax.lax.while_loop(lambda c: c > 1e9, f, x)


CASES = {  # how functions are wrapped, what is done with the outermost, how many levels
    "jit": (jax.jit, lambda f: jax.jit(f)(1.0), 120),
    "grad of jit": (jax.jit, lambda f: jax.grad(f)(1.0), 95),
    "vmap of jit": (jax.jit, lambda f: jax.vmap(f)(jnp.ones(2)), 90),
    "checkpoint": (jax.checkpoint, lambda f: jax.make_jaxpr(f)(1.0), 105),
    "grad of checkpoint": (jax.checkpoint, lambda f: jax.make_jaxpr(jax.grad(f))(1.0), 70),
    "scan": (in_scan, lambda f: jax.make_jaxpr(f)(1.0), 105),
    "while_loop": (in_loop, lambda f: jax.make_jaxpr(f)(1.0), 120),
}


@pytest.mark.parametrize("case", CASES)
def test_deep_nesting(case):
    wrap, run, levels = CASES[case]
    assert sys.getrecursionlimit() == 1000
    errors = []

    def work():  # in a thread of its own, as the tests' own calls count, too
        try:
            run(nested(wrap, levels))
        except RecursionError as error:
            errors.append(str(error))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert not errors
