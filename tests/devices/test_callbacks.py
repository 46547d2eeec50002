"""Callbacks in programs over eight devices: by one device or by each, and by which."""

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax
from pyjx.experimental import io_callback
from pyjx.sharding import AxisType, NamedSharding, SingleDeviceSharding
from pyjx.sharding import PartitionSpec as P


def called(f, x):
    """The shapes that a function's callback sees, in order of size."""
    seen = []
    jax.block_until_ready(jax.jit(lambda x: f(lambda v: seen.append(np.shape(v)), x))(x))
    jax.effects_barrier()
    return sorted(seen)


@pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit])
@pytest.mark.parametrize(("spec", "shape"), [
    (P("x"), (2, 8)), (P(None, "y"), (8, 4)), (P("x", "y"), (2, 4)), (P(), (8, 8))])
def test_partitioned_callbacks_see_what_each_device_has(kind, spec, shape):
    mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(kind,) * 2)
    x = jax.device_put(np.ones((8, 8), "f"), NamedSharding(mesh, spec))
    ways = [
        lambda say, x: jax.debug.callback(say, x, partitioned=True),
        lambda say, x: lax.cond(x.sum() > 0, lambda: jax.debug.callback(
            say, x, partitioned=True), lambda: None),
        lambda say, x: jax.grad(lambda x: (jax.debug.callback(
            say, x, partitioned=True), x.sum())[1])(x),
    ]
    with jax.set_mesh(mesh):
        for way in ways:
            assert called(way, x) == [shape] * 8
        twice = called(lambda say, x: lax.scan(lambda c, _: (jax.debug.callback(
            say, x, partitioned=True), (c, None))[1], 0, None, length=2)[0], x)
        assert twice == [shape] * 16
        assert called(lambda say, x: jax.debug.callback(say, x), x) == [(8, 8)]


def test_partitioned_prints_of_examples(mesh, capfd):
    x = jax.device_put(np.arange(8.0, dtype="f").reshape(2, 4), NamedSharding(mesh, P(None, "y")))
    jax.jit(jax.vmap(lambda v: jax.debug.print("row {}", v, partitioned=True)))(x)
    jax.effects_barrier()
    rows = ["row [0. 1.]", "row [2. 3.]", "row [4. 5.]", "row [6. 7.]"]
    assert sorted(capfd.readouterr().out.splitlines()) == sorted(rows * 4)


CALLS = [
    lambda f, x, **options: jax.pure_callback(
        f, jax.ShapeDtypeStruct(x.shape, x.dtype), x, **options),
    lambda f, x, **options: io_callback(f, jax.ShapeDtypeStruct(x.shape, x.dtype), x, **options),
    lambda f, x, **options: io_callback(
        f, jax.ShapeDtypeStruct(x.shape, x.dtype), x, ordered=True, **options),
]


@pytest.mark.parametrize("call", CALLS)
def test_the_device_that_calls(call, mesh):
    x = jax.device_put(np.ones((8, 8), "f"), NamedSharding(mesh, P("x", "y")))
    for place, device in enumerate(mesh.devices.flat):
        f = jax.jit(lambda x, device=device: call(
            lambda v: np.asarray(v) + 1, x, sharding=SingleDeviceSharding(device)))
        assert f"device_ids=[{place}]" in f.lower(x).as_text()
        np.testing.assert_array_equal(f(x), 2 * np.ones((8, 8)))


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit])
def test_devices_that_cannot_call(call, wrap, mesh):
    def f(sharding):
        return wrap(lambda x: call(lambda v: v, x, sharding=sharding))

    there = SingleDeviceSharding(jax.devices()[3])
    x = np.ones(8, "f")
    with pytest.raises(ValueError, match="cpu:3 that is not in the device assignment"):
        f(there)(x)
    np.testing.assert_array_equal(f(there)(jax.device_put(x, jax.devices()[3])), x)
    for sharding in (NamedSharding(mesh, P()), P("x"), 3):
        with pytest.raises(NotImplementedError, match="only supports SingleDeviceSharding"):
            f(sharding)(x)
    with pytest.raises(NotImplementedError, match="specifying sharding inside spmd"):
        jax.jit(jax.shard_map(f(there), mesh=mesh, in_specs=P(("x", "y")),
                              out_specs=P(("x", "y")), check_vma=False))(x)


def test_parts_of_a_larger_mesh_call_by_their_place():
    devices = jax.devices()[4:6]
    x = jax.device_put(np.ones(8, "f"), NamedSharding(jax.sharding.Mesh(devices, ("x",)), P("x")))
    f = jax.jit(lambda x: CALLS[0](lambda v: np.asarray(v) + 1, x,
                                   sharding=SingleDeviceSharding(devices[1])) + jnp.sin(x))
    assert "device_ids=[1]" in f.lower(x).as_text()
    np.testing.assert_allclose(f(x), 2 + np.sin(np.ones(8, "f")), rtol=1e-6)


def test_of_runs_at_once_none_takes_the_failure_of_another():
    """No run whose callback has failed returns, whichever thread has called it."""
    def fails_for_negative(x):
        time.sleep(0.01)
        if x[0] < 0:
            raise OSError("negative")
        return np.asarray(x)

    mesh = jax.make_mesh((2,), ("x",), devices=jax.devices()[:2])
    x = jax.device_put(jnp.arange(1.0, 9.0), NamedSharding(mesh, P("x")))
    f = jax.jit(lambda x: jax.pure_callback(fails_for_negative, x, x))

    def error(sign):
        try:
            np.testing.assert_array_equal(f(sign * x), x)
        except jax.errors.JaxRuntimeError as error:
            return error
        return None

    with ThreadPoolExecutor(2) as pool:
        for wrong, right in [(pool.submit(error, -1), pool.submit(error, 1)) for _ in range(20)]:
            assert "OSError: negative" in str(wrong.result())
            assert right.result() is None
    np.testing.assert_array_equal(f(x), x)


def test_after_a_failure_no_function_is_called():
    calls = []

    def step(x):
        calls.append(0)
        raise OSError("disk full")

    def commit(x):
        calls.append(1)
        return np.asarray(x)

    def call(f, x):
        return jax.pure_callback(f, x, x)

    mesh = jax.make_mesh((2,), ("x",), devices=jax.devices()[:2])
    x = jax.device_put(jnp.arange(8.0), NamedSharding(mesh, P("x")))
    for f in (lambda x: lax.while_loop(lambda c: c.sum() < 10, lambda c: c + call(step, c), 0 * x),
              lambda x: io_callback(commit, x, call(step, x))):
        with pytest.raises(jax.errors.JaxRuntimeError, match="OSError: disk full"):
            jax.jit(f)(x)
        assert calls == [0]
        calls.clear()
