"""debug.print, debug.callback and debug.log."""

import logging

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax

pytestmark = [pytest.mark.gpu, pytest.mark.smoke]


@pytest.fixture
def lines(capfd):
    """What has been printed since the last look."""
    def read():
        jax.effects_barrier()
        return capfd.readouterr().out.splitlines()

    return read


def test_values_at_run_time(lines):
    @jax.jit
    def f(x):
        jax.debug.print("x -> {x}", x=x)
        y = jnp.sin(x)
        jax.debug.print("y -> {y}", y=y)
        return y

    for _ in range(2):
        y = float(f(2.0))  # whose last bit is the device's
        # Lines that are not ordered come as the compiler sees fit, and on a GPU in either order.
        assert sorted(lines()) == ["x -> 2.0", f"y -> {y}"]


def test_mapped_and_looped_over(lines):
    def f(x):
        jax.debug.print("x -> {}", x)
        y = jnp.sin(x)
        jax.debug.print("y -> {}", y)
        return y

    xs = jnp.arange(3.0)
    values = ["0.0", "1.0", "2.0"]
    for run in (jax.vmap(f), lambda xs: lax.map(f, xs)):
        run(xs)
        assert sorted(line for line in lines() if line[0] == "x") == [f"x -> {v}" for v in values]


def test_derivatives_print_the_forward_pass(lines):
    def f(x):
        jax.debug.print("x -> {}", x)
        return x**2

    assert jax.grad(f)(1.0) == 2
    assert lines() == ["x -> 1.0"]
    value, gradient = jax.jit(jax.value_and_grad(f))(3.0)
    assert (value, gradient) == (9, 6) and lines() == ["x -> 3.0"]


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit])
def test_formats(wrap, lines):
    def f(x):
        jax.debug.print("{:.2f} {y!r} {z} {d[a]} {{}}", x[1], y=x, z="text", d={"a": x[0]})

    wrap(f)(jnp.arange(3.0))
    assert lines() == ["1.00 Array([0., 1., 2.], dtype=float32) text 0.0 {}"]
    wrap(lambda x: jax.debug.print("{x[0]:.2f} {x.size:03}", x=x))(jnp.arange(3.0))
    assert lines() == ["0.00 003"]
    wrap(lambda: jax.debug.print("no values"))()
    assert lines() == ["no values"]
    with np.printoptions(precision=2):
        wrap(lambda x: jax.debug.print("{}", x))(jnp.arange(3.0) / 3)
    assert lines() == ["[0.   0.33 0.67]"]


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit])
@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda x: jax.debug.print("{} {}", x), IndexError, "index"),
    (lambda x: jax.debug.print("{y}", z=x), KeyError, "y"),
    (lambda x: jax.debug.print("x", x), ValueError, "Unused positional arguments.*3"),
    (lambda x: jax.debug.print("x", y=x), ValueError, r"Unused keyword arguments .*\['y'\].*f-str"),
    (lambda x: jax.debug.callback(3, x), TypeError, "must be callable"),
    (lambda x: jax.debug.print("{:.2f}", x), TypeError, r"\{:.2f\} does not show float32\[3\] .*"),
    (lambda x: jax.debug.callback(jnp.ones((9, 9)), print), TypeError, r"got float32\[9,9\]\. "),
])
def test_mistakes(wrap, call, error, message, lines):
    with pytest.raises(error, match=message):
        wrap(call)(jnp.arange(3.0))
    assert lines() == []


def test_unchecked_formats(lines):
    jax.debug.print("{x}", x=1, skip_format_check=True)
    assert lines() == ["1"]


def test_in_order(lines):
    @jax.jit
    def f(x):
        jax.debug.print("first {}", x, ordered=True)
        x = lax.fori_loop(0, 2, lambda i, x: (jax.debug.print("loop {}", i, ordered=True), x)[1], x)
        jax.debug.print("last {}", x, ordered=True)

    f(1), f(2)
    assert lines() == ["first 1", "loop 0", "loop 1", "last 1", "first 2", "loop 0", "loop 1",
                       "last 2"]


def test_decorators(lines):
    show = jax.debug.print(ordered=True)
    show("{}", 3)
    seen = []
    jax.debug.callback(ordered=True)(lambda x, name: seen.append((float(x), name)), 2.0,
                                     name="twice")
    jax.effects_barrier()
    assert lines() == ["3"] and seen == [(2.0, "twice")]


def test_callback_logs_each_example(caplog):
    def log_value(x):
        logging.getLogger("values").warning("Logged value: %s", x)

    @jax.jit
    def f(x):
        jax.debug.callback(log_value, x)
        return x

    f(1.0)
    jax.vmap(f)(jnp.arange(2.0))
    jax.grad(f)(1.0)
    jax.effects_barrier()
    assert sorted(r.getMessage() for r in caplog.records) == [
        f"Logged value: {x}" for x in ("0.0", "1.0", "1.0", "1.0")]


def test_log(caplog):
    with caplog.at_level(logging.INFO):
        jax.jit(lambda x: jax.debug.log("x = {}", x))(2.0)
        jax.effects_barrier()
    assert [r.getMessage() for r in caplog.records] == ["x = 2.0"]


def test_prints_of_repeated_blocks(lines):
    def f(x):
        for _ in range(8):
            x = jnp.tanh(jnp.sin(x) @ jnp.cos(x)) + jnp.exp(-x * x) / 3
            jax.debug.print("sum {:.3f}", jnp.sum(x))
        return x

    jax.jit(f)(jnp.ones((4, 4)) / 4)
    compiled = sorted(lines())
    f(jnp.ones((4, 4)) / 4)
    assert compiled == sorted(lines()) and len(compiled) == 8
