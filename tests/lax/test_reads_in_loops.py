"""Backward passes of loops that read parts of an array: the sums are formed where the parts are."""

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax
from pyjx.core.jaxpr import subjaxprs

N = 7
X = jnp.linspace(0.2, 1.1, N)


def loop(body):
    return lambda x: lax.scan(lambda c, i: (body(x, c, i), None), 1.0, jnp.arange(N))[0]


def through_a_reference(x):
    ref = jax.new_ref(x)
    return lax.scan(lambda c, i: (c * ref[i] + jnp.sin(ref[i]), None), 1.0, jnp.arange(N))[0]


def by_an_inner_loop(x, c, i):
    return lax.scan(lambda d, j: (d * x[i] + x[j], None), c, jnp.arange(3))[0]


def differences(f):
    steps = 1e-2 * np.eye(N, dtype=np.float32)
    return [(float(f(X + h)) - float(f(X - h))) / 2e-2 for h in steps]


def all_eqns(jaxpr):
    for eqn in jaxpr.eqns:
        yield eqn
        for inner in subjaxprs(eqn):
            yield from all_eqns(inner)


READERS = {
    "an element": loop(lambda x, c, i: c * x[i] + jnp.sin(x[i])),
    "several": loop(lambda x, c, i: c * x[jnp.stack([i, 0, i])].sum()),
    "a slice": loop(lambda x, c, i: c + (lax.dynamic_slice(x, (i,), (3,)) ** 2).sum()),
    "in checkpoint": loop(
        lambda x, c, i: jax.checkpoint(lambda c: c * x[i] + x[N - 1 - i])(c)),
    "in jit": loop(lambda x, c, i: jax.jit(lambda c: c * x[i] + x[N - 1 - i])(c)),
    "in a branch": loop(
        lambda x, c, i: lax.cond(i > 2, lambda: c * x[i], lambda: c + x[i // 2])),
    "in a branch that reads it, beside one that does not": loop(
        lambda x, c, i: lax.cond(i > 2, lambda: c * x[i], lambda: c * 2)),
    "in a loop": loop(by_an_inner_loop),
    "by a reference": through_a_reference,
}


@pytest.mark.parametrize("name", READERS)
def test_no_iteration_makes_a_cotangent_of_all(name):
    f = READERS[name]
    bodies = [eqn.params["jaxpr"].jaxpr for eqn in jax.make_jaxpr(jax.grad(f))(X).eqns
              if eqn.primitive.name == "scan"]
    made = [eqn.primitive.name for body in bodies for eqn in all_eqns(body)
            if eqn.primitive.name in ("broadcast_in_dim", "add_any", "add")
            and eqn.outvars[0].aval.shape == (N,)]
    assert not made
    np.testing.assert_allclose(jax.grad(f)(X), differences(f), rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("name", READERS)
def test_further_derivatives(name):
    f = READERS[name]
    with jax.enable_x64(True):
        x = jnp.linspace(0.2, 1.1, N)
        v = jnp.cos(x)
        along = jax.jvp(jax.grad(f), (x,), (v,))[1]
        np.testing.assert_allclose(along, jax.grad(lambda x: jax.grad(f)(x) @ v)(x), rtol=1e-9)
        near = (jax.grad(f)(x + 1e-5 * v) - jax.grad(f)(x - 1e-5 * v)) / 2e-5
        np.testing.assert_allclose(along, near, rtol=1e-5, atol=1e-7)
        both = jax.vmap(jax.grad(f))(jnp.stack([x, v]))
        np.testing.assert_allclose(both, [jax.grad(f)(x), jax.grad(f)(v)], rtol=1e-9)


def test_what_is_read_as_a_whole_too():
    def f(x):
        def body(c, i):
            return c * x[i] + (x * x).sum() + x[i] ** 2, x[i] * c
        return lax.scan(body, 1.0, jnp.arange(N))[1].sum() + x[0]

    np.testing.assert_allclose(jax.grad(f)(X), differences(f), rtol=2e-2)


def test_a_constant_without_a_cotangent_is_not_carried():
    def f(x, w):
        return lax.scan(lambda c, i: (c * x[i] + lax.stop_gradient(w[i]), None), 1.0,
                        jnp.arange(N))[0]

    *_, backward = [eqn for eqn in jax.make_jaxpr(jax.grad(f, (0, 1)))(X, X).eqns
                    if eqn.primitive.name == "scan"]
    assert backward.params["num_carry"] == 2
    assert not jax.grad(f, 1)(X, X).any()
