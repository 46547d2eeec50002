import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx.transforms.custom_linear import linear_call
from pyjx.transforms.custom_vmap import custom_vmap

V = np.float32([0.0, 1.0, 2.0])


@custom_vmap
def f(x, y):
    return jnp.sin(x) * y


seen = []


@f.def_vmap
def f_vmap(axis_size, in_batched, x, y):
    seen.append((axis_size, in_batched, x.shape, jnp.shape(y)))
    return f(x, y) * 10, in_batched[0] or in_batched[1]


def test_without_vmap():
    assert float(f(1.0, 2.0)) == pytest.approx(2 * np.sin(1.0))
    assert float(jax.jit(f)(1.0, y=2.0)) == pytest.approx(2 * np.sin(1.0))
    assert float(jax.grad(f)(1.0, 2.0)) == pytest.approx(2 * np.cos(1.0))


@pytest.mark.parametrize("wrap", [
    lambda f, **axes: jax.vmap(f, **axes), lambda f, **axes: jax.jit(jax.vmap(f, **axes)),
    lambda f, **axes: jax.vmap(jax.jit(f), **axes),
], ids=["vmap", "jit-vmap", "vmap-jit"])
def test_the_rule_is_used(wrap):
    seen.clear()
    np.testing.assert_allclose(wrap(f)(V, V), 10 * np.sin(V) * V, rtol=1e-6)
    np.testing.assert_allclose(wrap(f, in_axes=(0, None))(V, 2.0), 20 * np.sin(V), rtol=1e-6)
    assert seen == [(3, [True, True], (3,), (3,)), (3, [True, False], (3,), ())]


def test_derivatives_of_the_batched_call_are_those_of_the_rule():
    g = jax.grad(lambda x: jax.vmap(f, in_axes=(0, None))(x, 1.0).sum())(V)
    np.testing.assert_allclose(g, 10 * np.cos(V), rtol=1e-6)


def test_errors():
    with pytest.raises(AttributeError, match="No batching rule defined for custom_vmap function"):
        custom_vmap(jnp.sin)(1.0)
    g = custom_vmap(jnp.sin)
    g.def_vmap(lambda size, batched, x: (x, (True, True)))
    with pytest.raises(ValueError, match="structure of output value and output batching specific"):
        jax.vmap(g)(V)


def quotient(x, r):
    return linear_call(lambda r, x: x / r, lambda r, ct: 9 * ct / r, r, x)


def test_linear_call():
    assert float(quotient(3.0, 2.0)) == 1.5
    for wrap in (lambda f: f, jax.jit):
        assert float(jax.grad(wrap(quotient))(3.0, 2.0)) == 4.5
        assert float(jax.jvp(wrap(quotient), (3.0, 2.0), (1.0, 0.0))[1]) == 0.5
        assert float(jax.grad(wrap(quotient), argnums=1)(3.0, 2.0)) == -0.75
    np.testing.assert_allclose(jax.vmap(jax.grad(quotient))(V, V + 1), 9 / (V + 1))
    (ct,) = jax.linear_transpose(lambda x: quotient(x, 2.0), 1.0)(1.0)
    assert float(ct) == 4.5
    with pytest.raises(TypeError, match="output structure must match that of linear inputs"):
        linear_call(lambda r, x: x, lambda r, ct: (ct, ct), 1.0, 2.0)


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["plain", "jit"])
def test_the_rule_is_kept_where_the_function_closes_over_values(wrap):
    def outer(w, x):
        @custom_vmap
        def scale(x):
            return x * w

        @scale.def_vmap
        def rule(axis_size, in_batched, x):
            return x * w + 100, in_batched[0]

        return jax.vmap(wrap(scale))(x)

    x = np.arange(3.0, dtype=np.float32)
    for w in (2.0, np.full(1, 2.0, np.float32)[0], jax.numpy.float32(2)):
        np.testing.assert_array_equal(outer(w, x), 2 * x + 100)
        np.testing.assert_array_equal(jax.jit(outer)(w, x), 2 * x + 100)


def test_a_mapped_value_that_is_closed_over_is_refused():
    def f(w, x):
        scale = custom_vmap(lambda x: x * w)
        scale.def_vmap(lambda axis_size, in_batched, x: (x, in_batched[0]))
        return jax.jit(scale)(x)

    with pytest.raises(ValueError, match="closes over a value that is mapped"):
        jax.vmap(f)(np.ones(2, np.float32), np.ones(2, np.float32))


def test_keyword_only_arguments_are_refused():
    scale = custom_vmap(lambda x, *, k=2: x * k)
    scale.def_vmap(lambda axis_size, in_batched, x: (x, in_batched[0]))
    with pytest.raises(TypeError, match=r"\['k'\] are keyword-only"):
        scale(1.0, k=3)
