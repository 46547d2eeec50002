"""Values of the program that is traced, values that stay in it, and tokens."""

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax
from pyjx.core.avals import Token
from pyjx.jaxlib_api import JAXLIB_VERSION

V = np.float32([1.0, 2.0])


@pytest.mark.parametrize("x", [1, 2.5, True, 1j, np.float16(3), np.arange(3), V])
def test_stage(x):
    out = lax.stage(x)
    assert isinstance(out, jax.Array) and out.aval == jnp.asarray(x).aval
    np.testing.assert_array_equal(out, x)
    staged = []

    def f(y):
        staged[:] = [lax.stage(x)]
        return staged[0]

    jaxpr = jax.make_jaxpr(f)(1.0)
    assert isinstance(staged[0], jax.core.Tracer) and not jaxpr.eqns
    np.testing.assert_array_equal(jax.jit(f)(1.0), x)


def test_transformations_of_stage():
    assert float(jax.grad(lax.stage)(1.0)) == 1.0
    assert float(jax.jit(jax.grad(lambda x: lax.stage(2.0) * lax.stage(x)))(3.0)) == 2.0
    assert [float(t) for t in jax.jvp(lax.stage, (1.0,), (2.0,))] == [1.0, 2.0]
    np.testing.assert_array_equal(jax.vmap(lax.stage)(V), V)
    assert jax.random.key_data(lax.stage(jax.random.key(0))).shape == (2,)
    with pytest.raises(TypeError, match="passed to stage at position 0"):
        lax.stage([1])


def test_shape_as_value():
    assert lax.shape_as_value((2, 3)).dtype == np.int32
    assert jax.jit(lambda x: lax.shape_as_value(x.shape))(np.zeros((2, 3))).tolist() == [2, 3]
    with pytest.raises(TypeError, match="integer type"):
        lax.shape_as_value((2.5, 3))


@pytest.mark.parametrize(("x", "shape"), [
    (1.5, (2, 3)), (np.arange(3), (2, 3)), (np.ones((1, 3), np.float16), (2, 3)),
    (np.ones((2, 1, 1)), (2, 3, 4)), (True, ()), (np.ones((0, 1)), (2, 0, 5)),
])
def test_broadcast_like(x, shape):
    like = jnp.zeros(shape, "complex64")
    for f in (lax.broadcast_like, jax.jit(lax.broadcast_like)):
        out = f(x, like)
        assert out.dtype == jnp.asarray(x).dtype and out.weak_type == jnp.asarray(x).weak_type
        np.testing.assert_array_equal(out, np.broadcast_to(x, shape))
    if jnp.asarray(x).dtype.kind == "f" and np.shape(x):
        ct = jax.grad(lambda x: lax.broadcast_like(x, like).sum())(jnp.asarray(x))
        assert ct.shape == np.shape(x)


def test_what_broadcast_like_refuses():
    with pytest.raises(ValueError, match=r"input type=int32\[3\] and requested type=int32\[2,4\]"):
        lax.broadcast_like(jnp.arange(3), jnp.zeros((2, 4)))
    with pytest.raises(ValueError, match=r"fewer dimensions: arr_shape=\(2, 3\) shape=\(3,\)"):
        lax.broadcast_like(jnp.zeros((2, 3)), jnp.zeros(3))
    with pytest.raises(TypeError, match="passed to broadcast_like at position 0"):
        lax.broadcast_like([1, 2], jnp.zeros(2))


@pytest.mark.parametrize("prevent", [False, True])
def test_dce_sink(prevent):
    def f(x):
        assert lax.dce_sink({"a": jnp.sin(x)}, prevent_mlir_dce=prevent) is None
        return x * 2

    assert f(3.0) == 6.0
    jaxpr = jax.make_jaxpr(f)(1.0)
    assert [e.primitive.name for e in jaxpr.eqns] == ["sin", "dce_sink", "mul"] and jaxpr.effects
    text = jax.jit(f).lower(1.0).as_text()
    assert "stablehlo.sine" in text and ("@dce_sink" in text) is prevent
    if prevent and JAXLIB_VERSION < (0, 10):
        return  # which has no such operation
    assert float(jax.jit(f)(3.0)) == 6.0
    assert float(jax.grad(f)(3.0)) == 2.0 and float(jax.jit(jax.grad(f))(3.0)) == 2.0
    np.testing.assert_array_equal(jax.vmap(f)(V), 2 * V)
    assert float(jax.lax.scan(lambda c, _: (f(c), None), 1.0, None, length=2)[0]) == 4.0
    assert "sin" in str(jax.make_jaxpr(jax.jit(jax.vmap(jax.grad(f))))(V))


def in_another(f):
    return jax.jit(lambda x, token: jax.jit(f)(x, token))


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit, in_another], ids=["plain", "jit", "jits"])
def test_tokens(wrap):
    token = lax.after_all(lax.create_token(), lax.create_token(3.0))
    assert isinstance(token, Token) and isinstance(lax.after_all(), Token)

    def f(x, token):
        return x, lax.after_all(token, lax.create_token(x))

    assert str(jax.make_jaxpr(f)(1.0, token)).splitlines()[1:3] == [
        "    c:Tok = create_token ", "    d:Tok = after_all b c"]
    for _ in range(3):
        x, out = wrap(f)(1.0, token)
        assert float(x) == 1.0 and isinstance(out, Token)
    assert float(jax.grad(lambda x: wrap(f)(x, token)[0])(2.0)) == 1.0
    np.testing.assert_array_equal(jax.vmap(lambda x: wrap(f)(x, token)[0])(V), V)
    with pytest.raises(TypeError, match="Arguments to after_all must be tokens"):
        lax.after_all(1.0)


def test_shape_of_a_scalar_as_value():
    sizes = lax.shape_as_value(())
    assert isinstance(sizes, jax.Array) and sizes.shape == (0,) and sizes.dtype == jnp.int32
