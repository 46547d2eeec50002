"""An introduction to the transformations: gradients, compilation, mapping, and any mix of them."""

from functools import partial

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp

rng = np.random.default_rng(0)
PARAMS = [(rng.normal(size=(m, n)).astype(np.float32), rng.normal(size=n).astype(np.float32))
          for m, n in ((4, 5), (5, 2))]
INPUTS = rng.normal(size=(3, 4)).astype(np.float32)
TARGETS = rng.normal(size=(3, 2)).astype(np.float32)


def predict(params, inputs):
    for weights, biases in params:
        outputs = jnp.dot(inputs, weights) + biases
        inputs = jnp.tanh(outputs)
    return outputs


def loss(params, inputs, targets):
    return jnp.sum((predict(params, inputs) - targets) ** 2)


def tanh(x):
    y = jnp.exp(-2.0 * x)
    return (1.0 - y) / (1.0 + y)


def test_gradients_of_any_order():
    assert str(jax.grad(tanh)(1.0)) == "0.4199743"
    # The third derivative is printed as 0.62162673; its last digits are the library's.
    assert jax.grad(jax.grad(jax.grad(tanh)))(1.0) == pytest.approx(0.62162673, rel=1e-6)


def test_gradients_through_python():
    def magnitude(x):
        if x > 0:
            return x
        return -x

    assert str(jax.grad(magnitude)(1.0)) == "1.0"
    assert str(jax.grad(magnitude)(-1.0)) == "-1.0"


def test_hessians():
    def hessian(fun):
        return jax.jit(jax.jacfwd(jax.jacrev(fun)))

    def fun(x):
        return jnp.sum(tanh(x)) ** 2

    x = jnp.array([0.5, -1.0, 2.0])
    t = np.tanh(x)
    slope, bend = 1 - t**2, -2 * t * (1 - t**2)
    want = 2 * np.outer(slope, slope) + np.diag(2 * t.sum() * bend)
    np.testing.assert_allclose(hessian(fun)(x), want, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(jax.hessian(fun)(x), want, rtol=1e-5, atol=1e-5)


def test_compiled_functions():
    def slow(x):
        return x * x + x * 2.0

    x = jnp.ones((500, 500))
    np.testing.assert_array_equal(jax.jit(slow)(x), slow(x))
    assert float(jax.jit(slow)(x)[0, 0]) == 3.0


def test_mapping_replaces_a_loop():
    def predict_one(params, vector):
        assert vector.ndim == 1
        for weights, biases in params:
            output = jnp.dot(vector, weights) + biases
            vector = jnp.tanh(output)
        return output

    loop = jnp.stack(list(map(partial(predict_one, PARAMS), INPUTS)))
    np.testing.assert_allclose(jax.vmap(partial(predict_one, PARAMS))(INPUTS), loop, rtol=1e-5)
    mapped = jax.vmap(predict_one, in_axes=(None, 0))(PARAMS, INPUTS)
    np.testing.assert_allclose(mapped, loop, rtol=1e-5)
    np.testing.assert_allclose(mapped, predict(PARAMS, INPUTS), rtol=1e-5)


def test_gradients_of_each_example():
    gradient = jax.jit(jax.grad(loss))
    each = jax.jit(jax.vmap(gradient, in_axes=(None, 0, 0)))(PARAMS, INPUTS, TARGETS)
    also = jax.vmap(partial(jax.grad(loss), PARAMS))(INPUTS, TARGETS)
    whole = gradient(PARAMS, INPUTS, TARGETS)
    for one, other, total in zip(*map(jax.tree.leaves, (each, also, whole)), strict=True):
        assert one.shape == (3, *total.shape)
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(one.sum(0), total, rtol=1e-4, atol=1e-5)


def test_promotion_differs_from_numpy():
    assert jnp.add(1, np.array([2], np.float32)).dtype == "float32"


def test_a_named_axis():
    """The introduction divides by a sum over devices; an axis of one device does as well."""
    normalize = jax.vmap(lambda x: x / jax.lax.psum(x, "i"), axis_name="i")
    np.testing.assert_allclose(normalize(jnp.arange(4.0)), [0, 0.16666667, 0.33333334, 0.5])


def test_gradients_through_nested_maps():
    """The same program as on several devices, with its values."""
    @jax.vmap
    def f(x):
        y = jnp.sin(x)

        @jax.vmap
        def g(z):
            return jnp.cos(z) * jnp.tan(y.sum()) * jnp.tanh(x).sum()

        return jax.grad(lambda w: jnp.sum(g(w)))(x)

    x = jnp.arange(8.0).reshape(4, 2)
    np.testing.assert_allclose(f(x), [[0.0, -0.7170853], [-3.1085174, -0.4824318],
                                      [10.366636, 13.135289], [0.22163185, -0.52112055]],
                               rtol=2e-5)
    gradient = jax.grad(lambda x: jnp.sum(f(x)))(x)
    np.testing.assert_allclose(gradient, [[-3.2369726, -1.6356447], [4.7572474, 11.606951],
                                          [-98.524414, 42.76499], [-1.6007166, -1.2568436]],
                               rtol=5e-5)
