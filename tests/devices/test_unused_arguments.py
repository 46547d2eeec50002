"""Arguments that a program does not use, which decide nothing of where it runs."""

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax
from pyjx.sharding import AxisType, NamedSharding, SingleDeviceSharding
from pyjx.sharding import PartitionSpec as P


@pytest.mark.parametrize("away", ["another device", "a mesh", "uncommitted", "a number"])
def test_a_program_runs_where_what_it_uses_is(away):
    """Also with the first argument away, through loops and branches, ahead of time, and in the
    second call, by C++."""
    devices, mesh = jax.devices(), jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))
    cut = NamedSharding(mesh, P("x"))
    x = {"another device": jax.device_put(jnp.ones(8), devices[1]), "uncommitted": jnp.ones(8),
         "a mesh": jax.device_put(jnp.ones(8), cut), "a number": 1.0}[away]
    y = jax.device_put(jnp.ones(8), devices[2])
    functions = (
        lambda x, y: y * 2, lambda x, y: jax.jit(lambda x, y: y)(x, y) * 2,
        lambda x, y: lax.scan(lambda c, _: (c, None), (x, y), length=2)[0][1] * 2,
        lambda x, y: lax.cond(y[0] > 5, lambda x, y: y, lambda x, y: y * 2, x, y))
    for f in map(jax.jit, functions):
        for call in (f, f, lambda x, y, f=f: f.lower(x, y).compile()(x, y)):
            out = call(x, y)
            assert out.devices() == {devices[2]} and out.committed
            np.testing.assert_array_equal(out, 2.0)
    out = jax.jit(lambda x, y: lax.with_sharding_constraint(y, cut))(x, jnp.ones(8))
    assert out.sharding == cut
    if away in ("another device", "a mesh"):
        with pytest.raises(ValueError, match="incompatible devices"):
            jax.jit(lambda x, y: y * 2, keep_unused=True)(x, y)
        with pytest.raises(ValueError, match="incompatible devices"):
            jax.jit(lambda x, y: (x + 1, y))(x, y)


def test_results_of_no_argument_are_not_committed():
    x = jax.device_put(jnp.ones(8), jax.devices()[1])
    cut = NamedSharding(jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,)), P("x"))
    for given in (x, jax.device_put(x, cut)):
        for f in (jnp.zeros_like, jax.grad(lambda x: x.sum()), lambda x: jnp.ones(x.shape)):
            for out in (jax.jit(f)(given), jax.jit(f)(given)):
                assert out.devices() == {jax.devices()[0]} and not out.committed
                assert jax.jit(lambda x: x + 1, in_shardings=cut)(out).sharding == cut
        kept = jax.jit(jnp.zeros_like, keep_unused=True)(given)
        assert kept.devices() == given.devices() and kept.committed


def test_what_was_asked_of_them_decides_nothing_either():
    devices = jax.devices()
    cut = NamedSharding(jax.make_mesh((8,), ("x",)), P("x"))
    made = jax.jit(lambda x: jnp.zeros(x.shape), in_shardings=cut)(jnp.arange(8.0))
    assert made.devices() == {devices[0]} and not made.committed
    x, u = jax.device_put(jnp.ones(2), devices[3]), jax.device_put(jnp.arange(8.0), cut)
    assert jax.jit(lambda x, u: x + 1, in_shardings=(None, cut))(x, u).devices() == {devices[3]}
    there = jax.jit(lambda x, u: x + 1, in_shardings=(SingleDeviceSharding(devices[2]), cut))
    assert there(jnp.ones(2), u).devices() == {devices[2]}
    compiled = jax.jit(lambda x, u: x + 1).lower(u, u).compile()
    assert compiled.input_shardings[0] == (cut, None)
    assert compiled.input_formats[0][1].sharding is None
    assert compiled(u, u).sharding == cut
