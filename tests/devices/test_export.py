"""Exported programs over meshes."""

import subprocess
import sys

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import export, lax
from pyjx.sharding import Mesh, NamedSharding
from pyjx.sharding import PartitionSpec as P
from tests.files import cases
from tests.files.test_artifacts import MADE, needs_jaxlib

X = np.random.default_rng(0).normal(size=(8, 4)).astype("f4")
TYPE = jax.ShapeDtypeStruct(X.shape, X.dtype)


@pytest.fixture
def exported(mesh):
    f = jax.jit(lambda x: jnp.sin(x).sum(0), in_shardings=NamedSharding(mesh, P("x", "y")),
                out_shardings=NamedSharding(mesh, P("y")))
    return export.deserialize(export.export(f)(TYPE).serialize(vjp_order=1))


def close(a, b):
    np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)


def test_shardings_come_along(exported, mesh):
    assert exported.nr_devices == 8
    assert exported.in_shardings_jax(mesh) == (NamedSharding(mesh, P("x", "y")),)
    assert exported.out_shardings_jax(mesh) == (NamedSharding(mesh, P("y")),)
    x = jax.device_put(X, NamedSharding(mesh, P("y")))
    for call in (exported.call, jax.jit(exported.call)):
        out = call(x)
        close(out, np.sin(X).sum(0))
        assert out.sharding.spec == P("y")


def test_derivatives_come_along(exported, mesh):
    x = jax.device_put(X, NamedSharding(mesh, P()))
    out = jax.grad(lambda x: exported.call(x).sum())(x)
    close(out, np.cos(X))
    assert out.sharding.spec == P("x", "y")


def test_a_part_of_a_program_over_another_mesh(exported):
    line = Mesh(np.array(jax.devices()), ("i",))
    f = jax.jit(lambda x: 2 * exported.call(x + 1), in_shardings=NamedSharding(line, P("i")))
    close(f(X), 2 * np.sin(X + 1).sum(0))


@pytest.mark.parametrize("count", [1, 4])
def test_other_numbers_of_devices_are_refused(exported, count):
    there = NamedSharding(Mesh(np.array(jax.devices()[:count]), ("i",)), P())
    with pytest.raises(ValueError, match="was exported for 8 devices and is called in a context "
                                         f"with {count} devices, which is not allowed"):
        exported.call(jax.device_put(X, there))


def test_what_one_device_does_is_called_on_many(mesh):
    one = export.export(jax.jit(jnp.sin))(TYPE)
    out = one.call(jax.device_put(X, NamedSharding(mesh, P("x"))))
    close(out, np.sin(X))


def test_shard_map_constraints_and_platforms(mesh):
    f = jax.shard_map(lambda x: lax.psum(x, "x"), mesh=mesh, in_specs=P("x"), out_specs=P())

    def g(x):
        return f(lax.with_sharding_constraint(x, NamedSharding(mesh, P("y"))) * 2)

    x = jax.device_put(X, NamedSharding(mesh, P("x")))
    for platforms in (("cpu",), ("cpu", "tpu")):
        found = export.export(jax.jit(g), platforms=platforms)(TYPE)
        found = export.deserialize(found.serialize())
        assert found.nr_devices == 8
        close(found.call(x), 2 * X.reshape(4, 2, 4).sum(0))


def test_symbolic_shapes(mesh):
    """Cut dimensions are multiples of the parts; shapes are known where the program is called."""
    rows = NamedSharding(mesh, P("x"))
    scaled = jax.jit(lambda x: jnp.cumsum(x, 0) * x.shape[0], in_shardings=rows, out_shardings=rows)
    total = jax.jit(jax.shard_map(lambda x: jax.lax.psum(jnp.sin(x), "x"), mesh=mesh,
                                  in_specs=P("x"), out_specs=P()))
    for f, reference in ((scaled, lambda x: np.cumsum(x, 0) * len(x)),
                         (total, lambda x: np.sin(x).reshape(4, -1, 3).sum(0))):
        found = export.export(f)(jax.ShapeDtypeStruct(export.symbolic_shape("4*n, 3"), "float32"))
        found = export.deserialize(found.serialize(vjp_order=1))
        assert found.nr_devices == 8
        for n in (4, 12):
            x = np.arange(3.0 * n, dtype="f4").reshape(n, 3)
            close(found.call(jax.device_put(x, rows)), reference(x))
        dx, = jax.vjp(found.call, jax.device_put(x, rows))[1](found.call(jax.device_put(x, rows)))
        want, = jax.vjp(f, x)[1](f(x))
        close(dx, want)
    with pytest.raises(ValueError, match="is partitioned 4 times, but the dimension size is n"):
        export.export(scaled)(jax.ShapeDtypeStruct(export.symbolic_shape("n, 3"), "float32"))


def test_sizes_that_xla_does_not_find_out(mesh):
    f = jax.jit(jax.shard_map(lambda x: x.reshape(-1), mesh=mesh, in_specs=P("x"),
                              out_specs=P("x")))
    with pytest.raises(NotImplementedError, match=r"asks for the size 2\*n of symbolic shapes"):
        export.export(f)(jax.ShapeDtypeStruct(export.symbolic_shape("4*n, 2"), "float32"))


def test_another_process_calls_it(exported, tmp_path, mesh):
    path = tmp_path / "program"
    path.write_bytes(exported.serialize())
    code = f"""
import numpy as np
import pyjx as jax
from pyjx import export
mesh = jax.sharding.Mesh(np.array(jax.devices()).reshape(2, 4), ("a", "b"))
x = jax.device_put(np.ones((8, 4), np.float32), jax.NamedSharding(mesh, jax.P("a", "b")))
with open({str(path)!r}, "rb") as file:
    print(export.deserialize(bytearray(file.read())).call(x).shape)
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert out.stdout == "(4,)\n", out.stderr


@pytest.mark.parametrize("version", MADE)
def test_shardings_come_from_jax(version):
    cases.register()
    data = MADE[version]["export.sharded"]
    if version in ("0.7.2", "0.8.3"):
        with pytest.raises(ValueError, match=r"by jax before 0\.9, .* Export it again by a later"):
            export.deserialize(data)
        return
    needs_jaxlib(version)
    found, own = export.deserialize(data), cases.exported("sharded")
    again = export.deserialize(own.serialize(vjp_order=1, format="jax"))
    for other in (found, again):
        assert [s.spec for s in other._in_named_shardings] == [P("x"), P("x", "y")]
        assert other.nr_devices == 4 and other.vjp().nr_devices == 4
        for x, y in zip(cases.answers(other.call, "sharded"),
                        cases.answers(own.call, "sharded"), strict=True):
            close(x, y)
