"""The mesh that is set, beside those that operands and results name."""

import numpy as np
import pytest

import pyjx as jax
from pyjx import numpy as jnp
from pyjx.core.explicit import ShardingTypeError
from pyjx.sharding import AxisType, NamedSharding
from pyjx.sharding import PartitionSpec as P

MADE = {
    "full": lambda s: jnp.full(4, 1, out_sharding=s),
    "zeros": lambda s: jnp.zeros(4, out_sharding=s),
    "arange": lambda s: jnp.arange(4, out_sharding=s),
    "array": lambda s: jnp.array([1., 2, 3, 4], out_sharding=s),
    "iota": lambda s: jax.lax.broadcasted_iota(int, (4,), 0, out_sharding=s),
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
