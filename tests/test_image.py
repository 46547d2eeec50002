"""Images at another size: against weights computed by hand, and known properties."""

from fractions import Fraction
from functools import partial

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx.image import ResizeMethod, resize, scale_and_translate

rng = np.random.default_rng(0)
METHODS = ["linear", "cubic", "cubic-pytorch", "lanczos3", "lanczos5", "area"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("antialias", [True, False])
@pytest.mark.parametrize("shape", [(9, 4), (3, 8), (6, 5)])
def test_constants_stay_and_axes_are_independent(method, antialias, shape):
    ones = resize(jnp.ones((6, 5)), shape, method, antialias)
    np.testing.assert_allclose(ones, np.ones(shape), rtol=1e-5)
    x, y = rng.normal(size=6).astype(np.float32), rng.normal(size=5).astype(np.float32)
    both = resize(jnp.outer(x, y), shape, method, antialias)
    apart = jnp.outer(resize(x, shape[:1], method, antialias),
                      resize(y, shape[1:], method, antialias))
    np.testing.assert_allclose(both, apart, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("method", METHODS)
def test_same_size_is_the_same_image(method):
    x = rng.normal(size=(4, 5)).astype(np.float32)
    np.testing.assert_allclose(resize(x, (4, 5), method), x)
    one, zero = np.ones(2, np.float32), np.zeros(2, np.float32)
    moved = scale_and_translate(x, (4, 5), (0, 1), one, zero, method)
    np.testing.assert_allclose(moved, x, atol=1e-6)


def test_linear_is_interpolation():
    x = rng.normal(size=7).astype(np.float32)
    places = (np.arange(20) + 0.5) * 7 / 20 - 0.5
    np.testing.assert_allclose(resize(x, (20,), "linear"), np.interp(places, np.arange(7), x),
                               rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(resize(jnp.arange(4.0), (2,), "linear", antialias=False), [0.5, 2.5])
    np.testing.assert_allclose(resize(jnp.arange(4.0), (2,), "area"), [0.5, 2.5])


def weights(old, new, method, antialias):
    """The matrix of weights by its definition, in numbers of Python; a row for each pixel."""
    a = -0.75 if method == "cubic-pytorch" and not antialias else -0.5

    def kernel(x):
        if method == "linear":
            return max(0, 1 - x)
        if method.startswith("cubic"):
            near, far = (a + 2) * x**3 - (a + 3) * x**2 + 1, a * (x**3 - 5 * x**2 + 8 * x - 4)
            return near if x < 1 else far if x < 2 else 0
        radius = int(method[-1])
        return np.sinc(x) * np.sinc(x / radius) if x < radius else 0

    found = np.zeros((old, new))
    width = max(old / new, 1) if antialias else 1
    for j in range(new):
        for i in range(-2, old + 2):
            at = min(max(i, 0), old - 1)
            if method == "area":
                start, end = Fraction(j * old, new), Fraction((j + 1) * old, new)
                found[at, j] += max(0, min(end, i + 1) - max(start, i)) * (at == i)
            elif at == i or (method == "cubic-pytorch" and not antialias):
                found[at, j] += kernel(abs((j + 0.5) * old / new - 0.5 - i) / width)
    return found / found.sum(0)


@pytest.mark.parametrize("antialias", [True, False])
@pytest.mark.parametrize("method", METHODS)
def test_weights_are_those_of_the_definition(method, antialias):
    for old, new in [(1, 1), (1, 4), (5, 1), (2, 3), (3, 2), (8, 3), (7, 16), (16, 7), (100, 250)]:
        row = partial(resize, shape=(new,), method=method, antialias=antialias)
        eye, atol = np.eye(old, dtype=np.float32), 1e-6 + 1e-7 * old
        want = weights(old, new, method, antialias) if old != new else np.eye(old)
        np.testing.assert_allclose(jax.vmap(row)(eye), want, atol=atol)
        slope = jax.jacrev(row)(eye[0])
        np.testing.assert_allclose(slope, want.T, atol=atol)


def test_nearest_keeps_the_dtype():
    assert resize(jnp.arange(4), (8,), "nearest").tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert resize(jnp.arange(5), (3,), ResizeMethod.NEAREST).tolist() == [0, 2, 4]
    assert resize(jnp.arange(4), (8,), "linear").dtype == np.float32
    assert resize(jnp.arange(4, dtype=jnp.bfloat16), (3,), "cubic").dtype == jnp.bfloat16


def test_translation_moves_pixels():
    x = np.array([1, 5, 2, 7], np.float32)
    one = np.ones(1, np.float32)
    for method in METHODS[:1] + METHODS[3:]:
        np.testing.assert_allclose(scale_and_translate(x, (4,), (-1,), one, one, method),
                                   [0, 1, 5, 2], atol=1e-5)
    slope = jax.jit(jax.grad(lambda t: scale_and_translate(x, (4,), (0,), one, t, "linear")[1]))(
        np.full(1, 0.5, np.float32))
    np.testing.assert_allclose(slope, [1 - 5], rtol=1e-5)


def test_edges_go_on_for_the_kernel_of_pytorch():
    x, one = np.array([1, 5, 2, 7], np.float32), np.ones(1, np.float32)
    moved = scale_and_translate(x, (4,), (0,), one, np.full(1, -4.4, np.float32), "cubic-pytorch",
                                antialias=False)
    np.testing.assert_allclose(moved, [7, 7, 7, 0], rtol=1e-5)


def test_transformations():
    x = rng.normal(size=(3, 6)).astype(np.float32)
    mapped = jax.vmap(lambda row: resize(row, (4,), "cubic"))(x)
    np.testing.assert_allclose(mapped, resize(x, (3, 4), "cubic"), rtol=1e-5, atol=1e-6)
    slope = jax.grad(lambda x: resize(x, (3, 4), "lanczos3").sum())(x)
    assert slope.shape == x.shape
    assert resize(jnp.zeros((0, 3)), (0, 5), "linear").shape == (0, 5)
    assert resize(jnp.ones(3), (0,), "linear").shape == (0,)


def test_refuses():
    x = jnp.ones((3, 3))
    with pytest.raises(ValueError, match="shape must have length"):
        resize(x, (3,), "linear")
    with pytest.raises(ValueError, match='Unknown resize method "foo"'):
        resize(x, (3, 2), "foo")
    for method in ["nearest", *METHODS]:
        with pytest.raises(ValueError, match=r"resize: .* got shape \(0, 3\)"):
            resize(x[:0], (2, 3), method)
    with pytest.raises(ValueError, match="Nearest neighbor"):
        scale_and_translate(x, (3, 3), (0,), jnp.ones(1), jnp.zeros(1), "nearest")
    with pytest.raises(ValueError, match=r"scale of shape \(1,\)"):
        scale_and_translate(x, (3, 3), (0,), jnp.ones(2), jnp.zeros(1), "linear")


def test_lanczos_weights_do_not_depend_on_what_is_compiled_beside_them():
    # row 3 is half way between pixels, where sinc's reduction of its argument jumps
    def resized(x):
        return jax.image.resize(x, (7, 2), "lanczos3")

    x = np.eye(4, 5, dtype=np.float32)
    value, _ = jax.jit(lambda x: (resized(x), jax.grad(lambda x: jnp.sum(resized(x)))(x)))(x)
    np.testing.assert_allclose(value, resized(x), atol=1e-6)


@pytest.mark.parametrize("shape", [(2, 4), (7, 2)])
def test_the_axis_that_shrinks_most_goes_first(shape):
    """So that the other axes' products are smaller."""
    text = str(jax.make_jaxpr(lambda x: jax.image.resize(x, shape, "linear"))(jnp.ones((8, 8))))
    assert "f32[8,2]" in next(line for line in text.splitlines() if "dot_general" in line)
