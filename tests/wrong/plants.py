"""Faults that processes find by importing this module: it makes the compiled hyperbolic sine wrong
where it is small."""

from __future__ import annotations

import os
import time

import numpy as np

import pyjx as jax
import pyjx.numpy as jnp
from lowering import rules
from pyjx import lax
from pyjx.inspect import numpy_interpreter


def aborts(x):
    os.abort()


def sleeps(x):
    while True:
        time.sleep(1)


def refuses(x):
    raise ValueError("a value that is refused")


def runs(program, args) -> bool:
    """Never true, and of the errors of programs as they are."""
    jax.block_until_ready(jax.jit(program)(*args))
    return False


def leaves(program, args) -> bool:
    raise SystemExit(3)


def raises_without_tanh(program, args) -> bool:
    """Whether a logarithm gives a NaN; an error where no hyperbolic tangent is computed."""
    text = str(jax.make_jaxpr(program)(*args))
    text.index("tanh")
    return "log" in text and bool(np.isnan(program(*args)[0]).any())


def plant() -> None:
    """Let the compiled `sinh` be `cosh`."""
    known = rules.rules_for("cpu")
    known["sinh"] = known["cosh"]


def differs(program, args) -> bool:
    """Whether the compiled program differs from NumPy."""
    plant()
    closed = jax.make_jaxpr(program)(*args)
    wanted = numpy_interpreter.evaluate(closed.jaxpr, closed.consts, args,
                                        numpy_interpreter.Account())
    found = jax.jit(program)(*args)
    return not all([np.allclose(x, y, 1e-2, 1e-2) for x, y in zip(found, wanted, strict=True)])


FAULTS = {
    "abort": (lambda x: x + jax.pure_callback(aborts, x, x), None),
    "sleep": (lambda x: x + jax.pure_callback(sleeps, x, x), None),
    "loop": (lambda x: lax.while_loop(lambda c: c[0].sum() < 1e9, lambda c: (
        jnp.abs(jnp.sin(c[0]) + c[1]) + 1, c[1] * 0.9), (x, x))[0], None),
    "memory": (lambda x: x + jnp.broadcast_to(x.sum(), (200000, 40000)).cumsum(0)[0, 0], None),
    "wrong": (lambda x: jnp.sinh(x), differs),
}


def program(seed, n, fault):
    """A function of about `n` equations, one of which has a fault."""
    rng = np.random.default_rng(seed)
    w = rng.standard_normal((8, 8)).astype("f4") / 3
    steps = [
        lambda x: jnp.tanh(x @ w) + x / 2, lambda x: jnp.sin(x) * jnp.cos(x),
        lambda x: jax.nn.softmax(x) + 0.1 * x, lambda x: jnp.where(x > 0, x, 0.1 * x),
        lambda x: lax.scan(lambda c, y: (jnp.tanh(c + y), c), x[0], x)[1],
        lambda x: lax.cond(x.sum() > 0, jnp.sin, lambda x: x * 0.5, x),
        lambda x: jax.jit(lambda x: jnp.tanh(x) + x.mean(0))(x),
        lambda x: jax.grad(lambda x: (jnp.tanh(x) ** 2).sum())(x),
        lambda x: jax.vmap(lambda r: jnp.cumsum(r) / 8)(x),
        lambda x: jnp.sort(x, axis=0)[::-1] * 0.9,
    ]

    def f(x):
        mark, count, placed, rng = x, 0, False, np.random.default_rng(seed)
        while count < n:
            step = steps[rng.integers(len(steps))]
            if not placed and count >= place * n:
                placed = True
                x = mark = holder(x)
            x = step(x)
            count += 8
        return x.sum(), mark

    place = rng.uniform(0.1, 0.9)
    holder = [fault, jax.jit(fault), lambda x: lax.scan(
        lambda c, i: (lax.cond(i == 2, fault, jnp.tanh, c), None), x, jnp.arange(4))[0],
              ][rng.integers(3)]
    return f, rng.standard_normal((8, 8)).astype("f4") / 2
