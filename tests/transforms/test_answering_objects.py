"""Objects that answer every name, such as mocks and proxies, in the place of functions: nothing may
follow what they answer, as it has no end."""

import contextlib
import signal
from unittest import mock

import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax

V = jnp.arange(3.0)


class Itself:
    """Gives itself, also for special names."""

    def __getattr__(self, name):
        return self

    def __call__(self, *args):
        return args[0] * 2.0


class Another(Itself):
    """Gives a new one for each name."""

    def __getattr__(self, name):
        return Another()


class Failing(Itself):
    def __call__(self, *args):
        raise TypeError("of the user's own")


def mocked():
    return mock.MagicMock(side_effect=lambda *args: args[0] * 2.0)


USES = {
    "jit": lambda f: jax.jit(f)(1.0), "grad": lambda f: jax.grad(f)(1.0),
    "static": lambda f: jax.jit(f, static_argnames="n")(1.0, n=[2]),
    "vmap": lambda f: jax.vmap(f)(V), "scan": lambda f: lax.scan(f, 1.0, V),
    "cond": lambda f: lax.cond(True, f, f, 1.0), "while_loop": lambda f: lax.while_loop(f, f, 1.0),
    "fori_loop": lambda f: lax.fori_loop(0, 3, f, 1.0), "map": lambda f: lax.map(f, V),
    "custom_jvp": lambda f: jax.custom_jvp(f)(1.0),
    "custom_vjp": lambda f: jax.grad(jax.custom_vjp(f))(1.0),
    "checkpoint": lambda f: jax.grad(jax.checkpoint(f))(1.0),
    "eval_shape": lambda f: jax.eval_shape(f, 1.0), "jvp": lambda f: jax.jvp(f, (1.0,), (1.0,)),
    "make_jaxpr": lambda f: jax.make_jaxpr(f)(1.0), "linearize": lambda f: jax.linearize(f, 1.0),
    "tree.map": lambda f: jax.tree.map(f, [1], [2, 3]),
    "reduce": lambda f: lax.reduce(V, 0.0, f, (0,)),
    "associative_scan": lambda f: lax.associative_scan(f, V),
    "callback": lambda f: jax.pure_callback(f, jax.ShapeDtypeStruct((), "float32"), 1.0),
    "explain": lambda f: jax.jit(f).explain(1.0), "argument": lambda f: jax.jit(jnp.sin)(f),
    "result": lambda f: jax.jit(lambda x: f)(1.0), "operand": lambda f: jnp.sin(f) + f,
}


@pytest.mark.parametrize("make", [Itself, Another, Failing, mocked, lambda: mock.call])
@pytest.mark.parametrize("name", USES)
def test_what_answers_every_name_is_followed_nowhere(name, make):
    def stop(*_):
        pytest.fail("it goes on and on")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(60)
    try:
        with contextlib.suppress(Exception):
            USES[name](make())
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def test_a_mock_has_results():
    assert jax.jit(mocked())(3.0) == 6.0
    assert jax.eval_shape(mocked(), 1.0).shape == ()
    assert jax.grad(mocked())(3.0) == 2.0
