"""Layouts and memories of arguments and results."""

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx.experimental.layout import Format, Layout, explicit_layout, with_layout_constraint
from pyjx.experimental.shard_alike import shard_alike
from pyjx.jaxlib_api import JAXLIB_VERSION
from pyjx.sharding import NamedSharding, SingleDeviceSharding
from pyjx.sharding import PartitionSpec as P

COLUMNS = Layout((1, 0))


@pytest.fixture
def x():
    return jnp.arange(6.).reshape(2, 3)


def test_formats(x):
    assert x.format == Format(Layout((0, 1), (), 0), x.sharding)
    assert repr(COLUMNS) == ("Layout(major_to_minor=(1, 0), tiling=None, "
                             "sub_byte_element_size_in_bits=0)")
    assert COLUMNS.update(major_to_minor=(0, 1)) == Layout((0, 1))
    assert Layout((0, 1), tiling=((8, 128),)).text() == "{1,0:T(8,128)}"
    struct = jax.ShapeDtypeStruct((2, 3), "float32", sharding=Format(COLUMNS, x.sharding))
    assert struct.format == Format(COLUMNS, x.sharding)
    with pytest.raises(ValueError, match="Sharding has to be concrete when layout is of type"):
        Format(COLUMNS)
    with pytest.raises(TypeError, match="Invalid value received for the layout argument"):
        Format(3)
    with pytest.raises(ValueError, match="Length of major_to_minor and the rank"):
        COLUMNS.check_compatible_aval((2,))


def test_results_and_arguments_in_another_layout(x):
    f = jax.jit(lambda x: x * 2, out_shardings=Format(COLUMNS, x.sharding))
    for _ in range(3):
        y = f(x)
        assert y.format.layout.major_to_minor == (1, 0)
        np.testing.assert_array_equal(y, 2 * np.asarray(x))
    plain = jax.jit(lambda x: x + 1)
    for given in (x, y, x, y, y):  # each by Python, then by C++
        out = plain(given)
        assert out.format.layout.major_to_minor == (0, 1)
        np.testing.assert_array_equal(out, np.asarray(given) + 1)
    np.testing.assert_array_equal(y + y, 4 * np.asarray(x))
    np.testing.assert_array_equal(jax.device_put(y, x.format), y)
    wants = jax.jit(lambda x: x + 1, in_shardings=Format(COLUMNS, x.sharding))
    for given in (x, y, np.asarray(x), jax.device_put(x, y.format)):
        np.testing.assert_array_equal(wants(given), np.asarray(given) + 1)
    with pytest.raises(ValueError, match="Layout passed to jit does not match the layout on the "):
        wants(jax.device_put(x, x.sharding))
    with pytest.raises(ValueError, match="incompatible with its layout annotation"):
        jax.jit(lambda x: x, out_shardings=Format(Layout((1, 0, 2)), x.sharding))(x)


def test_layouts_that_xla_chooses(x):
    auto = Format(Layout.AUTO)
    compiled = jax.jit(lambda x: x @ x.T, in_shardings=auto, out_shardings=auto).lower(x).compile()
    (given,), _ = compiled.input_formats
    np.testing.assert_array_equal(compiled(jax.device_put(x, given)), x @ x.T)
    assert isinstance(compiled.output_formats.layout, Layout)


def test_constraints(x):
    assert with_layout_constraint(x, COLUMNS).format.layout.major_to_minor == (1, 0)
    f = jax.jit(lambda x: with_layout_constraint(x * 2, COLUMNS))
    assert "@LayoutConstraint" in f.lower(x).as_text()
    np.testing.assert_array_equal(f(x), 2 * np.asarray(x))
    np.testing.assert_array_equal(jax.vmap(f)(jnp.stack([x, x]))[1], 2 * np.asarray(x))
    np.testing.assert_array_equal(jax.grad(lambda x: f(x).sum())(x), np.full((2, 3), 2.))
    np.testing.assert_array_equal(
        explicit_layout(lambda x: x * 2, in_layouts=COLUMNS)(x), 2 * np.asarray(x))


def test_over_a_mesh(mesh):
    rows = NamedSharding(mesh, P("x", None))
    x = jax.device_put(jnp.arange(64.).reshape(8, 8), Format(COLUMNS, rows))
    assert x.format.layout.major_to_minor == (1, 0) and x.sharding == rows
    np.testing.assert_array_equal(x, np.arange(64.).reshape(8, 8))
    np.testing.assert_array_equal(jax.jit(lambda x: x * 2)(x), 2 * np.asarray(x))


@pytest.mark.skipif(JAXLIB_VERSION < (0, 8), reason="no such call on the CPU there")
def test_memories(mesh):
    host = jax.memory.Space.Host
    one = SingleDeviceSharding(jax.devices()[0], memory_kind="pinned_host")
    f = jax.jit(lambda x: (jax.device_put(x, host), x * 2))
    for _ in range(2):
        there, here = f(jnp.ones(3))
        assert there.sharding == one and there.tolist() == [1, 1, 1]
        assert here.sharding.memory_kind == "device"
    assert (there * 2).tolist() == [2, 2, 2]
    assert jax.jit(lambda x: x, out_shardings=one)(1.).sharding == one
    spread = NamedSharding(mesh, P("x"), memory_kind="pinned_host")
    x = jax.jit(lambda x: x * 2, out_shardings=spread)(jnp.ones(8))
    assert x.sharding == spread and x.tolist() == [2] * 8
    assert jax.jit(lambda x: x + 1)(x).tolist() == [3] * 8
    back = jax.device_put(x, NamedSharding(mesh, P("x")))
    assert back.sharding.memory_kind == "device" and back.tolist() == [2] * 8


def test_alike(mesh):
    a = jax.device_put(jnp.ones((8, 8)), NamedSharding(mesh, P("x")))
    b = jnp.ones((8, 8))
    _, y = jax.jit(shard_alike)(a, b)
    assert y.sharding.is_equivalent_to(a.sharding, 2)
    _, y = shard_alike(a, b)
    assert y.sharding == a.sharding
    assert jax.grad(lambda b: shard_alike(a, b)[1].sum())(b).tolist() == np.ones((8, 8)).tolist()
    with pytest.raises(ValueError, match="leaves shapes of `x` and `y` should match"):
        shard_alike(a, b[0])


def test_deleted_arrays(x):
    x.delete()
    with pytest.raises(RuntimeError, match="Array has been deleted"):
        jax.jit(lambda x: x + 1)(x)
    with pytest.raises(RuntimeError, match="Array has been deleted"):
        _ = x.format


def test_donated_with_a_layout_and_an_ordered_effect(x):
    f = jax.jit(lambda a, b: (jax.debug.print("ordered", ordered=True), a + 1, b * 2)[1:],
                donate_argnums=1, out_shardings=Format(COLUMNS, x.sharding))
    one, two = f(x, jnp.ones((2, 3)))  # XLA gives programs with tokens the usual layouts
    np.testing.assert_array_equal(one, np.asarray(x) + 1)
    assert two.tolist() == [[2, 2, 2]] * 2
    assert 'mhlo.layout_mode = "{0,1}"' in f.lower(x, x).as_text()


def test_constraints_by_formats(mesh):
    columns = Format(Layout((1, 0)), NamedSharding(mesh, P(mesh.axis_names[0])))
    x = jnp.arange(32.0).reshape(8, 4)
    out = jax.lax.with_sharding_constraint(x, columns)
    assert out.sharding == columns.sharding and out.format.layout.major_to_minor == (1, 0)
    jitted = jax.jit(lambda x: 2 * jax.lax.with_sharding_constraint(x, columns))
    np.testing.assert_array_equal(jitted(x), 2 * x)
    assert "LayoutConstraint" in jitted.lower(x).as_text()
    mapped = jax.vmap(lambda x: jax.lax.with_sharding_constraint(x, columns))
    np.testing.assert_array_equal(jax.jit(mapped)(x[None]), x[None])


@pytest.mark.parametrize(("call", "message"), [
    (lambda x, s: jax.jit(jnp.sin, in_shardings=Layout.AUTO), "does not accept device-local layo"),
    (lambda x, s: jax.jit(jnp.sin, out_shardings=(COLUMNS,)), "does not accept device-local layo"),
    (lambda x, s: jax.lax.with_sharding_constraint(x, COLUMNS), "does not accept device-local"),
    (lambda x, s: with_layout_constraint(x, Layout.AUTO), "must be of type `Layout`"),
    (lambda x, s: with_layout_constraint(x, None), "must be of type `Layout`"),
    (lambda x, s: jax.jit(lambda x: jax.lax.with_sharding_constraint(x, Format(COLUMNS, s)))(x[0]),
     "incompatible with its layout annotation"),
    (lambda x, s: jax.jit(jnp.sin, donate_argnums=0, in_shardings=Format(Layout.AUTO))(x),
     r"set the \*\*output layout\*\*"),
    (lambda x, s: jax.jit(jnp.sin, donate_argnums=0, out_shardings=Format(Layout.AUTO))(x),
     r"set the \*\*input layout\*\*"),
])
def test_where_layouts_cannot_be(x, call, message):
    with pytest.raises(ValueError, match=message):
        call(x, x.sharding)
