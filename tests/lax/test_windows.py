"""Sliding windows: errors, named paddings, derivatives of extrema."""

from __future__ import annotations

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax
from pyjx.lax import windows

X = np.random.default_rng(0).standard_normal((6, 8)).astype(np.float32)


@pytest.mark.parametrize(("error", "message", "options"), [
    (TypeError, "wrong number of window_dimensions", {"window_dimensions": (2,)}),
    (TypeError, "inconsistent window_strides", {"window_strides": (1,)}),
    (TypeError, "inconsistent padding", {"padding": ((0, 0),)}),
    (TypeError, "window_dimensions must have every element be strictly positive",
     {"window_dimensions": (0, 2)}),
    (TypeError, "window_strides must have every element be strictly positive",
     {"window_strides": (0, 1)}),
    (TypeError, "All dilations must be positive", {"base_dilation": (0, 1)}),
    (TypeError, "All dilations must be positive", {"window_dilation": (1, 0)}),
    (RuntimeError, "Unrecognized padding type", {"padding": "FULL"}),
    (TypeError, "inconsistent dtypes", {"init_value": np.int32(0)}),
    (ValueError, "same tree structure", {"init_value": (0.0, 0.0)}),
])
def test_arguments_are_checked(error, message, options):
    options = {"init_value": 0.0, "window_dimensions": (2, 2), **options}
    with pytest.raises(error, match=message):
        lax.reduce_window(X, computation=lax.add, **options)


def test_shapes():
    assert lax.reduce_window_shape_tuple((4, 6), (2, 2), (1, 1), ((0, 1), (1, 0)), (2, 1),
                                         (1, 2)) == (7, 5)
    assert lax.reduce_window(X, 0.0, lax.add, (9, 9)).shape == (0, 0)


@pytest.mark.parametrize("padding", ["VALID", "SAME", "SAME_LOWER"])
def test_an_unrolled_window_equals_a_windowed_one(padding, monkeypatch):
    """The two lowerings of a small window."""
    from lowering import reductions as lowering_windows

    def pool(x):
        return lax.reduce_window(x, -np.inf, lax.max, (2, 3), (2, 1), padding)

    small = jax.jit(pool)(X), jax.jit(jax.grad(lambda x: pool(x).sum()))(X)
    jax.clear_caches()
    monkeypatch.setattr(lowering_windows, "UNROLLED_WINDOW", 0)
    text = jax.jit(pool).lower(X).as_text()
    assert "reduce_window" in text
    large = jax.jit(lambda x: pool(x))(X), jax.jit(jax.grad(lambda x: pool(x).sum()))(X)
    for a, b in zip(small, large, strict=True):
        np.testing.assert_allclose(a, b)


def test_the_first_of_ties_gets_the_derivative():
    x = np.ones((4,), np.float32)
    grad = jax.grad(lambda x: lax.reduce_window(x, -np.inf, lax.max, (2,), (2,)).sum())(x)
    assert grad.tolist() == [1, 0, 1, 0]


def test_extrema_of_dilated_windows_are_differentiated():
    def f(x):
        return lax.reduce_window(x, np.inf, lax.min, (2, 2), (1, 1), "VALID",
                                 window_dilation=(2, 3)).sum()

    count = np.zeros_like(X)
    for i, j in np.ndindex(4, 5):
        block = X[i:i + 3:2, j:j + 4:3]
        a, b = np.unravel_index(block.argmin(), (2, 2))
        count[i + 2 * a, j + 3 * b] += 1
    np.testing.assert_array_equal(jax.grad(f)(X), count)


def test_batched_initial_values():
    starts = np.array([0, 1], np.float32)
    out = jax.vmap(lambda v: lax.reduce_window(X, v, lambda a, b: lax.max(a, b), (2, 2)))(starts)
    for row, v in zip(out, starts, strict=True):
        np.testing.assert_array_equal(row, lax.reduce_window(X, v, lax.max, (2, 2)))


def test_select_and_scatter():
    scalar = np.float32(0)
    closed = [jax.make_jaxpr(f)(scalar, scalar) for f in (lax.ge, lax.add)]
    out = windows.select_and_scatter_p.bind(
        np.array([1, 3, 2, 5], np.float32), np.array([10, 20], np.float32), np.float32(1),
        select_jaxpr=closed[0], select_consts=(), scatter_jaxpr=closed[1], scatter_consts=(),
        window_dimensions=(2,), window_strides=(2,), padding=((0, 0),))
    assert out.tolist() == [1, 11, 1, 21]


def test_windows_of_a_scalar():
    assert float(lax.reduce_window(np.float32(3), 0.0, lax.add, ())) == 3


def not_neutral(a, b):
    return a * b + a


def random_windows(seed):
    """An operand and parameters of windows over it."""
    rng = np.random.default_rng(seed)
    ndim = seed % 3
    x = np.asarray(rng.uniform(0.5, 1.5, rng.integers(1, 5, ndim)), np.float32)

    def sizes(most):
        return tuple(map(int, rng.integers(1, most, ndim)))

    pads = [tuple(map(int, rng.integers(0, 3, 2))) for _ in range(ndim)]
    return x, (sizes(4), sizes(3), pads, sizes(3), sizes(3))


@pytest.mark.parametrize("seed", range(9))
def test_derivatives_are_at_the_result_whatever_the_function_starts_with(seed):
    x, params = random_windows(seed)

    def f(x):
        return lax.reduce_window(x, np.float32(1.5), not_neutral, *params)

    out, tangent = jax.jvp(f, (x,), (np.ones_like(x),))
    np.testing.assert_allclose(out, f(x), rtol=1e-5)
    step = np.float32(1e-2)
    np.testing.assert_allclose(tangent, (f(x + step) - f(x - step)) / (2 * step), rtol=2e-2,
                               atol=1e-2)
    np.testing.assert_allclose(jax.vmap(f)(np.stack([x, x]))[1], f(x), rtol=1e-5)


@pytest.mark.parametrize("transform", [
    lambda f: f, jax.jit, lambda f: lambda x: jax.jvp(f, (x,), (1.0,))[0],
    lambda f: lambda x: jax.vjp(f, x)[0], lambda f: lambda x: jax.vmap(f)(jnp.full(2, x))[0]])
@pytest.mark.parametrize("reduction", [
    lambda x: lax.reduce_window(x, 1.5, not_neutral, (), ()),
    lambda x: lax.reduce(x, np.float32(1.5), not_neutral, ())])
def test_what_has_no_dimensions_is_not_combined_with_anything(reduction, transform):
    assert float(transform(reduction)(jnp.float32(3.0))) == 3.0


@pytest.mark.parametrize(("init", "function"), [
    (0.0, lax.add), (-np.inf, lax.max), (np.inf, lax.min), (1.0, lambda a, b: a * b)])
def test_gradients_of_numbers(init, function):
    for value in (3.0, np.float32(3), np.array(3, np.float32)):
        assert float(jax.grad(
            lambda x: lax.reduce_window(x, init, function, (), (), ()))(value)) == 1.0
        assert float(jax.jvp(lambda x: lax.reduce_window(x, init, function, (), (), ()),
                             (value,), (np.ones_like(value),))[1]) == 1.0


def test_the_structure_of_what_the_function_gives():
    x, zero = np.ones(4, np.float32), np.float32(0)
    with pytest.raises(ValueError, match="same tree structure as the operands"):
        lax.reduce_window(x, zero, lambda a, b: [a + b], (2,), (1,))
    out = lax.reduce(x, zero, lambda a, b: [a + b], (0,))
    assert isinstance(out, list)
    assert float(out[0]) == 4.0
    assert float(lax.reduce([x], [zero], lambda a, b: {"sum": a[0] + b[0]}, (0,))["sum"]) == 4.0


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("window", [4, 50])
def test_windows_of_narrow_floats(dtype, window):
    dtype = jnp.dtype(dtype)
    x = (X[0, :1] * 0 + 1 + np.arange(100) / 64).astype(dtype)
    parts = x.reshape(-1, window).astype(np.float64)
    for add, start, want in ((lax.add, 0, parts.sum(1)), (lax.max, -np.inf, parts.max(1))):
        got = np.asarray(lax.reduce_window(x, dtype.type(start), add, (window,), (window,),
                                           "VALID"))
        assert got.dtype == dtype
        if add is lax.max or dtype == jnp.bfloat16:  # rounded once
            np.testing.assert_array_equal(got, want.astype(dtype))
        else:
            np.testing.assert_allclose(got.astype(np.float64), want, rtol=2e-2)
