"""Shardings: what they print, which part is where. Most need eight devices: the last test gives
this file another run with them."""

import pickle

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx.core.meshes import AbstractMesh, AxisType, Mesh
from pyjx.core.specs import P
from pyjx.runtime import backends
from pyjx.runtime.array_parts import make_array_from_callback, make_array_from_single_device_arrays
from pyjx.runtime.device_put import device_put
from pyjx.runtime.sharding import (
    DuplicateSpecError,
    GSPMDSharding,
    IndivisibleError,
    NamedSharding,
    SingleDeviceSharding,
    single_device_sharding,
)
from tests.eight import elsewhere, needs_eight, run_with_eight

pytestmark = pytest.mark.smoke


@pytest.fixture
def devices():
    return backends.devices("cpu")


@pytest.fixture
def mesh(devices):
    return Mesh(np.array(devices[:8]).reshape(4, 2), ("x", "y"))


@pytest.mark.parametrize(("spec", "text"), [
    (P(), "P()"), (P("x"), "P('x',)"), (P("x", None), "P('x', None)"),
    (P(("x", "y")), "P(('x', 'y'),)"), (P("x", ("y",)), "P('x', 'y')"), (P([]), "P(None,)"),
    (P(P.UNCONSTRAINED), "P(UNCONSTRAINED,)"), (P("x") + P("y"), "P('x', 'y')"),
    (("x",) + P("y"), "P('x', 'y')"),
])
def test_spec(spec, text):
    assert repr(spec) == text
    assert pickle.loads(pickle.dumps(spec)) == spec


def test_spec_is_no_tuple():
    assert P("x") != ("x",)
    assert P("x", None) != P("x")
    assert P("x", "y")[0] == "x" and len(P("x", "y")) == 2
    assert hash(P("x")) == hash(P(("x",)))
    with pytest.raises(ValueError, match="partitions cannot overlap with unreduced axes"):
        P("x", unreduced={"x"})


def test_one_device(devices):
    s = SingleDeviceSharding(devices[0])
    assert repr(s) == "SingleDeviceSharding(device=CpuDevice(id=0), memory_kind=device)"
    assert s == SingleDeviceSharding(devices[0]) == pickle.loads(pickle.dumps(s))
    assert hash(s) == hash(SingleDeviceSharding(devices[0]))
    assert s != SingleDeviceSharding(devices[0], memory_kind="pinned_host")
    assert single_device_sharding(devices[0]) is single_device_sharding(devices[0])
    assert s.shard_shape((2, 3)) == (2, 3)
    assert s.device_set == s.addressable_devices == {devices[0]}
    assert s.devices_indices_map((2, 3)) == {devices[0]: (slice(None), slice(None))}
    assert s.is_fully_replicated and s.is_fully_addressable and s.num_devices == 1


def test_mesh_of_one(devices):
    mesh = Mesh(devices[:1], "x")
    assert repr(mesh) == "Mesh(axis_sizes=(1,), axis_names=('x',), axis_types=(Auto,))"
    with pytest.raises(ValueError, match=r"devices.ndim == 1 and len\(axis_names\) == 2"):
        Mesh(devices[:1], ("x", "y"))
    assert Mesh(devices[:1], "x", AxisType.Explicit).axis_types == (AxisType.Explicit,)


@needs_eight
def test_mesh(mesh, devices):
    assert mesh is Mesh(np.array(devices).reshape(4, 2), ("x", "y"))
    assert str(mesh) == "Mesh('x': 4, 'y': 2, axis_types=(Auto, Auto))"
    assert dict(mesh.shape) == {"x": 4, "y": 2} and mesh.size == 8 and not mesh.empty
    assert mesh.local_mesh is mesh and not mesh.is_multi_process
    assert mesh.device_ids.tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]


@needs_eight
def test_named_repr(mesh):
    s = NamedSharding(mesh, P("x", "y"))
    assert repr(s) == ("NamedSharding(mesh=Mesh('x': 4, 'y': 2, axis_types=(Auto, Auto)), "
                       "spec=P('x', 'y'), memory_kind=device)")
    assert pickle.loads(pickle.dumps(s)) == s
    assert s.with_memory_kind("pinned_host").memory_kind == "pinned_host"
    assert s.update(spec=P("y")).spec == P("y")


@needs_eight
@pytest.mark.parametrize(("spec", "hlo"), [
    (P("x", "y"), "{devices=[4,2]<=[8]}"),
    (P("x"), "{devices=[4,1,2]<=[8] last_tile_dim_replicate}"),
    (P(("x", "y")), "{devices=[8,1]<=[8]}"),
    (P(None, "x"), "{devices=[1,4,2]<=[8] last_tile_dim_replicate}"),
    (P("y", "x"), "{devices=[2,4]<=[4,2]T(1,0)}"),
    (P(("y", "x")), "{devices=[8,1]<=[4,2]T(1,0)}"),
    (P(), "{replicated}"),
])
def test_hlo_sharding(mesh, spec, hlo):
    assert repr(NamedSharding(mesh, spec)._to_xla_hlo_sharding(2)) == hlo


@needs_eight
def test_bad_specs(mesh):
    with pytest.raises(ValueError, match=r"Resource axis: z of P\('z',\) is not found in mesh"):
        NamedSharding(mesh, P("z"))
    with pytest.raises(DuplicateSpecError, match="has duplicate entries for `x`"):
        NamedSharding(mesh, P("x", "x"))
    with pytest.raises(ValueError, match="Could not find memory addressable by device cpu"):
        NamedSharding(mesh, P("x"), memory_kind="foo")
    with pytest.raises(IndivisibleError, match="array axis 0 is partitioned 4 times, but the "
                                               "dimension size is 7"):
        NamedSharding(mesh, P("x")).shard_shape((7,))
    with pytest.raises(ValueError, match="only valid for values of rank at least 1"):
        device_put(np.float32(1), NamedSharding(mesh, P("x")))


@needs_eight
@pytest.mark.parametrize("spec", [
    P(), P("x"), P("y"), P("x", "y"), P("y", "x"), P(("x", "y")), P(("y", "x")), P(None, "y"),
    P("x", None, "y"),
])
def test_parts_are_where_the_mesh_says(mesh, devices, spec):
    x = np.arange(8 * 8 * 4).reshape(8, 8, 4)
    y = device_put(x, NamedSharding(mesh, spec))
    np.testing.assert_array_equal(y, x)
    for shard in y.addressable_shards:
        np.testing.assert_array_equal(shard.data, x[shard.index])
        position = np.argwhere(mesh.device_ids == shard.device.id)[0]
        place = dict(zip("xy", position, strict=True))
        for entry, part, size in zip(spec, shard.index, x.shape, strict=False):
            axes = entry if isinstance(entry, tuple) else () if entry is None else (entry,)
            count = start = 0
            for axis in axes:
                count = (count or 1) * mesh.shape[axis]
                start = start * mesh.shape[axis] + place[axis]
            if count:
                assert part == slice(start * size // count, (start + 1) * size // count)
    assert pickle.loads(pickle.dumps(y)).tolist() == x.tolist()


@needs_eight
def test_moves(mesh, devices):
    x = np.arange(16.0, dtype=np.float32).reshape(8, 2)
    named = [NamedSharding(mesh, s) for s in (P(), P("x", "y"), P("y"), P(("x", "y")))]
    everywhere = [*named, *map(SingleDeviceSharding, devices[:3])]
    for source in everywhere:
        y = device_put(x, source)
        for target in everywhere:
            z = device_put(y, target)
            assert z.sharding == target and z.committed
            np.testing.assert_array_equal(z, x)
    assert device_put(y, y.sharding) is y


@needs_eight
def test_equivalence(mesh):
    a, b = NamedSharding(mesh, P("x")), NamedSharding(mesh, P("x", None))
    assert a != b and a.is_equivalent_to(b, 2)
    assert not a.is_equivalent_to(NamedSharding(mesh, P("y")), 2)
    g = GSPMDSharding(mesh._internal_device_list, a._to_xla_hlo_sharding(2))
    assert a.is_equivalent_to(g, 2)
    assert g.shard_shape((8, 4)) == (2, 4)
    assert GSPMDSharding.get_replicated(mesh.devices.flat).is_fully_replicated


@needs_eight
def test_arrays_from_parts(mesh, devices):
    x = np.arange(16, dtype=np.float32).reshape(8, 2)
    s = NamedSharding(mesh, P("x", "y"))
    np.testing.assert_array_equal(make_array_from_callback(x.shape, s, lambda i: x[i]), x)
    pair = NamedSharding(Mesh(devices[:2], "x"), P("x"))
    parts = [device_put(np.full(1, i, np.float32), devices[i]) for i in (1, 0)]
    assert make_array_from_single_device_arrays((2,), pair, parts).tolist() == [0, 1]
    with pytest.raises(ValueError, match="Expected 2 per-device arrays"):
        make_array_from_single_device_arrays((2,), pair, parts[:1])
    with pytest.raises(ValueError, match=r"Expected shard shape \(2,\) doesn't match"):
        make_array_from_single_device_arrays((4,), pair, parts)


@needs_eight
def test_dlpack_takes_one_device(mesh):
    x = device_put(np.arange(8), NamedSharding(mesh, P("x")))
    with pytest.raises(BufferError, match="an array with a Sharding over 8 devices"):
        x.__dlpack__()


@elsewhere
def test_with_eight_devices():
    run_with_eight(__file__)


def test_equivalence_over_shapes_of_meshes():
    shape = AbstractMesh((2, 2), ("x", "y"))
    rows, columns = NamedSharding(shape, P("x")), NamedSharding(shape, P(None, "x"))
    assert rows.is_equivalent_to(NamedSharding(shape, P("x", None)), 2)
    assert not rows.is_equivalent_to(columns, 2) and rows.is_equivalent_to(rows, 2)
    assert not rows.is_equivalent_to(NamedSharding(AbstractMesh((4,), ("x",)), P("x")), 2)
    one = SingleDeviceSharding(backends.devices()[0])
    assert not rows.is_equivalent_to(one, 2) and not one.is_equivalent_to(rows, 2)
    with pytest.raises(ValueError, match="_device_assignment is not implemented"):
        rows.devices_indices_map((4, 4))


def test_specs_and_shardings_have_an_entry_for_each_argument():
    x, mesh = jnp.ones(2), jax.make_mesh((1,), ("x",))
    for f in (jax.jit(jnp.add, in_shardings=(None,)),
              jax.shard_map(jnp.add, mesh=mesh, in_specs=(jax.P("x"),), out_specs=jax.P("x"))):
        with pytest.raises(ValueError, match="a tuple has an entry for each positional argument"):
            f(x, x)


def test_shardings_that_do_not_fit_are_told_with_the_function():
    def train(a, b):
        return a

    mesh, x = jax.make_mesh((1,), ("x",)), jnp.ones(2)
    cut, cut_twice = NamedSharding(mesh, P("x")), NamedSharding(mesh, P(None, "x"))
    for f, args in ((jax.jit(train, in_shardings=(cut,)), (x, x)),
                    (jax.jit(train, in_shardings=({"a": cut}, None)), ({"b": x}, x)),
                    (jax.jit(train, out_shardings=(cut, cut)), (x, x)),
                    (jax.jit(train, in_shardings=cut_twice), (x, x)),
                    (jax.jit(train, out_shardings=cut_twice), (x, x)),
                    (jax.jit(train, in_shardings=cut), (jnp.ones(()), x))):
        with pytest.raises(ValueError, match=rf"[.;] [Tt]he function is train at {__file__}:\d+\."):
            f(*args)
    with pytest.raises(ValueError, match=r"by position\. The function is train at "):
        jax.jit(train, in_shardings=cut)(a=x, b=x)
