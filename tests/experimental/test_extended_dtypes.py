"""Dtypes of libraries: numbers of another dtype, with rules of their own."""

import dataclasses
from typing import Any

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax
from pyjx.core import dtypes
from pyjx.experimental import EArray, primal_tangent_dtype


class Rules:
    """Tangents are of the dtype itself, and the larger one counts."""

    @staticmethod
    def physical_element_aval(dtype):
        return jax.core.ShapedArray((), dtype.of)

    @staticmethod
    def convert_from(dtype, other):
        return dtype.of == other

    @staticmethod
    def convert_to(other, dtype):
        return dtype.of == other

    @staticmethod
    def tangent_dtype(dtype):
        return dtype

    @staticmethod
    def zero(dtype):
        return lax.convert_element_type(np.array(-np.inf, dtype.of), dtype)

    @staticmethod
    def add(dtype, x, y):
        x, y = lax.convert_element_type(x, dtype.of), lax.convert_element_type(y, dtype.of)
        return lax.convert_element_type(lax.max(x, y), dtype)

    @staticmethod
    def full(shape, fill_value, dtype):
        return lax.convert_element_type(lax.full(shape, fill_value, dtype.of), dtype)


class scalar(dtypes.extended):
    pass


@dataclasses.dataclass(frozen=True)
class Largest(dtypes.ExtendedDType):
    of: Any
    _rules: type = Rules
    type: type = scalar

    @property
    def name(self):
        return f"largest_{self.of}"


LARGEST = Largest(np.dtype("float32"))
X = jnp.arange(6.0).reshape(2, 3)


@pytest.mark.parametrize("wrapped", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_values_go_through_operations_that_move_them(wrapped):
    def f(x):
        e = lax.convert_element_type(x, LARGEST)
        assert e.dtype == LARGEST and e.shape == x.shape
        e = lax.concatenate([lax.reshape(e, (3, 2)), lax.broadcast_in_dim(
            lax.squeeze(lax.slice(e, (0, 1), (1, 2)), (0, 1)), (1, 2), ())], 0)
        return lax.convert_element_type(lax.dynamic_slice(e, (1, 0), (3, 2)), "float32")

    np.testing.assert_array_equal(wrapped(f)(X), [[2, 3], [4, 5], [1, 1]])
    np.testing.assert_array_equal(wrapped(jax.vmap(f))(jnp.stack([X, X]))[1],
                                  [[2, 3], [4, 5], [1, 1]])


def test_arrays():
    e = jax.jit(lambda x: lax.convert_element_type(x, LARGEST))(X)
    assert isinstance(e, EArray) and isinstance(e, jax.Array) and not isinstance(X, EArray)
    assert (e.shape, e.ndim, e.size, e.itemsize, e.nbytes, len(e)) == ((2, 3), 2, 6, 4, 24, 2)
    assert "largest_float32[2,3]" in repr(e) and e.devices() == X.devices()
    again = EArray(jax.typeof(e), X + 1)
    np.testing.assert_array_equal(jax.jit(lambda a: lax.convert_element_type(a, "float32"))(again),
                                  X + 1)
    moved = jax.device_put(e, jax.devices()[0]).block_until_ready()
    np.testing.assert_array_equal(lax.convert_element_type(moved, np.float32), X)
    np.testing.assert_array_equal(
        lax.convert_element_type(jnp.full((2,), 3.0, LARGEST), np.float32), [3, 3])
    with pytest.raises(TypeError, match="cannot be converted to a NumPy array"):
        np.asarray(e)
    with pytest.raises(ValueError, match="data of an array of type"):
        EArray(jax.typeof(e), X[0])
    with pytest.raises(ValueError, match=r"Cannot convert_element_type .* dtype of their data"):
        lax.convert_element_type(e, "int32")
    with pytest.raises(TypeError, match="mul"):
        lax.mul(e, e)


@jax.custom_vjp
def scaled(x, e):
    return x * lax.convert_element_type(e, "float32")


scaled.defvjp(lambda x, e: (scaled(x, e), x),
              lambda x, ct: (ct, lax.convert_element_type(x, LARGEST)))


@pytest.mark.parametrize("wrapped", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_cotangents_are_added_by_the_rule(wrapped):
    def twice(x, w):
        e = lax.convert_element_type(w, LARGEST)
        return scaled(x, e) + scaled(2 * x, e) - scaled(0.5 * x, e)

    def loop(x, w):
        e = lax.convert_element_type(w, LARGEST)
        return lax.scan(lambda c, _: (scaled(c, e) + 1, None), x, None, length=3)[0]

    def unused(x, w):
        lax.convert_element_type(w, LARGEST)
        return x

    for f, w, expected in ((twice, 2.0, 6.0), (loop, 1.0, 5.0)):
        assert float(wrapped(jax.grad(f, 1))(3.0, w)) == expected
    assert float(wrapped(jax.grad(unused, 1))(3.0, 2.0)) == 0


def test_tangents_of_another_dtype():
    quantized = primal_tangent_dtype("int8", "bfloat16")
    assert quantized == primal_tangent_dtype(jnp.int8, jnp.bfloat16)
    assert str(primal_tangent_dtype("int8", "bfloat16", "q")) == "q"
    assert jnp.issubdtype(quantized, jax.dtypes.extended)

    @jax.custom_vjp
    def product(x, q):
        return x * lax.convert_element_type(q, "int8")

    product.defvjp(lambda x, q: (product(x, q), (x, q)),
                   lambda res, ct: (ct * lax.convert_element_type(res[1], "int8"),
                                    (ct * res[0]).astype("bfloat16")))
    q = lax.convert_element_type(jnp.array([1, 2], "int8"), quantized)
    for f in (product, jax.jit(product)):
        out, pull_back = jax.vjp(f, jnp.array([3.0, 5.0]), q)
        dx, dq = pull_back(jnp.ones(2))
        assert dq.dtype == jnp.bfloat16
        np.testing.assert_array_equal((out, dx, dq.astype("float32")), [[3, 10], [1, 2], [3, 5]])
    grads = jax.jit(jax.grad(lambda q: product(jnp.full(2, 2.0), q).sum(), allow_int=True))(q)
    assert grads.dtype == jnp.bfloat16 and grads.tolist() == [2, 2]
