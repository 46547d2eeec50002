"""Values between pixels and grid points, the nearest code, integrals of samples."""

import numpy as np
import pytest
import scipy.cluster.vq
import scipy.integrate
import scipy.interpolate
import scipy.ndimage

import pyjx as jax
import pyjx.numpy as jnp
from pyjx.scipy import cluster, integrate, interpolate, ndimage

rng = np.random.default_rng(0)
MODES = ["constant", "nearest", "wrap", "mirror", "reflect"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("shape", [(7,), (5, 4), (3, 4, 2)])
@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.complex64])
def test_map_coordinates(mode, order, shape, dtype):
    image = (rng.normal(size=shape) * 50).astype(dtype)
    inside = [rng.uniform(-6, n + 6, (20, 2)) for n in shape]
    # SciPy's "constant" and "wrap" have another period and another edge
    theirs = f"grid-{mode}" if mode in ("constant", "wrap") else mode
    want = scipy.ndimage.map_coordinates(image.astype(complex if dtype == np.complex64 else float),
                                         inside, order=order, mode=theirs, cval=3.0)
    got = np.asarray(ndimage.map_coordinates(image, inside, order, mode=mode, cval=3.0))
    assert got.dtype == dtype
    want = np.sign(want) * np.floor(abs(want) + 0.5) if dtype == np.int32 else want
    close = abs(got - want) < (1.5 if dtype == np.int32 else 1e-2)  # roundings at a half
    assert close.all() and (abs(got - want) < 1e-2).mean() > 0.97


def test_map_coordinates_under_transformations():
    image = jnp.arange(6.0).reshape(2, 3)

    def at(y, x):
        return ndimage.map_coordinates(image, [y, x], 1)

    assert [float(g) for g in jax.grad(at, argnums=(0, 1))(0.5, 0.5)] == [3, 1]
    assert jax.vmap(at)(jnp.array([0.0, 1.0]), jnp.array([0.5, 1.5])).tolist() == [0.5, 4.5]
    assert jax.jit(at)(0.5, 0.5).shape == ()
    with pytest.raises(ValueError, match="sequence of length"):
        ndimage.map_coordinates(image, [jnp.ones(2)], 1)
    with pytest.raises(NotImplementedError, match="order<=1"):
        ndimage.map_coordinates(image, [jnp.ones(2)] * 2, 2)
    with pytest.raises(NotImplementedError, match="does not yet support mode"):
        ndimage.map_coordinates(image, [jnp.ones(2)] * 2, 1, mode="grid-wrap")


@pytest.mark.parametrize("method", ["linear", "nearest"])
@pytest.mark.parametrize("fill_value", [np.nan, -1.0, None])
@pytest.mark.parametrize("shape", [(6,), (6, 5), (6, 5, 4), (6, 5, 2, 3)])
def test_regular_grids(method, fill_value, shape):
    grid = [np.sort(rng.uniform(0, 5, n)) for n in shape[:3]][:2 if len(shape) == 4 else 3]
    values = rng.normal(size=shape)
    points = rng.uniform(-0.5, 5.5, (30, len(grid)))
    with jax.enable_x64(True):
        f = interpolate.RegularGridInterpolator(grid, values, method, fill_value=fill_value)
        want = scipy.interpolate.RegularGridInterpolator(
            grid, values, method, bounds_error=False, fill_value=fill_value)(points)
        np.testing.assert_allclose(f(points), want, rtol=1e-10)
        np.testing.assert_allclose(f(tuple(points.T)), want, rtol=1e-10)
        np.testing.assert_allclose(jax.jit(f)(points), want, rtol=1e-10)
        np.testing.assert_allclose(jax.jit(lambda f, x: f(x))(f, points), want, rtol=1e-10)
        slope = jax.grad(lambda f: f(points).sum())(f)
        assert slope.values.shape == values.shape and slope.method == method
        other = "linear" if method == "nearest" else "nearest"
        assert f(points, method=other).shape == want.shape


def test_regular_grids_refuse():
    x = jnp.arange(3.0)
    with pytest.raises(ValueError, match="is not defined"):
        interpolate.RegularGridInterpolator((x,), x, "cubic")
    with pytest.raises(NotImplementedError):
        interpolate.RegularGridInterpolator((x,), x, bounds_error=True)
    with pytest.raises(ValueError, match="2 point arrays"):
        interpolate.RegularGridInterpolator((x, x), x)
    with pytest.raises(ValueError, match="have dimension 2"):
        interpolate.RegularGridInterpolator((x,), x)(jnp.ones((2, 2)))


@pytest.mark.parametrize("shapes", [((9, 3), (4, 3)), ((9,), (4,))])
def test_vq(shapes):
    obs, codes = (rng.normal(size=s).astype(np.float32) for s in shapes)
    for got, want in zip(cluster.vq.vq(obs, codes), scipy.cluster.vq.vq(obs, codes), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5)
    with pytest.raises(ValueError, match="same rank"):
        cluster.vq.vq(jnp.ones((3, 2)), jnp.ones(2))


def test_trapezoid():
    y = rng.normal(size=(3, 5)).astype(np.float32)
    np.testing.assert_allclose(integrate.trapezoid(y, dx=0.5),
                               scipy.integrate.trapezoid(y, dx=0.5), rtol=1e-5)


def test_a_point_alone_is_one_of_several():
    at = interpolate.RegularGridInterpolator((np.arange(2.0), np.arange(3.0)), np.eye(2, 3))
    assert at(jnp.array([0.0, 0.5])).tolist() == [0.5]
    assert at(jnp.array([0.0, 0.5, 1.0, 1.0])).tolist() == [0.5, 1.0]
    assert at((0.0, 0.5)).shape == ()


def test_lists_of_points_in_one_dimension():
    f = interpolate.RegularGridInterpolator((np.arange(3.0),), np.arange(3.0) * 2)
    for points in ([0.5, 1.0], (0.5, 1.0, 1.5), np.array([0.5, 1.0]), ([0.5, 1.0],)):
        want = 2 * np.ravel(points)
        np.testing.assert_allclose(f(points), want)


def test_what_lies_outside_of_a_real_image_is_real():
    with pytest.raises(TypeError, match="cval must be a real number for an image of dtype float32"):
        ndimage.map_coordinates(jnp.arange(3.0), [jnp.array([5.0])], 1, cval=1j)
