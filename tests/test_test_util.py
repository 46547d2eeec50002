"""check_grads and kin: they pass what is right, and say what is wrong."""

from functools import partial

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx.test_util import check_grads, check_jvp, check_vjp

X = np.float32([0.3, 0.7])


def wrong_by(jvp_factor, vjp_factor=1.0):
    """sin with derivatives that are off by factors."""
    @jax.custom_jvp
    def f(x):
        return jnp.sin(x)

    f.defjvp(lambda p, t: (f(*p), jvp_factor * jnp.cos(p[0]) * t[0]))
    return f


@pytest.mark.parametrize("f", [
    jnp.sin, lambda x: {"a": x * x, "b": (x[0],)}, lambda x: x.astype("complex64") * (1 + 2j),
    lambda x: jnp.where(x > 0.5, jnp.inf, x), lambda x: 2.0])
def test_right_derivatives_pass(f):
    check_grads(f, (X,), 2, modes=("fwd", "rev", "lin"))


def test_arguments_of_all_kinds():
    check_grads(lambda x, y: x * y, (2.0, 3.0), 2, eps=1e-2)
    check_grads(lambda t: t["a"] * t["b"], [{"a": X, "b": np.complex64(1 + 1j)}], 1, atol=1e-2,
                rtol=1e-2, eps=1e-3)
    check_grads(jnp.sin, (X.astype(jnp.bfloat16),), 1, eps=0.1, atol=0.2, rtol=0.2)
    with jax.enable_x64():
        check_grads(lambda x: jnp.exp(jnp.sin(x)), (np.float64([0.1, 2]),), 3,
                    atol={np.float64: 1e-3}, rtol=1e-3)
        check_grads(lambda z: z * z, (np.complex128([1 + 2j]),), 2)


def test_wrong_derivatives_are_named():
    with pytest.raises(AssertionError, match="JVP tangent"):
        check_grads(wrong_by(1.1), (X,), 1)
    with pytest.raises(AssertionError, match="VJP cotangent projection"):
        check_grads(wrong_by(1.1), (X,), 1, modes=["rev"])
    with pytest.raises(AssertionError, match="LIN tangent"):
        check_grads(wrong_by(1.1), (X,), 1, modes=["lin"])
    check_grads(wrong_by(1.001), (X,), 1)  # within the tolerance
    with pytest.raises(AssertionError, match="tangent"):
        check_grads(wrong_by(1.01), (X,), 1, atol=1e-3, rtol=1e-3)
    with pytest.raises(AssertionError, match="mine tangent"):
        check_jvp(jnp.sin, lambda p, t: (jnp.sin(*p), t[0]), (X,), err_msg="mine")
    with pytest.raises(AssertionError, match="primal"):
        check_vjp(jnp.cos, partial(jax.vjp, jnp.sin), (X,))


def test_second_order_is_checked():
    @jax.custom_jvp
    def slope(x):
        return jnp.cos(x)

    slope.defjvp(lambda p, t: (slope(*p), jnp.sin(p[0]) * t[0]))  # the sign is wrong
    f = jax.custom_jvp(jnp.sin)
    f.defjvp(lambda p, t: (jnp.sin(*p), slope(*p) * t[0]))
    check_grads(f, (X,), 1)
    with pytest.raises(AssertionError, match="of JVP"):
        check_grads(f, (X,), 2)


def test_values_are_close_by_their_dtypes():
    check_close = jax.test_util.check_close
    check_close({"a": X, "b": np.float16(1)}, {"a": X * (1 + 1e-7), "b": np.float16(1.001)})
    with pytest.raises(AssertionError, match="mine"):
        check_close(X, X * 1.0001, err_msg="mine")
    check_close(X, X * 1.0001, atol={"float32": 5e-4})
    with pytest.raises(AssertionError, match="shapes"):
        check_close(X, X[:1])


@pytest.mark.parametrize("modes", [["foo"], "foo", "fwd,foo", "back"])
def test_modes_that_there_are_not_check_nothing(modes):
    with pytest.raises(ValueError, match="modes must be of 'fwd', 'rev' and 'lin', got"):
        check_grads(jnp.sin, (1.0,), 1, modes=modes)


@pytest.mark.parametrize("modes", ["rev", "fwd", "fwd,rev", "fwdrev", "lin"])
def test_modes_may_be_one_text(modes):
    """Which says the modes that it contains, and no others."""
    check_grads(jnp.sin, (X,), 1, modes=modes)
    with pytest.raises(AssertionError) as found:
        check_grads(wrong_by(1.1), (X,), 1, modes=modes)
    first = "JVP" if "fwd" in modes else "VJP" if "rev" in modes else "LIN"
    assert first in str(found.value)
