"""The mesh that is set, beside those that operands and results name."""

import numpy as np
import pytest

import pyjx as jax
from pyjx import numpy as jnp
from pyjx.errors import ShardingTypeError
from pyjx.sharding import AxisType, NamedSharding
from pyjx.sharding import PartitionSpec as P

KEY = jax.random.key(0)
MADE = {
    "full": lambda s: jnp.full(4, 1, out_sharding=s),
    "zeros": lambda s: jnp.zeros(4, out_sharding=s),
    "arange": lambda s: jnp.arange(4, out_sharding=s),
    "array": lambda s: jnp.array([1., 2, 3, 4], out_sharding=s),
    "iota": lambda s: jax.lax.broadcasted_iota(int, (4,), 0, out_sharding=s),
    "normal": lambda s: jax.random.normal(KEY, (4,), out_sharding=s),
    "bits": lambda s: jax.random.bits(KEY, (4,), out_sharding=s),
    "gamma": lambda s: jax.random.gamma(KEY, 2., (4,), out_sharding=s),
    "einsum": lambda s: jnp.einsum("i,i->i", np.ones(4), np.ones(4), out_sharding=s),
    "reshape": lambda s: jnp.reshape(jnp.ones((2, 2)), 4, out_sharding=s),
    "at": lambda s: jnp.ones(8).at[np.arange(4)].get(out_sharding=s),
}


@pytest.mark.parametrize("name", MADE)
def test_out_shardings_that_are_refused(name):
    line = jax.make_mesh((2,), ("a",))
    other = line.update(axis_names=("z",))
    auto = line.update(axis_types=AxisType.Auto)
    for made in (MADE[name], lambda s: jax.jit(lambda: MADE[name](s))()):
        with jax.set_mesh(line):
            for target, message in (
                    (NamedSharding(other, P("z")), "should match the mesh of sharding"),
                    (NamedSharding(auto, P()), "should match the mesh of sharding"),
                    (NamedSharding(line, P("a"), memory_kind="pinned_host"), "with memory_kind")):
                with pytest.raises(ValueError, match=message):
                    made(target)
            assert jax.typeof(made(P("a"))).sharding.spec == P("a")
        with jax.set_mesh(auto), pytest.raises(ValueError, match="of type Auto or Manual"):
            made(P("a"))


def test_auto_axes_along_auto_axes():
    f = jax.sharding.auto_axes(lambda x: x + 1, out_sharding=P("a"))
    with jax.set_mesh(jax.make_mesh((2,), ("a",), (AxisType.Auto,))):
        assert f(np.arange(3)).tolist() == jax.jit(f)(np.arange(3)).tolist() == [1, 2, 3]
    with jax.set_mesh(jax.make_mesh((2,), ("a",))):
        for call in (lambda: jax.sharding.auto_axes(f, axes="z", out_sharding=P())(np.ones(2)),
                     lambda: jax.sharding.explicit_axes(f, axes=("z",), in_sharding=P())(1.)):
            with pytest.raises(ValueError, match="which is no axis of the mesh"):
                call()


def test_operands_of_another_mesh():
    line = jax.make_mesh((2,), ("a",))
    other = line.update(axis_names=("z",))
    x, y = [jax.device_put(np.ones(4), NamedSharding(m, P(m.axis_names[0])))
            for m in (line, other)]
    with jax.set_mesh(line):
        assert jax.jit(lambda v: 2 * v)(x).tolist() == [2] * 4
        for _ in range(2):
            with pytest.raises(ValueError, match=r"context mesh .* should match the aval mesh"):
                jax.jit(lambda v: 2 * v)(y)
        assert jax.reshard(y, P("a")).tolist() == [1] * 4
    assert jax.jit(lambda v: 2 * v)(y).tolist() == [2] * 4


def test_results_on_two_meshes():
    explicit = jax.make_mesh((2,), ("a",))
    auto = explicit.update(axis_types=AxisType.Auto)
    with jax.set_mesh(explicit):
        x = jax.device_put(np.ones(4), P("a"))
        with jax.set_mesh(auto):
            y = jnp.ones(4)
        outs = jax.jit(lambda p, q: (p, q, 2 * p))(x, y)
    assert [out.sharding.mesh for out in outs] == [explicit, auto, explicit]


def test_sums_along_no_axis_of_what_is_cut():
    with jax.set_mesh(jax.make_mesh((2,), ("a",))):
        x = jax.device_put(np.ones((2, 4)), P(None, "a"))
        for f in (jnp.cumsum, jnp.cumprod):
            with pytest.raises(ShardingTypeError, match=f"fully replicated .* to {f.__name__}"):
                f(x)
            assert f(x, axis=0).shape == (2, 4)
        with pytest.raises(ShardingTypeError, match="on the unstacking axis 1"):
            jnp.unstack(x, axis=1)


# -- segments along an Explicit axis ---------------------------------------------------------------

SEGMENTS = {"sum": [3, 4, 7, 0], "prod": [2, 4, 7, 1], "max": [2, 4, 7, None],
            "min": [1, 4, 7, None]}


@pytest.mark.parametrize("bucket_size", [None, 2])
@pytest.mark.parametrize("kind", SEGMENTS)
def test_segments_of_rows_that_are_cut(kind, bucket_size):
    f = getattr(jax.ops, f"segment_{kind}")
    with jax.set_mesh(jax.make_mesh((2,), ("a",))):
        for cuts in (("a", "a"), ("a", None), (None, "a")):
            data, ids = [jax.device_put(np.array(x, "i4"), P(cut)) for x, cut in zip(
                ([4, 1, 2, 7], [1, 0, 0, 2]), cuts, strict=True)]
            for jit in (lambda g: g, jax.jit):
                for spec in (P(None), P("a")):
                    out = jit(lambda d, i: f(d, i, 4, bucket_size=bucket_size,
                                             out_sharding=spec))(data, ids)  # noqa: B023
                    assert np.asarray(out).tolist()[:3] == SEGMENTS[kind][:3]
                    assert SEGMENTS[kind][3] in (None, int(np.asarray(out)[3]))
                    assert jax.typeof(out).sharding.spec == spec
            opened = P(unreduced={"a"})
            if kind == "sum" and bucket_size is None:
                out = f(data, ids, 3, out_sharding=opened)
                parts = [np.asarray(s.data) for s in out.addressable_shards]
                assert sum(parts).tolist() == [3, 4, 7]
            else:
                with pytest.raises(NotImplementedError, match="unreduced results are sums"):
                    f(data, ids, 3, bucket_size=bucket_size, out_sharding=opened)


def test_counts_of_numbers_that_are_cut():
    with jax.set_mesh(jax.make_mesh((2,), ("a",))):
        ids = jax.device_put(np.array([1, 0, 0, 2]), P("a"))
        assert jnp.bincount(ids, length=3, out_sharding=P()).tolist() == [2, 1, 1]
        opened = jnp.bincount(ids, length=3, out_sharding=P(unreduced={"a"}))
        assert sum(np.asarray(s.data) for s in opened.addressable_shards).tolist() == [2, 1, 1]
        with pytest.raises(ShardingTypeError, match=r"passed to `jnp.bincount` can only be fully"):
            jnp.bincount(ids, length=4, out_sharding=P("a"))


# -- types -----------------------------------------------------------------------------------------


def test_what_is_made_like_a_tracer_in_a_given_shape_is_not_cut():
    with jax.set_mesh(jax.make_mesh((2,), ("a",))):
        x = jax.device_put(np.ones((4, 4), "f4"), P("a"))
        for make in (jnp.zeros_like, jnp.ones_like, jnp.empty_like,
                     lambda x, **kw: jnp.full_like(x, 2, **kw),
                     lambda x, **kw: jax.lax.full_like(x, 2, **kw)):
            for shape, text in ((None, "4@a,4"), ((4, 4), "4,4"), ((3,), "3")):
                jaxpr = jax.make_jaxpr(lambda x: make(x, shape=shape))(x)  # noqa: B023
                assert str(jaxpr.out_avals[0]) == f"float32[{text}]"


def test_axes_of_size_one_that_types_leave_out():
    jax.config.update("jax_remove_size_one_mesh_axis_from_type", True)
    try:
        with jax.set_mesh(jax.make_mesh((2, 1), ("a", "b"))):
            x = jax.device_put(np.ones((4, 2)), P("a", "b"))
            kept = jax.jit(lambda v: jax.lax.with_sharding_constraint(2 * v, P("a", "b")))(x)
            assert kept.sharding.spec == P("a", None)
            with pytest.raises(AssertionError, match="acts as an assert"):
                jax.lax.with_sharding_constraint(x, P("b", "a"))
            rows = jax.device_put(np.ones((4, 2)), P(("a", "b")))
            out = jax.vmap(lambda v: v * 2, spmd_axis_name=("a", "b"))(rows)
            assert out.sharding.spec == P("a", None)
    finally:
        jax.config.update("jax_remove_size_one_mesh_axis_from_type", False)


def test_meshes_of_one_device_are_in_the_text():
    mesh = jax.make_mesh((1,), ("a",))
    x = np.ones((4, 2), "f")
    with jax.set_mesh(mesh):
        calls = {
            "matmul": lambda v: jnp.matmul(v, v.T, out_sharding=P("a", None)),
            "ragged": lambda v: jax.lax.ragged_dot(
                v, np.ones((2, 2, 3), "f"), np.array([3, 1]), out_sharding=P("a", None)),
            "reshard": lambda v: jax.reshard(v, P("a")),
        }
        for name, f in calls.items():
            text = jax.jit(f).lower(x).as_text()
            assert 'sdy.mesh @mesh = <["a"=1]>' in text, name
            assert 'sdy.sharding_constraint' in text, name
            np.testing.assert_allclose(jax.jit(f)(x), f(jnp.asarray(x)))
    text = jax.jit(lambda v: v + 1, in_shardings=NamedSharding(mesh, P("a"))).lower(x).as_text()
    assert '%arg0: tensor<4x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}' in text
    exported = jax.export.export(jax.jit(calls["reshard"]))
    with jax.set_mesh(mesh):
        again = jax.export.deserialize(exported(x).serialize())
    assert jax.jit(lambda v: again.call(v) + 1)(x).tolist() == (x + 1).tolist()


def test_numbers_beside_cut_arrays_are_cut_alike():
    with jax.set_mesh(jax.make_mesh((2,), ("a",))):
        x = jax.device_put(np.arange(4, dtype="f"), P("a"))
        for f, count in ((lambda v: v * 2, 2), (lambda v: jnp.maximum(v, 0), 2),
                         (lambda v: jax.lax.clamp(0., v, 1.), 3), (jnp.sin, 1), (lambda v: v**3, 1),
                         (lambda v: jax.lax.cond(True, lambda u: u, lambda u: -u, v), 2),
                         (lambda v: jax.lax.select_n(True, v, v), 1)):
            assert jax.jit(f).lower(x).as_text().count("sdy.sharding_constraint") == count
            np.testing.assert_allclose(jax.jit(f)(x), f(jnp.arange(4.)))


@pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit])
def test_types_name_the_mesh_that_arrays_lie_along(kind):
    mesh = jax.make_mesh((2,), ("a",), (kind,))
    device = jax.devices()[0]

    def named(x):
        return jax.typeof(x).sharding.mesh.axis_names

    cut = jax.device_put(np.ones(4), NamedSharding(mesh, P("a")))
    whole = jax.device_put(np.ones(4), NamedSharding(mesh, P()))
    for x in (cut, whole, 2 * cut, cut.sum(), jax.jit(jnp.sin)(whole)):
        assert named(x) == ("a",)
        assert jax.typeof(x).sharding.mesh.axis_types == (kind,)
    assert named(jnp.ones(4)) == named(np.ones(4)) == ()
    with jax.set_mesh(mesh):
        assert named(cut) == named(whole) == named(jnp.ones(4)) == ("a",)
        assert named(np.ones(4)) == named(1.) == ()
        on_one = jax.device_put(jnp.ones(4), jax.sharding.SingleDeviceSharding(device))
        assert named(on_one) == ()
        assert named(jax.device_put(jnp.ones(4), device)) == ("a",)
        assert str(jax.typeof(on_one)) == "float32[4]"
    described = jax.typeof(whole)
    assert described.shape == (4,) and described is jax.typeof(2 * whole)
    assert jax.eval_shape(jnp.sin, described).shape == (4,)
    assert jax.make_jaxpr(jnp.sin)(described).in_avals[0].place.sharding is None


def test_operands_that_are_whole_along_another_mesh():
    line = jax.make_mesh((2,), ("a",))
    other = line.update(axis_names=("z",))
    free = other.update(axis_types=AxisType.Auto)
    x = jax.device_put(np.ones(4), NamedSharding(line, P()))
    for mesh in (other, free):
        y = jax.device_put(np.ones(4), NamedSharding(mesh, P()))
        for call in (lambda: x + y, lambda: jax.jit(jnp.add)(x, y),  # noqa: B023
                     lambda: jnp.sin(y), lambda: jax.jit(lambda v: jnp.sin(v).sum())(y)):  # noqa: B023
            with jax.set_mesh(line), pytest.raises(
                    ValueError, match=r"context mesh .* should match the aval mesh"):
                call()
        with jax.set_mesh(line):
            assert jax.jit(lambda v: v)(y).sharding.mesh is mesh
            assert jax.device_put(y, P()).sharding.mesh is line
        with pytest.raises(ValueError, match="mesh for all inputs should be equal"):
            jax.jit(lambda p, q: jnp.sin(p) + q)(x, y)
        assert jnp.sin(y).sharding.mesh is mesh


@pytest.mark.parametrize("spec", [P(), P("a")])
def test_axes_known_as_of_other_types(spec):
    line = jax.make_mesh((2,), ("a",))
    auto = line.abstract_mesh.update_axis_types({"a": AxisType.Auto})
    x = jax.device_put(np.ones(4), NamedSharding(line, spec))

    def inside(f):
        def known_so(v):
            with jax.sharding.use_abstract_mesh(auto):
                return f(v)

        return known_so

    with jax.set_mesh(line):
        for f in (jnp.sin, lambda v: 2 * v, lambda v: jax.jit(jnp.sin)(v)):
            with pytest.raises(ValueError, match=r"context mesh .* should match the aval mesh"):
                jax.jit(inside(f))(x)
        out = jax.jit(inside(lambda v: jax.reshard(v, P(None))))(x)
        assert out.sharding.mesh.axis_types == (AxisType.Auto,)
        doubled = jax.jit(inside(lambda v: 2 * jax.reshard(v, P(None))))(x)
        assert out.tolist() == [1] * 4 and doubled.tolist() == [2] * 4
        assert jax.jit(inside(lambda v: v))(x).sharding.mesh is line
        made = inside(lambda v: 2 * jnp.ones(4))(x)
        assert made.sharding.mesh.axis_types == (AxisType.Auto,)
        assert jax.jit(inside(lambda v: 2 * jnp.ones(4)))(x).tolist() == [2] * 4


def test_types_are_true():
    for shape in ((), (0,), (3,)):
        assert jax.typeof(jnp.ones(shape))


@pytest.mark.parametrize("spec", [P("a", "b"), P(("a", "b"))])
def test_cumulative_results_are_cut_along_auto_axes_as_their_operands(spec):
    mesh = jax.make_mesh((4, 2), ("a", "b"), (AxisType.Auto,) * 2)
    host = np.random.RandomState(0).uniform(0.5, 1.5, (8, 8)).astype("f")
    x = jax.device_put(host, NamedSharding(mesh, spec))
    for axis in (0, 1):
        for f in (jnp.cumsum, jax.lax.cummax, jnp.fft.fft, lambda v, axis: jnp.fft.ifftn(v)):
            def call(v, f=f, axis=axis):
                return f(v, axis=axis)

            def of_computed(v, call=call):
                return call(2 * v), 2 * v - 1

            for way in (call, jax.jit(call), lambda v: jax.jit(of_computed)(v)[0] / 2):
                out = way(x)
                assert out.sharding.spec == spec, (f, axis)
                np.testing.assert_allclose(out, call(host), rtol=1e-5, atol=1e-5)
            assert jax.jit(of_computed)(x)[1].sharding.spec == spec
    slope = jax.jit(jax.grad(lambda v: jnp.cumsum(v, 1).sum()))
    np.testing.assert_allclose(slope(x), slope(host), rtol=1e-4)
    gathers = jax.jit(lambda v: jnp.cumsum(v, 0)).lower(x).compile().as_text()
    assert gathers.count("all-gather(") <= 1 and "all-reduce(" not in gathers
    each = jax.jit(jax.shard_map(lambda v: jnp.cumsum(v, 0), mesh=mesh, in_specs=P(None, "a"),
                                 out_specs=P(None, "a"), axis_names={"a"}))
    np.testing.assert_allclose(each(x), np.cumsum(host, 0), rtol=1e-4)


def test_known_values_keep_auto_cuts_that_reshard_leaves_open():
    mesh = jax.make_mesh((4, 2), ("a", "b"), (AxisType.Auto, AxisType.Explicit))
    x = jax.device_put(np.ones((8, 8)), NamedSharding(mesh, P("a", "b")))
    with jax.set_mesh(mesh):
        assert jax.reshard(x, P()).sharding.spec == P("a", None)
        assert jax.reshard(x, P("b")).sharding.spec == P("b", None)
    free = jax.make_mesh((4, 2), ("a", "b"), (AxisType.Auto,) * 2)
    x = jax.device_put(np.ones((8, 8)), NamedSharding(free, P("a")))
    assert jax.reshard(x, NamedSharding(free, P())).sharding.spec == P("a")
    made = jax.vmap(jnp.zeros_like)(jax.device_put(np.ones((8, 8)), NamedSharding(
        jax.make_mesh((4, 2), ("a", "b")), P(None, "a"))))
    assert made.shape == (8, 8) and jax.typeof(made).sharding.spec == P(None, None)


@pytest.mark.parametrize("name", ["iota", "normal", "bits", "gamma"])
def test_what_is_made_along_explicit_axes_wants_a_mesh_that_is_set(name):
    mesh = jax.make_mesh((2,), ("a",))
    for made in (MADE[name], lambda s: jax.jit(lambda: MADE[name](s))()):
        with pytest.raises(ValueError, match=r"Enter `jax\.set_mesh\(mesh\)`"):
            made(NamedSharding(mesh, P("a")))
        with jax.set_mesh(mesh):
            assert made(NamedSharding(mesh, P("a"))).sharding.spec == P("a")
        free = NamedSharding(mesh.update(axis_types=AxisType.Auto), P())
        assert made(free).shape == (4,)
