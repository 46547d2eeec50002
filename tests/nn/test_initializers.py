"""Initializers: moments, shapes, errors."""

from __future__ import annotations

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx.jaxlib_api import JAXLIB_VERSION
from pyjx.nn import initializers

key = jax.random.key(0)


@pytest.mark.parametrize("name, variance", [
    ("lecun_normal", 1 / 100), ("lecun_uniform", 1 / 100), ("he_normal", 2 / 100),
    ("he_uniform", 2 / 100), ("glorot_normal", 2 / 300), ("glorot_uniform", 2 / 300),
    ("kaiming_normal", 2 / 100), ("xavier_uniform", 2 / 300),
])
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.complex64])
def test_variance(name, variance, dtype):
    drawn = np.asarray(getattr(initializers, name)()(key, (100, 200), dtype))
    assert drawn.dtype == dtype
    assert abs(drawn.mean()) < 0.01
    assert np.var(drawn) == pytest.approx(variance, rel=0.05)


def test_fans_of_convolutions():
    drawn = initializers.he_normal()(key, (3, 3, 20, 50))
    assert np.var(drawn) == pytest.approx(2 / (9 * 20), rel=0.05)
    drawn = initializers.lecun_normal(in_axis=0, out_axis=1, batch_axis=2)(key, (50, 20, 10))
    assert np.var(drawn) == pytest.approx(1 / 50, rel=0.05)


def test_one_axis_may_be_named():
    make = initializers.variance_scaling
    inputs = make(1.0, "fan_in", "normal", in_axis=0, out_axis=())(key, (50,))
    np.testing.assert_allclose(inputs, jax.random.normal(key, (50,)) / np.sqrt(50), rtol=1e-6)
    outputs = make(1.0, "fan_out", "normal", in_axis=(), out_axis=-1)(key, (50,))
    np.testing.assert_array_equal(outputs, inputs)


@pytest.mark.parametrize("shape", ["a", (2, -1), (2.5, 3), None])
def test_bad_shapes(shape):
    with pytest.raises(TypeError, match=r"shape|Shapes"):
        initializers.he_normal()(key, shape)


def test_simple_ones():
    np.testing.assert_array_equal(initializers.zeros(key, (2,), jnp.int8), [0, 0])
    np.testing.assert_array_equal(initializers.ones(key, (2,)), [1, 1])
    np.testing.assert_array_equal(initializers.constant(2.5)(key, (2,)), [2.5, 2.5])
    assert initializers.uniform(2.0)(key, (1000,)).max() < 2
    assert np.std(initializers.normal(0.5)(key, (2000,))) == pytest.approx(0.5, rel=0.1)
    assert abs(initializers.truncated_normal(1.0)(key, (1000,))).max() <= 2
    assert initializers.normal(dtype=jnp.bfloat16)(key, (2,)).dtype == jnp.bfloat16


def test_none_is_the_default_dtype():
    half = initializers.normal(dtype=jnp.bfloat16)
    assert half(key, (2,), None).dtype == jnp.float32
    assert half(key, (2,), jnp.float16).dtype == jnp.float16


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32"])
def test_empty_matrices_are_orthogonal_in_any_dtype(dtype):
    drawn = initializers.orthogonal()(key, (4, 0, 3), dtype)
    assert drawn.shape == (4, 0, 3) and drawn.dtype == dtype


# What JAX gives, to the last bit.
@pytest.mark.optimized
@pytest.mark.skipif(JAXLIB_VERSION < (0, 10), reason="XLA rounded otherwise")
@pytest.mark.parametrize("init, shape, dtype, want", [
    (initializers.normal(), (4,), "float16", [-0.00494, -0.00796, -0.01599, 0.00403]),
    (initializers.glorot_uniform(), (2, 2), "complex64",
     [0.9168131 + 0.04204554j, 0.42338425 + 0.05589619j, -0.41560096 - 0.23335367j]),
])
def test_figures(init, shape, dtype, want):
    drawn = init(key, shape, dtype)
    np.testing.assert_array_equal(drawn.ravel()[:len(want)], np.array(want, dtype))


@pytest.mark.parametrize("call, message", [
    (lambda: initializers.lecun_normal()(key, (3,)), "Can't compute input and output sizes"),
    (lambda: initializers.he_normal(in_axis=0, out_axis=1)(key, (3,)), "axis 1 is out of bounds"),
    (lambda: initializers.he_normal()(key, 3), "Can't compute input and output sizes of a 1-dim"),
    (lambda: initializers.variance_scaling(1.0, "no", "normal")(key, (2, 3)),
     "invalid mode for variance scaling initializer: no"),
    (lambda: initializers.variance_scaling(1.0, "fan_in", "no")(key, (2, 3)),
     "invalid distribution for variance scaling initializer: no"),
])
def test_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("name", ["uniform", "normal", "truncated_normal", "lecun_normal",
                                  "he_uniform", "orthogonal"])
def test_where_values_lie(name):
    Explicit = jax.sharding.AxisType.Explicit
    with jax.set_mesh(jax.make_mesh((1,), ("x",), axis_types=(Explicit,))):
        init = getattr(initializers, name)()
        struct = jax.eval_shape(lambda k: init(k, (4, 2), out_sharding=jax.P("x")),
                                jax.random.key(0))
        assert struct.sharding.spec == jax.P("x", None)
        plain = jax.eval_shape(lambda k: init(k, (4, 2)), jax.random.key(0))
        assert plain.sharding.spec == jax.P(None, None)
