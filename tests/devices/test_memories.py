"""Memories in types: where the values of programs are."""

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import configuration, lax
from pyjx.jaxlib_api import JAXLIB_VERSION
from pyjx.memory import Space
from pyjx.sharding import NamedSharding, SingleDeviceSharding
from pyjx.sharding import PartitionSpec as P

X = np.arange(8, dtype="f4")


on_newer_cpus = pytest.mark.skipif(
    JAXLIB_VERSION < (0, 10, 2), reason="XLA's CPU compiler knew no memories")


def kind(x):
    return x.sharding.memory_kind


@pytest.fixture(params=["one device", "a mesh"])
def host(request, mesh):
    """A sharding in the memory of the host."""
    if request.param == "a mesh":
        return NamedSharding(mesh, P("x"), memory_kind="pinned_host")
    return SingleDeviceSharding(jax.devices()[0], memory_kind="pinned_host")


@on_newer_cpus
def test_arguments_stay_in_their_memory(host):
    x = jax.device_put(X, host)
    assert jax.typeof(x).str_short() == "float32<host>[8]"
    f = jax.jit(lambda x: 2 * x)
    for _ in range(3):
        y = f(x)
        assert kind(y) == "pinned_host" and jax.typeof(y) is jax.typeof(x)
        np.testing.assert_array_equal(y, 2 * X)
    assert kind(x * 2) == kind(-x) == "pinned_host"
    text = f.lower(x).as_text()
    assert text.count('mhlo.memory_kind = "pinned_host"') == 2
    assert kind(f(X)) == "device"
    assert kind(jax.jit(lambda x: jax.device_put(x, Space.Device) * 2)(x)) == "device"


HELD = {
    "jit": lambda f: jax.jit(f),
    "cond": lambda f: lambda x: lax.cond(x[0] >= 0, f, lambda x: f(2 * x), x),
    "scan": lambda f: lambda x: lax.scan(lambda c, x: (c, f(x)), 0., x)[1],
    "checkpoint": lambda f: jax.checkpoint(f),
    "vmap": lambda f: jax.vmap(f),
    "reshape": lambda f: lambda x: f(x).reshape(2, 4),
}


@on_newer_cpus
@pytest.mark.parametrize("name", HELD)
def test_programs_inside_programs_say_where_their_results_are(name):
    out = jax.jit(HELD[name](lambda x: jax.device_put(x, Space.Host)))(X)
    assert kind(out) == "pinned_host"
    np.testing.assert_array_equal(np.ravel(out), X)


@pytest.mark.skipif(JAXLIB_VERSION >= (0, 10, 2), reason="it compiles such programs")
def test_jaxlibs_that_know_no_memories_on_cpus_are_named(host):
    with pytest.raises(NotImplementedError, match=r"jaxlib .* in another memory"):
        jax.jit(lambda x: 2 * x)(jax.device_put(X, host))


def test_memories_do_not_mix():
    with pytest.raises(ValueError, match="memory_space of all inputs passed to `add` must be the"):
        jax.jit(lambda x: jax.device_put(x, Space.Host) + x)(X)
    with pytest.raises(TypeError, match="cond branches must have equal output types"):
        jax.jit(lambda x: lax.cond(True, lambda x: jax.device_put(x, Space.Host), jnp.sin, x))(X)


def test_derivatives_come_back_to_the_memory_of_the_argument():
    def f(x):
        kept = jax.device_put(jnp.sin(x), Space.Host)
        return (jax.device_put(kept, Space.Device) * x).sum()

    found = jax.jit(jax.grad(f))(X)
    assert kind(found) == "device"
    np.testing.assert_allclose(found, np.cos(X) * X + np.sin(X), rtol=1e-5)
    np.testing.assert_allclose(jax.grad(f)(X), found, rtol=1e-5)
    np.testing.assert_allclose(jax.jvp(f, (X,), (X,))[1], found @ X, rtol=1e-5)


# -- sums that are yet to be taken -----------------------------------------------------------------


def test_putting_values_as_parts_of_sums():
    mesh = jax.make_mesh((2, 2), ("x", "y"))
    elsewhere = mesh.update(devices=np.array(jax.devices()[4:]).reshape(2, 2))
    values = np.arange(4, dtype=np.float32)
    for spec in (P(unreduced={"x"}), P("y", unreduced={"x"})):
        target = NamedSharding(mesh, spec)
        whole = NamedSharding(mesh, P())
        for x in (values, jnp.asarray(values), jax.device_put(values, whole)):
            out = jax.device_put(x, target)
            assert out.sharding == target
            assert sum(np.asarray(s.data).sum() for s in out.addressable_shards) == values.sum() * (
                1 if spec.partitions else 2)
            for place in (whole, jax.devices()[5], NamedSharding(elsewhere, P("x")),
                          NamedSharding(mesh, P("x"))):
                np.testing.assert_array_equal(jax.device_put(out, place), values)
            moved = jax.device_put(out, NamedSharding(elsewhere, P(unreduced={"y"})))
            np.testing.assert_array_equal(jax.reshard(moved, NamedSharding(elsewhere, P())), values)
        with jax.set_mesh(mesh):
            x = jax.device_put(values, P())
            np.testing.assert_array_equal(jax.reshard(jax.reshard(x, spec), P()), values)


OPENED = {
    "an argument": lambda x: x, "a product": lambda x: 2 * x, "a sum": lambda x: x.sum(),
    "a constant": lambda x: jnp.ones(3), "a cut": lambda x: jax.reshard(2 * x, P("x")),
    "an update": lambda x: jnp.zeros(3).at[np.array([0, 1, 2, 0])].add(x),
    "a reduction": lambda x: jnp.stack([x, x]).sum(0), "made": lambda x: jnp.full(4, 3.),
    "complex numbers": lambda x: x * (1 + 2j),
}


@pytest.mark.parametrize("name", OPENED)
def test_values_as_parts_of_sums_in_programs(name):
    f, to = OPENED[name], P(unreduced={"x"})
    with jax.set_mesh(jax.make_mesh((2,), ("x",))):
        x = jax.device_put(np.arange(4, dtype=np.float32), P())
        want = np.asarray(f(x))
        for opened in (lambda x: jax.reshard(f(x), to), lambda x: jax.device_put(f(x), to)):
            np.testing.assert_array_equal(
                jax.jit(lambda x: jax.reshard(opened(x), P()))(x), want)  # noqa: B023
            out = jax.jit(lambda x: opened(x) + opened(2 * x))(x)  # noqa: B023
            parts = [np.asarray(s.data) for s in out.addressable_shards]
            np.testing.assert_array_equal(sum(parts), want + np.asarray(f(2 * x)))


def test_results_that_are_parts_of_sums_beside_others():
    """Along Explicit axes of a mesh that has Auto axes, too; and along all axes of one."""
    values, types = np.arange(8, dtype=np.float32).reshape(2, 4), jax.sharding.AxisType
    for mesh in (jax.make_mesh((2, 2, 2), ("x", "y", "z"),
                               axis_types=(types.Explicit, types.Auto, types.Explicit)),
                 jax.make_mesh((8,), ("x",))):
        with jax.set_mesh(mesh):
            out, other = jax.jit(lambda x: (jax.reshard(x, P(unreduced={"x"})), 2 * x))(values)
            assert str(jax.typeof(out)) == "float32[2,4]{U:x}"
            np.testing.assert_array_equal(other, 2 * values)
            np.testing.assert_array_equal(jax.reshard(out, P()), values)


def test_a_limit_is_of_each_device():
    rows = np.ones((256, 256), "float32")
    held = {d: sum([x.nbytes // len(x.devices()) for x in jax.live_arrays() if d in x.devices()])
            for d in jax.devices()}
    *_, other, one = sorted(held, key=held.get)
    with configuration.memory_limit(held[one] + rows.nbytes + 1000):
        kept = jax.device_put(rows, one)
        with pytest.raises(jax.errors.JaxRuntimeError, match=f"arrays of the process on {one}"):
            jax.device_put(rows, one)
        assert jax.device_put(rows, other).size == kept.size


def test_budgets_are_of_each_device(mesh):
    cut = NamedSharding(mesh, P(("x", "y")))
    program = jax.inspect.trace(
        jax.jit(lambda x: jnp.sin(x) * 2, in_shardings=cut, memory_budget="80KiB"),
        jax.ShapeDtypeStruct((1024, 64), np.float32))
    text = program.emit("memory")
    assert "within 80.0 KiB about 64.0 KiB" in text
    assert "the largest arrays then, on all 8 devices together:" in text
    assert program.traced.memory().peaks == (64 << 10, 64 << 10)
