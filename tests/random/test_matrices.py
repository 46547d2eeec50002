"""Orthogonal matrices and normal vectors with covariances."""

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import random

KEY = random.key(0)
MEAN = np.float32([1, 2, 3])
COV = np.float32([[2.0, 0.3, 0.1], [0.3, 1.0, -0.2], [0.1, -0.2, 0.5]])


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize(("n", "m", "shape"), [(3, None, ()), (3, 5, ()), (5, 3, (2,)), (1, 1, 2),
                                               (0, 0, ()), (2, 4, (2, 3))])
def test_orthogonal(n, m, shape, dtype):
    x = random.orthogonal(KEY, n, shape, dtype, m)
    batch = (shape,) if isinstance(shape, int) else shape
    m = n if m is None else m
    assert x.shape == (*batch, n, m) and x.dtype == dtype
    x = np.asarray(x)
    adjoint = np.conj(np.swapaxes(x, -1, -2))
    product = x @ adjoint if n <= m else adjoint @ x
    np.testing.assert_allclose(product, np.broadcast_to(np.eye(min(n, m)), product.shape),
                               atol=2e-6)
    jitted = jax.jit(lambda k: random.orthogonal(k, n, shape, dtype, m))(KEY)
    np.testing.assert_array_equal(jitted, x)


def test_orthogonal_as_in_jax():
    x = random.orthogonal(KEY, 3)
    np.testing.assert_allclose(x[0], [0.9554101, 0.29413575, 0.02599558], rtol=1e-5)
    x = random.orthogonal(KEY, 2, dtype="complex64", m=5)
    np.testing.assert_allclose(x[0, :2], [0.2572173 - 0.62573016j, -0.19167347 + 0.05265817j],
                               rtol=1e-5)
    each = jax.vmap(lambda k: random.orthogonal(k, 3))(random.split(KEY))
    np.testing.assert_allclose(each[0], random.orthogonal(random.split(KEY)[0], 3), rtol=1e-5)


@pytest.mark.parametrize(("args", "options", "error", "message"), [
    ((3,), {"dtype": "int32"}, ValueError, "must be a float or complex dtype, got int32"),
    ((3,), {"dtype": "float16"}, TypeError, "orthogonal does not accept dtype float16"),
    ((3.0,), {}, TypeError, "orthogonal: n must be an integer"),
    ((-3,), {}, ValueError, "orthogonal: negative dimensions are not allowed, got -3"),
])
def test_what_orthogonal_refuses(args, options, error, message):
    with pytest.raises(error, match=message):
        random.orthogonal(KEY, *args, **options)
    with pytest.raises(ValueError, match="orthogonal accepts a single key"):
        random.orthogonal(random.split(KEY), 3)


@pytest.mark.parametrize("method", ["cholesky", "eigh", "svd"])
def test_multivariate_normal(method):
    x = random.multivariate_normal(KEY, MEAN, COV, (20000,), method=method)
    assert x.shape == (20000, 3) and x.dtype == np.float32
    np.testing.assert_allclose(x.mean(0), MEAN, atol=0.05)
    np.testing.assert_allclose(np.cov(x.T), COV, atol=0.05)
    means, covs = np.stack([MEAN, 2 * MEAN]), np.stack([COV, 4 * COV])
    for a, b, shape, want in ((means, COV, None, (2, 3)), (MEAN, covs, None, (2, 3)),
                              (means, covs, (5, 2), (5, 2, 3)), (MEAN, COV, (), (3,))):
        out = random.multivariate_normal(KEY, a, b, shape, method=method)
        assert out.shape == want
        np.testing.assert_allclose(jax.jit(lambda k, a=a, b=b, s=shape: random.multivariate_normal(
            k, a, b, s, method=method))(KEY), out, rtol=1e-6)


def test_multivariate_normal_promotes_no_ranks():
    with jax.numpy_rank_promotion("raise"):
        x = random.multivariate_normal(KEY, np.zeros(2, np.float32), np.eye(2, dtype=np.float32),
                                       (3,))
        np.testing.assert_array_equal(x, random.normal(KEY, (3, 2)))


def test_multivariate_normal_is_a_normal_vector_times_a_factor():
    z = random.normal(KEY, (3,))
    x = random.multivariate_normal(KEY, MEAN, COV)
    np.testing.assert_allclose(x, MEAN + np.linalg.cholesky(COV) @ np.asarray(z), rtol=1e-5)
    jac = jax.jacobian(lambda m: random.multivariate_normal(KEY, m, COV))(MEAN)
    np.testing.assert_array_equal(jac, np.eye(3))
    assert random.multivariate_normal(KEY, np.arange(3), np.eye(3, dtype=int)).dtype == np.float32
    assert random.multivariate_normal(KEY, MEAN, COV, dtype="float16").dtype == np.float32
    halves = random.multivariate_normal(KEY, MEAN, np.eye(3, dtype=np.float16))
    np.testing.assert_allclose(halves, MEAN + np.asarray(z), rtol=1e-6)
    with pytest.raises(ValueError, match="must be a float dtype, got complex64"):
        random.multivariate_normal(KEY, MEAN, COV.astype(np.complex64))
    with jax.enable_x64(True):
        np.testing.assert_allclose(random.multivariate_normal(KEY, MEAN, COV), x, rtol=1e-5)
        for mean, cov, dtype in ((MEAN, COV, "float32"), (np.arange(3), COV, "float32"),
                                 (MEAN, COV.astype(float), "float64"),
                                 (np.int8([1, 2, 3]), np.eye(3, dtype=np.int32), "float32")):
            assert random.multivariate_normal(KEY, mean, cov).dtype == dtype


@pytest.mark.parametrize(("args", "options", "message"), [
    ((MEAN, COV), {"method": "qr"}, "method must be one of"),
    ((1.0, COV), {}, "requires mean.ndim >= 1, got mean.ndim == 0"),
    ((MEAN, MEAN), {}, "requires cov.ndim >= 2, got cov.ndim == 1"),
    ((MEAN, COV[:2, :2]), {}, r"requires cov.shape == \(..., n, n\) for n=3"),
    ((np.stack([MEAN, MEAN]), COV, (3,)), {}, "Incompatible shapes for broadcasting"),
    ((np.stack([MEAN, MEAN]), COV, ()), {}, "must broadcast to the shape argument"),
    ((MEAN, COV), {"dtype": "int32"}, "must be a float dtype, got int32"),
])
def test_what_multivariate_normal_refuses(args, options, message):
    with pytest.raises(ValueError, match=message):
        random.multivariate_normal(KEY, *args, **options)


def test_orthogonal_initializers_as_in_jax():
    init = jax.nn.initializers.orthogonal()
    np.testing.assert_allclose(init(KEY, (2, 3))[0], [0.96083665, -0.25675002, 0.10427104],
                               rtol=1e-5)
    x = jax.nn.initializers.orthogonal(2.0, column_axis=0)(KEY, (4, 4), "float32")
    np.testing.assert_allclose(x[0, :3], [1.8046331, 0.19584073, 0.7388607], rtol=1e-5)


@pytest.mark.parametrize("axis", [-1, 0, 1])
@pytest.mark.parametrize("shape", [(2, 3), (3, 2), (3, 4, 5), (3, 3, 2, 4)])
def test_orthogonal_initializer(shape, axis):
    x = jax.nn.initializers.orthogonal(3.0, axis)(KEY, shape)
    assert x.shape == shape and x.dtype == np.float32
    rows = np.moveaxis(np.asarray(x), axis, 0).reshape(shape[axis], -1) / 3
    product = rows @ rows.T if rows.shape[0] <= rows.shape[1] else rows.T @ rows
    np.testing.assert_allclose(product, np.eye(len(product)), atol=1e-5)


@pytest.mark.parametrize("shape", [(3, 3, 3), (4, 2, 3), (3, 2, 2, 4), (3, 3, 3, 2, 2)])
def test_delta_orthogonal_initializer(shape):
    x = np.array(jax.nn.initializers.delta_orthogonal(2.0)(KEY, shape, "complex64"))
    middle = tuple([(n - 1) // 2 for n in shape[:-2]])
    np.testing.assert_allclose(x[middle] @ np.conj(x[middle].T), 4 * np.eye(shape[-2]), atol=1e-5)
    x[middle] = 0
    assert not x.any()


def test_what_orthogonal_initializers_refuse():
    inits = jax.nn.initializers
    for shape in ((3,), ()):
        with pytest.raises(ValueError, match="requires at least a 2D shape"):
            inits.orthogonal()(KEY, shape)
    for shape in ((2, 2), (2,) * 6):
        with pytest.raises(ValueError, match="requires a 3D, 4D or 5D shape"):
            inits.delta_orthogonal()(KEY, shape)
    with pytest.raises(ValueError, match="`fan_in` must be less or equal than `fan_out`"):
        inits.delta_orthogonal()(KEY, (3, 4, 2))
    assert jnp.all(jnp.isfinite(inits.orthogonal()(KEY, (1, 1))))
