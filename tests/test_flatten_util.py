"""ravel_pytree: dtypes, round trips, derivatives, errors."""

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx.flatten_util import ravel_pytree

B = np.float32([[1, 2]])


@pytest.mark.parametrize(("tree", "dtype"), [
    ({"a": 1.0, "b": B}, "float32"), ({"a": 1, "b": B}, "float32"),
    ([1, 2], "int32"), ([], "float32"),
    ([B, np.complex64(1j)], "complex64"), ([np.bool_(True), np.int8(3)], "int8"),
    ((np.zeros((0, 3), np.float16), (None, np.float16(2))), "float16"),
    ([jnp.bfloat16(1), np.float16(2)], "float32"),
])
def test_round_trip(tree, dtype):
    vector, unravel = ravel_pytree(tree)
    assert vector.dtype == dtype and vector.ndim == 1
    back = unravel(vector)
    assert jax.tree.structure(back) == jax.tree.structure(tree)
    for x, y in zip(jax.tree.leaves(back), jax.tree.leaves(tree), strict=True):
        assert x.dtype == jnp.asarray(y).dtype
        np.testing.assert_array_equal(x, y)


def test_under_transformations():
    tree = {"a": B, "b": np.float32(3)}

    def f(v):
        return jnp.sum(jnp.sin(ravel_pytree(tree)[1](v)["a"]) * 2)

    vector, unravel = ravel_pytree(tree)
    want = ravel_pytree(jax.grad(lambda t: jnp.sum(jnp.sin(t["a"]) * 2))(tree))[0]
    np.testing.assert_array_equal(jax.jit(jax.grad(f))(vector), want)
    batch = jax.jit(jax.vmap(lambda t: ravel_pytree(t)[0]))({"a": B, "b": np.float32([5])})
    np.testing.assert_array_equal(batch, [[1, 2, 5]])
    assert jax.jit(lambda x, g: g(x), static_argnums=1)(vector, unravel)["b"] == 3


def test_unravelers_are_equal_where_they_do_the_same():
    one, other = [ravel_pytree({"a": B * k})[1] for k in (1, 2)]
    assert one == other and hash(one) == hash(other)
    assert one != ravel_pytree({"b": B})[1] and one != ravel_pytree({"a": B[0]})[1]


def test_errors():
    with pytest.raises(ValueError, match="Sum of sizes 2 must be equal to dimension 0"):
        ravel_pytree(B)[1](np.float32([1]))
    with pytest.raises(TypeError, match="array of dtype int32, but expected dtype float32"):
        ravel_pytree([B, 1])[1](np.int32([1, 2, 3]))
    assert ravel_pytree(B)[1](np.int32([1, 2])).dtype == np.int32  # one dtype: as it comes
    with pytest.raises(TypeError, match="ravel_pytree"):
        ravel_pytree(["a"])
