"""The whole path on a GPU or TPU, where there is one."""

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import configuration


def accelerators():
    try:
        return [d for d in jax.devices() if d.platform != "cpu"]
    except RuntimeError:
        return []


pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not accelerators(), reason="no accelerator here"),
]


@pytest.fixture
def device():
    return accelerators()[0]


def layer(x, w):
    h = jnp.tanh(x @ w)
    h = h - jnp.mean(h, axis=-1, keepdims=True)
    return x + jax.nn.gelu(h / jnp.sqrt(jnp.mean(h * h, axis=-1, keepdims=True) + 1e-6)) @ w.T


def loss(ws, x):
    for w in ws:
        x = layer(x, w)
    return jnp.sum(x * x)


def arguments():
    rng = np.random.default_rng(0)
    ws = [rng.normal(size=(32, 32)).astype(np.float32) / 8 for _ in range(6)]
    return ws, rng.normal(size=(4, 32)).astype(np.float32)


def test_training_step_agrees_with_the_cpu(device):
    ws, x = arguments()
    step = jax.jit(jax.value_and_grad(loss))
    with jax.default_matmul_precision("highest"):
        there = step(jax.device_put(ws, device), jax.device_put(x, device))
        cpu = jax.devices("cpu")[0]
        here = step(jax.device_put(ws, cpu), jax.device_put(x, cpu))
    for a, b in zip(jax.tree.leaves(there), jax.tree.leaves(here), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-3, atol=2e-3)


def test_outlining_is_off_unless_asked_for(device):
    ws, x = arguments()
    lowered = jax.jit(jax.grad(loss)).lower(ws, x)
    assert 'inlineable = "false"' not in lowered.as_text()
    with configuration.outline("on"):
        outlined = jax.jit(jax.grad(loss))(ws, x)
    for a, b in zip(outlined, jax.jit(jax.grad(loss))(ws, x), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-2, atol=2e-2)


def test_eager_operations_and_transfers(device):
    x = jax.device_put(np.arange(6.0, dtype=np.float32), device)
    assert x.devices() == {device}
    y = jnp.sin(x)[1:3] + x.at[0].set(5.0)[:2]
    assert y.devices() == {device}
    np.testing.assert_allclose(y, np.sin([1.0, 2.0]) + [5.0, 1.0], rtol=1e-5)


def test_random_bits_are_those_of_the_cpu(device):
    with jax.default_device(device):
        there = np.asarray(jax.random.normal(jax.random.key(7), (100,)))
    with jax.default_device(jax.devices("cpu")[0]):
        here = np.asarray(jax.random.normal(jax.random.key(7), (100,)))
    np.testing.assert_allclose(there, here, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("precision", "dtype", "tolerance"), [
    ("highest", "float32", 1e-6), ("highest", "complex64", 1e-6), ("default", "float32", 1e-2),
    ("default", "bfloat16", 1e-2), ("default", "float16", 2e-3),
    ("BF16_BF16_F32_X6", "float32", 1e-6),
])
def test_precision_of_products(device, precision, dtype, tolerance):
    rng = np.random.default_rng(0)
    x, y = (jnp.asarray(rng.uniform(0.5, 1.5, size=(64, 64)), dtype, device=device)
            for _ in range(2))
    got = np.asarray(jnp.dot(x, y, precision=precision))
    wide = np.complex128 if got.dtype.kind == "c" else np.float64
    np.testing.assert_allclose(got.astype(wide), np.asarray(x, wide) @ np.asarray(y, wide),
                               rtol=tolerance)


def test_collectives_over_one_device(device):
    mesh = jax.sharding.Mesh(np.array([device]), ("i",))
    spec = jax.sharding.PartitionSpec("i")
    x = jax.device_put(np.arange(6.0, dtype=np.float32), jax.sharding.NamedSharding(mesh, spec))

    def each(x):
        shifted = jax.lax.ppermute(x, "i", [(0, 0)])
        parts = jax.lax.all_to_all(x[None], "i", 0, 0)[0]
        scattered = jax.lax.psum_scatter(x, "i", tiled=True)
        gathered = jax.lax.all_gather(x, "i", tiled=True).sum()
        return shifted + parts + scattered + gathered + jax.lax.psum(x, "i")

    out = jax.jit(jax.shard_map(each, mesh=mesh, in_specs=spec, out_specs=spec))(x)
    assert out.sharding.device_set == {device}
    np.testing.assert_allclose(out, 4 * np.arange(6.0) + 15)


def test_callbacks_get_what_the_device_has_computed(device):
    said = []

    @jax.jit
    def f(x):
        jax.debug.callback(lambda y: said.append(np.asarray(y).tolist()), x * 2, ordered=True)
        like = jax.ShapeDtypeStruct(x.shape, x.dtype)
        return jax.pure_callback(lambda y: np.asarray(y) + 1, like, x * 3) * 10

    out = f(jax.device_put(np.arange(3.0, dtype=np.float32), device))
    jax.effects_barrier()
    assert said == [[0, 2, 4]] and out.devices() == {device}
    np.testing.assert_allclose(out, [10, 40, 70])
