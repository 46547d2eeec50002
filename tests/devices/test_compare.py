"""`inspect.compare` of programs of devices with the same ones where meshes have one device."""

import linecache

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import inspect, lax
from pyjx.parallel.mapping import on_one_device
from pyjx.sharding import NamedSharding
from pyjx.sharding import PartitionSpec as P

W = np.random.default_rng(0).standard_normal((4, 4)).astype("f4")
X = np.random.default_rng(1).standard_normal((8, 4)).astype("f4")


def counted_twice(w, x):
    s = lax.psum(jnp.tanh(x @ w).sum(0), "x")
    return lax.psum(jnp.sin(s), "x") * 2  # HERE


def never_summed(w, x):
    return jnp.tanh(x @ w).sum(0)  # HERE


def a_mean_of_parts(w, x):
    return lax.psum(jnp.tanh(x @ w).mean(0), "x")  # HERE


def in_a_loop(w, x):
    def step(c, i):
        s = lax.psum(jnp.tanh(x @ w + c).sum(0), "x")
        s = jnp.where(i == 2, lax.psum(s, "x"), s)  # HERE
        return s * 0.1, None
    return lax.scan(step, jnp.zeros(4), jnp.arange(4))[0]


def nested(w, x):
    def inner(h):
        return lax.psum(lax.psum(h.sum(), "y"), "y")  # HERE

    f = jax.shard_map(inner, in_specs=P(None, "y"), out_specs=P(), axis_names={"y"})
    return lax.psum(f(jnp.tanh(x @ w)), "x")


def right(w, x):
    h = jnp.tanh(x @ w) + (lax.axis_index("x") * len(x) + jnp.arange(len(x)))[:, None]
    whole = lax.all_gather(lax.pmax(h, "y"), "x", tiled=True)
    return whole.sum() + lax.psum(jnp.exp(h - lax.pmax(h.max(0), "x")).sum(0), "x")


def mapped(fun, mesh):
    names = {"axis_names": {"x"}} if fun is nested else {}
    return jax.shard_map(fun, mesh=mesh, in_specs=(P(), P("x")), out_specs=P(), **names,
                         check_vma=fun not in (never_summed, right))


@pytest.mark.parametrize("wrap", [lambda f: f, lambda f: jax.jit(lambda w, x: (
    f(w, lax.with_sharding_constraint(x * 2, P("x", "y"))) ** 2).sum()),
    lambda f: jax.grad(lambda w, x: (f(w, x) ** 2).sum())], ids=["plain", "jit", "grad"])
@pytest.mark.parametrize(("fun", "operation", "steps"), [
    (counted_twice, "psum_invariant", ["shard_map"]),
    (never_summed, "reduce_sum", ["result 0 of shard_map, which out_specs takes for P()"]),
    (a_mean_of_parts, "div", ["shard_map"]),
    (in_a_loop, "psum_invariant", ["shard_map", "iteration 2 of scan"]),
    (nested, "psum_invariant", ["shard_map", "shard_map"])])
def test_sums_that_are_wrong(fun, operation, steps, wrap, mesh):
    with jax.set_mesh(mesh):
        x = jax.device_put(X, NamedSharding(mesh, P("x")))
        found = inspect.compare(wrap(mapped(fun, mesh)), W, x, b="whole")
    assert not found and (found.first.operation, [s.text for s in found.first.steps]) == (
        operation, steps), found
    assert "HERE" in linecache.getline(__file__, found.first.line.start_line)
    assert "sharded and whole differ, first in" in str(found)


def test_what_is_right(mesh):
    assert inspect.compare(mapped(right, mesh), W, X, b="whole")
    assert "shard_map" in inspect.compare(mapped(right, mesh), W, X).whole  # is not looked into
    x = jax.device_put(X, NamedSharding(mesh, P("x", "y")))
    assert inspect.compare(jax.jit(lambda x: (jnp.tanh(x) @ W).sum(0), out_shardings=NamedSharding(
        mesh, P("x"))), x, b="whole")


def in_parts(fun, mesh, *axes):
    return jax.shard_map(fun, mesh=mesh, in_specs=P("x"), out_specs=P(*axes), check_vma=False)


def test_what_is_no_number_on_one_side(mesh):
    x = np.array([0, 0, 1, 1, 1, 1, 1, 1], "f4")
    found = inspect.compare(in_parts(lambda x: x / x.max(), mesh, "x"), x, b="whole")
    assert not found and found.first.found > found.first.allowed, found
    found = inspect.compare(in_parts(lambda x: jnp.log(x * 0 + lax.axis_index("x")) + (
        lax.axis_index("x") == 0) * np.inf, mesh, "x"), x + 1, b="whole")
    assert not found and found.first is not None, found
    assert inspect.compare(in_parts(jnp.log, mesh, "x"), x, b="whole")  # it is on both
    found = inspect.compare(in_parts(lambda x: lax.psum(x, "x"), mesh), x, b="whole")
    assert not found and "result 0 by inf" in str(found)  # the results have other shapes


def test_integers_that_are_counted_twice(mesh):
    def count(x):
        return lax.psum(lax.psum((x > 0).sum()[None], "x"), "x")

    found = inspect.compare(in_parts(count, mesh), np.arange(8.0), b="whole")
    assert not found and "differ: result 0 by 21" in str(found) and "look at integers" in str(found)


def test_large_arguments_hide_nothing_of_devices(mesh):
    found = inspect.compare(lambda x, m: (in_parts(lambda x: lax.psum(lax.psum(
        x.sum(), "x"), "x"), mesh)(x), m), np.arange(8, dtype="f4"), np.float32(-1e9),
        b="whole")
    assert not found and found.first.operation == "psum", found


def test_sums_over_devices_that_cancel_agree(mesh):
    x = np.linspace(-1, 1, 800, dtype="f4") * np.float32(0.1)
    found = inspect.compare(in_parts(lambda x: lax.psum(jnp.tanh(x).sum(), "x"), mesh), x,
                            b="whole")
    assert found, found


def test_explicit_axes_stay_so(mesh):
    mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(jax.sharding.AxisType.Explicit,) * 2)
    for each in (mesh, mesh.abstract_mesh):
        assert on_one_device(each).axis_types == mesh.axis_types
    with jax.set_mesh(mesh):
        assert inspect.compare(lambda x: jax.sharding.reshard(x * 2, P(None, "y")).sum(0), X,
                               b="whole")


def test_programs_that_are_none_for_one_device(mesh):
    def asks(x):
        if jax.sharding.get_abstract_mesh().size == 1:
            raise KeyError("one")
        return x

    with jax.set_mesh(mesh), pytest.raises(ValueError, match="no program for one device: 'one'"):
        inspect.compare(asks, X, b="whole")


def test_programs_that_know_the_size_of_parts(mesh):
    with pytest.raises(ValueError, match="is no program for one device, as it knows how large"):
        inspect.compare(mapped(lambda w, x: lax.psum(x + jnp.ones((2, 1)), "x"), mesh), W, X,
                        b="whole")
