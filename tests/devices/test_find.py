"""`inspect.find` in programs of devices: which one made the first bad value."""

import linecache

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import inspect, lax
from pyjx.sharding import NamedSharding
from pyjx.sharding import PartitionSpec as P

X = jnp.ones((8, 4))


def on_one(w, x):
    i = lax.axis_index("x")
    return lax.psum(jnp.log(jnp.where(i == 2, -x, x)).sum() * w, ("x", "y"))  # HERE


def in_a_scan(w, x):
    def body(c, j):
        bad = (lax.axis_index("x") == 3) & (j == 7)
        c = c + jnp.log(jnp.where(bad, -x, x)).sum()  # HERE
        return lax.psum(c, "x") * 1e-3, None

    start = lax.pcast(w.sum(), ("y",), to="varying")
    return lax.psum(lax.scan(body, start, jnp.arange(20))[0], "y") * w


def in_a_branch(w, x):
    i = lax.axis_index("x")
    y = lax.cond(i == 1, lambda x: jnp.sqrt(-x), lambda x: x, x)  # HERE
    return lax.psum(y.sum(), ("x", "y")) * w


@pytest.mark.parametrize(("fun", "operation", "device", "steps"), [
    (on_one, "log", "x=2, y=0", ["shard_map"]),
    (in_a_scan, "log", "x=3, y=0", ["shard_map", "iteration 7 of scan"]),
    (in_a_branch, "sqrt", "x=1, y=0", ["shard_map", "branch 1 of cond"])])
@pytest.mark.parametrize("derivative", [False, True])
def test_which_device(fun, operation, device, steps, derivative, mesh):
    mapped = jax.shard_map(fun, mesh=mesh, in_specs=(P(), P("x", "y")), out_specs=P())
    args = jnp.ones(2), X
    found = inspect.find(jax.value_and_grad(lambda *a: mapped(*a).sum()) if derivative else mapped,
                         *args)
    assert (found.operation, found.device, [s.text for s in found.steps]) == (
        operation, device, steps)
    assert "HERE" in linecache.getline(__file__, found.line.start_line)


def test_the_device_of_an_element(mesh):
    x = jax.device_put(X.at[6, 3].set(-1), NamedSharding(mesh, P("x", "y")))
    found = inspect.find(lambda x: jnp.log(x) * 2, x)
    assert found.element == (6, 3) and found.device == str(jax.devices()[7])


def test_the_operation_of_one_of_several_elements(mesh):
    def local(x):
        return jnp.sin(x) / x + (x - 7) * jnp.log(jnp.abs(x - 7))

    mapped = jax.shard_map(local, mesh=mesh, in_specs=P("y", "x"), out_specs=P("y", "x"))
    x = jnp.array([jnp.arange(8.0), jnp.arange(8.0)[::-1]])
    for row, column in np.ndindex(2, 8):
        found = inspect.find(lambda x, at=(row, column): mapped(x)[at], x)
        operation = {0: "div", 7: "mul"}.get(int(x[row, column]))
        assert (found.operation, found.device) == (
            operation, operation and f"x={column // 2}, y={row}"), found
    doubled = jax.shard_map(lambda x: x * 2, mesh=mesh, in_specs=P(("y", "x")),
                            out_specs=P(("y", "x")))
    x = jnp.ones(8).at[1].set(jnp.nan).at[5].set(jnp.nan)
    for i in (1, 5):
        assert inspect.find(lambda x, i=i: doubled(x)[i], x).element == (i,)


def test_in_pmap():
    def f(x):
        return jnp.log(x) * 2  # HERE

    x = np.arange(8.0)
    x[5] = -1
    found = inspect.find(jax.pmap(f), x)
    assert found.operation == "log" and "5" in found.device
    with jax.debug_nans(True), pytest.raises(FloatingPointError, match="computation, in log"):
        jax.pmap(f)(x)


def test_programs_of_devices_within_those_of_devices():
    def inner(x):
        return lax.psum(jnp.log(x - 3), "y")  # HERE

    def outer(x):
        f = jax.shard_map(inner, in_specs=P("y"), out_specs=P(), axis_names={"y"})
        return lax.psum(lax.scan(lambda c, _: (c, f(c)), x, None, 2)[1].sum(0), "x")

    mesh = jax.sharding.Mesh(np.array(jax.devices()).reshape(4, 2), ("x", "y"))
    f = jax.shard_map(outer, mesh=mesh, in_specs=P("x"), out_specs=P(), axis_names={"x"})
    found = jax.inspect.find(f, jnp.full(16, 10.0).at[13].set(1))
    assert (found.operation, found.device, found.element) == ("log", "x=3, y=0", (1,)), found
    assert [step.text for step in found.steps] == [
        "shard_map", "iteration 0 of scan", "shard_map"]
    assert "HERE" in linecache.getline(__file__, found.line.start_line)


def test_what_goes_from_device_to_device():
    def ring(x):
        def step(c, t):
            c = lax.ppermute(c, "x", [(i, (i + 1) % 4) for i in range(4)])
            bad = (lax.axis_index("x") == 2) & (t == 3)
            return c + jnp.where(bad, jnp.sqrt(-c - 1), c), None  # HERE

        return lax.scan(step, x, jnp.arange(6))[0]

    mesh = jax.sharding.Mesh(np.array(jax.devices()).reshape(4, 2), ("x", "y"))
    f = jax.shard_map(ring, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)
    found = jax.inspect.find(f, jnp.arange(8.0))
    assert (found.operation, found.device) == ("sqrt", "x=2, y=0"), found
    assert [step.text for step in found.steps] == ["shard_map", "iteration 3 of scan"]
