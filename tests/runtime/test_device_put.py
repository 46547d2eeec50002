"""device_put and its kin."""

import functools

import ml_dtypes
import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import configuration as config
from pyjx import jit
from pyjx.core.avals import ShapedArray
from pyjx.runtime import backends, transfers
from pyjx.runtime.device_put import block_until_ready, copy_to_host_async, device_get, device_put
from pyjx.runtime.sharding import SingleDeviceSharding
from pyjx.runtime.transfers import array_from_numpy

pytestmark = pytest.mark.smoke


def aligned(n):
    """A float32 array whose memory could be shared with the device."""
    buffer = np.empty(4 * n + 64, np.uint8)
    start = -buffer.ctypes.data % 64
    return buffer[start:start + 4 * n].view(np.float32)


@pytest.mark.parametrize("n", [1, 16, 1000, 1_000_000])
def test_later_writes_to_numpy_memory_are_not_seen(n):
    source = aligned(n)
    source[:] = 1
    arrays = [device_put(source), device_put(source, backends.devices()[0]),
              array_from_numpy(source, ShapedArray((n,), np.float32))]
    source[:] = 2
    for x in arrays:
        assert np.all(np.asarray(x) == 1)


@pytest.mark.parametrize("x", [
    np.arange(6.0)[::-1], np.ones((2, 3)).T, np.arange(12).reshape(3, 4)[:, ::-2],
    np.arange(3, dtype=">f4"), np.float64(1.5), np.int64(7), np.bool_(True), 3, 2.5, 1j, False,
    np.ones(3, ml_dtypes.float8_e4m3fn), np.zeros((0, 4)),
])
def test_values(x):
    y = device_put(x)
    np.testing.assert_array_equal(np.asarray(y), np.asarray(x))
    assert not y.committed


def test_64_bits():
    x = np.arange(3.0)
    assert device_put(x).dtype == np.float32
    with config.enable_x64(True):
        assert device_put(x).dtype == np.float64
        assert device_put(2**40).item() == 2**40
    with pytest.raises(OverflowError, match="Python int 3000000000 too large to convert to int32"):
        device_put(3000000000)


def test_placement():
    device = backends.devices()[0]
    x = device_put(np.ones(2, np.float32))
    assert device_put(x) is x
    y = device_put(x, device)
    assert y.committed and not x.committed
    assert y.unsafe_buffer_pointer() == x.unsafe_buffer_pointer()
    assert device_put(y, SingleDeviceSharding(device)) is y
    z = device_put(x, may_alias=False)
    assert z.unsafe_buffer_pointer() != x.unsafe_buffer_pointer()
    pinned = device_put(x, SingleDeviceSharding(device, memory_kind="pinned_host"))
    assert pinned.sharding.memory_kind == "pinned_host"
    np.testing.assert_array_equal(pinned, x)


def test_trees():
    device = backends.devices()[0]
    tree = {"a": 1, "b": [2.5, None]}
    out = device_put(tree, {"a": None, "b": device})
    assert out["b"][1] is None
    assert not out["a"].committed and out["b"][0].committed
    assert out["b"][0].weak_type


@pytest.mark.parametrize(("args", "error", "text"), [
    ((1, "cpu"), ValueError, "`jax.device_put` only accepts .* Received invalid value: cpu"),
    ((["x"],), TypeError, "Argument 'x' of type <class 'str'> is not a valid JAX type"),
    ((np.ones(2, object),), TypeError, "Dtype object is not a valid JAX array type"),
])
def test_bad_input(args, error, text):
    with pytest.raises(error, match=text):
        device_put(*args)


def test_bad_prefix():
    device = backends.devices()[0]
    with pytest.raises(ValueError, match="must be a tree prefix of the corresponding value"):
        device_put([1, 2], [device])


def test_alias_and_donate_exclude_each_other():
    with pytest.raises(ValueError, match="may_alias and donate cannot be True"):
        device_put(np.ones(2), may_alias=True, donate=True)


def test_jax_array_protocol():
    class Wrapped:
        def __jax_array__(self):
            return device_put(np.arange(2))

    assert device_put(Wrapped()).tolist() == [0, 1]


def test_device_get():
    tree = {"a": device_put(np.arange(3)), "b": 1, "c": "text"}
    out = device_get(tree)
    assert type(out["a"]) is np.ndarray and out["a"].tolist() == [0, 1, 2]
    assert out["b"] == 1 and out["c"] == "text"
    assert type(device_get(tree["a"])) is np.ndarray


def test_waiting():
    x = device_put(1.5)
    assert block_until_ready(x) is x
    tree = {"a": x, "b": "text"}
    assert block_until_ready(tree) is tree
    assert copy_to_host_async(tree) is tree


def test_default_device_by_name():
    with config.default_device("cpu"):
        assert device_put(1).device.platform == "cpu"


def test_traced():
    from pyjx.core.trace import trace_to_jaxpr

    closed = trace_to_jaxpr(lambda x: device_put([x, 2.0], backends.devices()[0]),
                            [ShapedArray((), np.float32)])
    (eqn,) = closed.jaxpr.eqns
    assert eqn.primitive.name == "device_put"
    assert eqn.params["devices"] == (backends.devices()[0],) * 2
    assert eqn.params["srcs"] == (None, None)
    assert [str(s) for s in eqn.params["copy_semantics"]] == ["ArrayCopySemantics.REUSE_INPUT"] * 2


def test_compiled():
    from pyjx.runtime import jit

    f = jit.jit(lambda x: device_put({"a": x, "b": 2.0}, backends.devices()[0]))
    out = f(np.float32(3))
    assert float(out["a"]) == 3 and float(out["b"]) == 2


def test_derivatives():
    from pyjx.engine.tangents import UndefinedPrimal, Zero
    from pyjx.runtime.device_put import device_put_p

    aval = ShapedArray((), np.float32)
    params = dict(zip(("devices", "srcs"), [(backends.devices()[0],) * 2, (None,) * 2],
                      strict=True), copy_semantics=(0, 0))
    primals, tangents = device_put_p.jvp((1.0, 2.0), (Zero(aval), 3.0), **params)
    assert [float(p) for p in primals] == [1, 2]
    assert type(tangents[0]) is Zero and tangents[0].aval is aval and float(tangents[1]) == 3
    back = device_put_p.transpose([4.0, Zero(aval)], *[UndefinedPrimal(aval)] * 2, **params)
    assert float(back[0]) == 4 and back[1].aval is aval


def test_tracers_are_not_fetched():
    assert jit(device_get)(1.5) == 1.5


def test_an_array_moved_to_another_device_is_committed_there(run_python):
    run_python("""
import pyjx as jax, pyjx.numpy as jnp
jax.config.update("jax_num_cpu_devices", 2)
a, b = jax.devices()
x = jnp.ones(3)
moved = jax.device_put(x, b)
assert moved.committed and moved.devices() == {b}
f = jax.jit(lambda x: x * 2)
for y, device in ((x, a), (moved, b), (x, a), (moved, b)):
    assert f(y).devices() == {device}
""")


def test_shardings_for_more_dimensions_are_refused():
    """On one device too, and inside programs, where XLA's compiler would find it."""
    mesh = jax.make_mesh((1,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    sharding = jax.NamedSharding(mesh, jax.P("x", None))
    put = functools.partial(jax.device_put, device=sharding)
    for call in (put, jax.jit(put)):
        for x in (jnp.ones(4), np.ones(4), 1.0):
            with pytest.raises(ValueError, match=r"only valid for values of rank at least 2"):
                call(x)


def test_ranks_are_compared_once_and_not_where_an_array_lies_as_it_is_wanted(monkeypatch):
    asked = []
    monkeypatch.setattr(transfers, "check_rank", lambda *args: asked.append(args))
    mesh = jax.make_mesh((1,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    device = jax.devices()[0]
    copied = jax.NamedSharding(mesh, jax.P())
    for old, new, n in ((device, SingleDeviceSharding(device), 0), (copied, copied.update(), 0),
                        (device, copied, 1)):
        x = jax.device_put(jnp.ones(3), old)
        asked.clear()
        jax.device_put(x, new)
        assert len(asked) == n


def test_what_has_no_elements_stays():
    zeros = np.zeros((2, 3), jax.dtypes.float0)
    device = jax.devices()[0]
    fmt = jax.numpy.ones((2, 3)).format
    for target in (None, device, jax.memory.Space.Host, jax.sharding.SingleDeviceSharding(device),
                   fmt):
        out = jax.device_put({"a": zeros, "b": np.ones((2, 3))}, target)
        assert out["a"].dtype == jax.dtypes.float0 and out["a"].shape == (2, 3)


def test_the_memory_in_a_type():
    Space = jax.memory.Space
    usual = jax.core.ShapedArray((4,), "int16")
    assert usual is jax.core.ShapedArray((4,), "int16", memory_space=Space.Device)
    assert usual.memory_space is Space.Device and usual.str_short(True) == "i16[4]"
    host = usual.update(memory_space=Space.Host)
    assert host.memory_space is Space.Host and str(host) == "int16<host>[4]"
    assert host.update(memory_space=Space.Device) is usual
