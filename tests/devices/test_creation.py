"""Arrays that are made on a mesh: where they lie, and what their specs say."""

import numpy as np
import pytest

import pyjx as jax
from pyjx import lax
from pyjx import numpy as jnp
from pyjx.errors import ShardingTypeError
from pyjx.experimental.layout import Format, Layout
from pyjx.sharding import AxisType, NamedSharding
from pyjx.sharding import PartitionSpec as P

AUTO, EXPLICIT = AxisType.Auto, AxisType.Explicit
X = np.ones((8, 4), np.float32)
LIKE = {
    "zeros_like": jnp.zeros_like, "ones_like": jnp.ones_like, "empty_like": jnp.empty_like,
    "full_like": lambda x, **kw: jnp.full_like(x, 2, **kw),
    "full_like of an array": lambda x, **kw: jnp.full_like(x, np.float32(2), **kw),
    "lax.full_like": lambda x, **kw: lax.full_like(x, 2, **kw),
}


def line(kind):
    return jax.make_mesh((8,), ("x",), (kind,))


@pytest.mark.parametrize("kind", [AUTO, EXPLICIT])
@pytest.mark.parametrize("make", LIKE)
def test_like_an_array_with_its_spec(make, kind):
    x = jax.device_put(X, NamedSharding(line(kind), P("x")))
    for out in (LIKE[make](x), LIKE[make](x, shape=(8, 4))):
        assert out.sharding == x.sharding
        assert out.sharding.spec == P("x")
    assert LIKE[make](x, shape=(3,)).sharding.device_set == {jax.devices()[0]}


def test_filled_with_an_array_lies_as_that_does():
    cut = jax.device_put(X, NamedSharding(line(AUTO), P("x")))
    there = jax.device_put(X[0], jax.devices()[2])
    assert jnp.full_like(cut, there).sharding == there.sharding
    assert jnp.full_like(cut, jnp.ones(4), shape=(3, 4)).devices() == {jax.devices()[0]}
    assert jnp.full_like(jnp.ones((8, 4)), cut).sharding == cut.sharding


@pytest.mark.parametrize("make", LIKE)
def test_like_an_array_along_axes_of_both_kinds(make):
    mesh = jax.make_mesh((4, 2), ("x", "y"), (EXPLICIT, AUTO))
    x = jax.device_put(X, NamedSharding(mesh, P("x", "y")))
    assert LIKE[make](x).sharding == x.sharding


@pytest.mark.parametrize("kind", [AUTO, EXPLICIT])
def test_all_devices_of_a_mesh_that_is_set_have_what_is_made(kind):
    mesh = line(kind)
    with jax.set_mesh(mesh):
        for out in (jnp.zeros((2, 3)), jnp.ones(3), jnp.full((2,), 3.0), jnp.array(X),
                    jnp.asarray(5), jnp.array([1, 2]), jnp.arange(5), jnp.eye(3)):
            assert out.sharding.mesh == mesh
            assert out.is_fully_replicated
            assert out.committed
        assert jnp.zeros((2, 3)).sharding.spec == (P() if kind is AUTO else P(None, None))
        assert jnp.array(X).sharding.spec == P()
    assert not jnp.zeros(3).committed


def test_devices_are_given_with_their_spec():
    sharding = NamedSharding(line(EXPLICIT), P("x"))
    for out in (jnp.zeros((8, 4), device=sharding),
                lax.full((8, 4), np.float32(1), sharding=sharding)):
        assert out.sharding.spec == P("x")
        assert str(jax.typeof(out)) == "float32[8@x,4]"


def test_polyval_where_points_are_cut():
    x = jax.device_put(X, NamedSharding(line(EXPLICIT), P("x")))
    out = jnp.polyval(jnp.arange(3.0), x)
    assert str(jax.typeof(out)) == "float32[8@x,4]"
    np.testing.assert_array_equal(out, jnp.polyval(jnp.arange(3.0), X))


def test_results_on_meshes_of_both_kinds_stay_cut_along_axes_that_are_auto():
    mesh = jax.make_mesh((4, 2), ("x", "y"), (EXPLICIT, AUTO))
    x = jax.device_put(X, NamedSharding(mesh, P(("x", "y"))))
    with jax.set_mesh(mesh):
        for out in (x * 2, jnp.sin(x).sum(1), x @ jnp.ones((4, 3))):
            assert out.sharding.spec[0] == ("x", "y")
        assert x[None].sharding.spec == P(None, ("x", "y"), None)


@pytest.mark.parametrize("spec, found", [(P("x", "y"), P("x", "y")),
                                         (P("y", "x"), P(None, ("x", "y")))])
def test_constraints_along_auto_axes_leave_the_others_in_types(spec, found):
    mesh = jax.make_mesh((4, 2), ("x", "y"), (EXPLICIT, AUTO))
    x = jax.device_put(np.ones((8, 8), np.float32), NamedSharding(mesh, spec))
    with jax.set_mesh(mesh):
        out = jax.jit(lambda x: lax.with_sharding_constraint(x, P(None, "y")))(x)
    assert jax.typeof(out) == jax.typeof(x)
    assert out.sharding.spec == found


def test_keys_show_their_parts():
    keys = jax.random.split(jax.random.key(0), 8)
    cut = jax.device_put(keys, NamedSharding(line(AUTO), P("x")))
    for shards in (cut.addressable_shards, cut.global_shards):
        assert [s.device for s in shards] == jax.devices()
        assert shards[3].index == (slice(3, 4, None),)
        assert shards[3].data.dtype == keys.dtype
        np.testing.assert_array_equal(jax.random.key_data(shards[3].data),
                                      jax.random.key_data(keys[3:4]))


@pytest.mark.parametrize("kind", [AUTO, EXPLICIT])
def test_rows_of_what_is_cut(kind):
    x = jax.device_put(np.arange(32, dtype=np.float32).reshape(8, 4),
                       NamedSharding(line(kind), P("x")))
    for rows in (list(x), list(reversed(x))[::-1]):
        np.testing.assert_array_equal(rows, x)
        assert rows[0].devices() == {jax.devices()[0]} and not rows[0].committed
    assert sum([row + 1 for row in x]).shape == (4,)  # with one another, and with other arrays
    if kind is EXPLICIT:
        with pytest.raises(ShardingTypeError, match=r"Call jax\.reshard .*get\(out_sharding=\)"):
            x[0]


# -- on a device -----------------------------------------------------------------------------------

CONVERTED = {
    "array": lambda x, d: jnp.array(x, device=d), "asarray": lambda x, d: jnp.asarray(x, device=d),
    "array of a list": lambda x, d: jnp.array([x] * 8, device=d),
    "asarray of a dtype": lambda x, d: jnp.asarray(x, "int8", device=d),
    "astype": lambda x, d: x.astype("int8", device=d),
    "astype bool": lambda x, d: jnp.astype(x, bool, device=d),
}


@pytest.mark.parametrize("name", CONVERTED)
def test_what_was_put_somewhere_is_not_moved(name):
    first, second = jax.devices()[1:3]
    pair = NamedSharding(line(AUTO), P("x"))
    x = jnp.arange(8.)
    for place, others in ((first, (second, pair)), (pair, (first,))):
        there = jax.device_put(x, place)
        assert CONVERTED[name](there, place).devices() == there.devices()
        for other in others:
            with pytest.raises(ValueError, match="Received incompatible devices"):
                CONVERTED[name](there, other)
    assert CONVERTED[name](x, second).devices() == {second}


# -- of parts --------------------------------------------------------------------------------------

ROWS = NamedSharding(jax.make_mesh((2,), ("x",), (AUTO,)), P("x")) if len(jax.devices()) > 1 else \
    None


def parts(devices=(0, 1), dtype="float32"):
    return [jax.device_put(np.ones(2, dtype), jax.devices()[i]) for i in devices]


def from_parts(*args, **kwargs):
    return jax.make_array_from_single_device_arrays((4,), ROWS, *args, **kwargs)


def from_callback(f, sharding=None, **kwargs):
    return jax.make_array_from_callback((4,), sharding or ROWS, f, **kwargs)


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda: from_parts(parts(), dtype=np.int32), ValueError, "=int32 and shard dtype=float32"),
    (lambda: from_parts([]), ValueError, "`dtype` must be provided via the `dtype` argument"),
    (lambda: from_parts(parts((1, 2))), ValueError, r"devices \{0\} .* devices \{2\}"),
    (lambda: from_parts({"a": 1}), TypeError, "must be a list or tuple"),
    (lambda: from_parts([1., 2.]), TypeError, "Unsupported type for elements in `arrays`"),
    (lambda: jax.make_array_from_single_device_arrays((4,), P("x"), parts()), TypeError,
     "should be an instance of `jax.sharding.Sharding`"),
    (lambda: jax.make_array_from_single_device_arrays(
        (4,), NamedSharding(ROWS.mesh.abstract_mesh, P("x")), parts()), ValueError,
     "not implemented for `jax.sharding.AbstractMesh`"),
    (lambda: from_callback(lambda i: X[:, 0], P("x")), TypeError, "should be an instance of"),
    (lambda: from_callback(lambda i: X[:2, 0], jax.devices()[0]), TypeError, "should be an insta"),
    (lambda: from_callback(lambda i: X[:2, 0].astype(object)), TypeError, "not a valid JAX array"),
    (lambda: from_callback(lambda i: X[:2, 0], Format(Layout.AUTO, ROWS)), TypeError, "Layout.A"),
    (lambda: from_callback(lambda i: X[:2, 0], NamedSharding(ROWS.mesh, P(None, "x"))), ValueError,
     "of rank at least 2"),
    (lambda: from_callback(lambda i: jax.random.key(0), dtype="uint32"), ValueError,
     "dtype=uint32 and shard dtype=key<fry>"),
    (lambda: from_callback(lambda i: X[:2, 0], dtype=jax.random.key(0).dtype), ValueError,
     "dtype=key<fry> and shard dtype=float32"),
])
def test_parts_that_do_not_fit(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_keys_of_a_callback():
    keys = jax.random.split(jax.random.key(0), 4)
    out = from_callback(lambda i: keys[i])
    assert out.dtype == keys.dtype and out.sharding.is_equivalent_to(ROWS, 1)
    assert (jax.random.key_data(out) == jax.random.key_data(keys)).all()
    one = jax.make_array_from_callback((), ROWS.update(spec=P()), lambda i: keys[0])
    assert one.shape == () and len(one.sharding.device_set) == 2
    local = jax.make_array_from_process_local_data(ROWS, keys)
    assert (jax.random.key_data(local) == jax.random.key_data(keys)).all()


def test_parts_in_a_layout():
    sharding = ROWS.update(spec=P(None, "x"))
    columns = Format(Layout((1, 0)), sharding)
    for out in (jax.make_array_from_callback((8, 4), columns, lambda i: X[i]),
                jax.make_array_from_process_local_data(columns, X)):
        assert out.format.layout.major_to_minor == (1, 0) and out.sharding == sharding
        np.testing.assert_array_equal(out, X)
    there = jax.make_array_from_process_local_data(jax.devices()[3], X)
    assert there.devices() == {jax.devices()[3]}
