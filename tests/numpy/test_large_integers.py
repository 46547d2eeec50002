"""Python integers beyond the default dtype, which is of 32 bits here: what JAX makes of each."""

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax

INTS = jnp.arange(4)
V = jnp.arange(4.0)

# Positions wrap round where an update, a filled read or a slice takes them.
POSITIONS = {
    "set": (lambda: INTS.at[2**33 + 2].set(7), [0, 1, 7, 3]),
    "set-out-of-range": (lambda: INTS.at[2**31].set(7), [0, 1, 2, 3]),
    "set-of-64-bits": (lambda: INTS.at[2**63].add(7), [7, 1, 2, 3]),
    "set-in-jit": (lambda: jax.jit(lambda: INTS.at[2**33 + 1].set(7))(), [0, 7, 2, 3]),
    "two": (lambda: jnp.eye(2).at[2**33 + 1, 0].set(5), [[1, 0], [5, 1]]),
    "fill": (lambda: INTS.at[2**33 + 2].get(mode="fill"), 2),
    "dynamic_slice": (lambda: lax.dynamic_slice(V, (2**33 + 1,), (2,)), [1, 2]),
    "dynamic_slice-negative": (lambda: lax.dynamic_slice(V, (2**31,), (2,)), [0, 1]),
    "dynamic_slice-mixed": (
        lambda: lax.dynamic_slice(jnp.eye(4), (2**33 + 1, jnp.array(1)), (2, 2)), [[1, 0], [0, 1]]),
    "update": (lambda: lax.dynamic_update_slice(V, V[:2] + 9, (2**33 + 1,)), [0, 9, 10, 3]),
}


@pytest.mark.parametrize(("call", "expected"), POSITIONS.values(), ids=POSITIONS)
def test_positions_wrap_round(call, expected):
    np.testing.assert_array_equal(call(), expected)


@pytest.mark.parametrize("call", [
    lambda: INTS[2**33 + 2], lambda: INTS.at[2**64].set(1),
    lambda: lax.dynamic_slice(V, (2**64,), (2,)),
    lambda: jnp.eye(2).at[2**33, jnp.array([0])].set(1), lambda: jnp.trace(jnp.eye(2), 2**33)])
def test_others_are_refused(call):
    with pytest.raises(OverflowError):
        call()


def test_conditions_hold_whatever_their_size():
    for pred in (2**31, 2**70, -(2**40)):
        assert lax.cond(pred, lambda: 1, lambda: 2) == 1
        assert jax.jit(lambda p=pred: lax.cond(p, lambda: 1, lambda: 2))() == 1
    assert lax.cond(0, lambda: 1, lambda: 2) == 2


def test_bounds_of_histograms_are_floats():
    counts, edges = jnp.histogram(INTS, 2, range=(0, 2**32))
    assert counts.tolist() == [4, 0] and edges.tolist() == [0, 2**31, 2**32]
    counts, _ = jnp.histogramdd(jnp.ones((3, 2)), 2, range=[(0, 2**31), (0, 1)])
    assert counts.tolist() == [[0, 3], [0, 0]]


def test_a_step_beyond_the_range_makes_one_number():
    assert jnp.arange(0, 4, 2**63).tolist() == [0]
    assert jnp.trace(jnp.eye(2), np.int64(2**33)) == 2  # NumPy's integers wrap round


@pytest.mark.parametrize("decimals", [39, 400, 2**31])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "complex64"])
def test_values_have_no_decimals_beyond_their_range(dtype, decimals):
    x = jnp.array([1.5, 1e-3, np.inf], dtype)
    assert jnp.array_equal(jnp.round(x, decimals), x)
    assert jax.grad(lambda y: jnp.round(y, decimals))(1.5) == 1


def test_parts_of_complex_numbers_are_rounded_apart():
    x = jnp.array([np.inf + 0.26j, 1e38 + 1j])
    out = jnp.round(x, 1)
    assert out.real.tolist() == [np.inf, np.inf] and out.imag[1] == 1
    np.testing.assert_allclose(out.imag[0], 0.3)
    assert jnp.round(INTS, -(2**31)).tolist() == [0, 0, 0, 0]
