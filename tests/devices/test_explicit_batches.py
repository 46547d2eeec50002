"""vmap over batches that are cut along an Explicit axis: all that is made for each example is."""

import numpy as np
import pytest

import pyjx as jax
from pyjx import lax
from pyjx import numpy as jnp
from pyjx.errors import ShardingTypeError
from pyjx.sharding import AxisType, NamedSharding
from pyjx.sharding import PartitionSpec as P

X = np.arange(24, dtype=np.float32).reshape(8, 3) + 1


@pytest.fixture
def explicit():
    with jax.set_mesh(jax.make_mesh((4, 2), ("x", "y"), (AxisType.Explicit,) * 2)):
        yield


def spec_text(x):
    return str(jax.typeof(x)).partition("[")[2][:-1]


@jax.custom_vjp
def product(x, y):
    return x * y, jnp.zeros(2)


product.defvjp(lambda x, y: (product(x, y), (x, y)), lambda r, ct: (r[1] * ct[0], jnp.ones(3)))


@jax.custom_jvp
def sine(x):
    return jnp.sin(x), jnp.ones(2)


sine.defjvp(lambda x, t: (sine(*x), (jnp.cos(x[0]) * t[0], jnp.zeros(2))))

PROGRAMS = {
    "constant": (lambda x: jnp.ones(3), "8@x,3"),
    "scan of a carry": (lambda x: lax.scan(lambda c, y: (c + y, c), 0.0, x)[1], "8@x,3"),
    "scan of shared": (lambda x: lax.scan(lambda c, y: (c * y, c), x, jnp.arange(4.0))[0],
                       "8@x,3"),
    "while": (lambda x: lax.while_loop(lambda c: c[1] < 9.0, lambda c: (c[0] + 1, c[1] + x[0]),
                                       (jnp.zeros(2), 0.0))[0], "8@x,2"),
    "while of shared": (lambda x: lax.while_loop(
        lambda c: c[0] < 4, lambda c: (c[0] + 1, c[1] + x), (0, jnp.zeros(3)))[1], "8@x,3"),
    "fori_loop": (lambda x: lax.fori_loop(0, 3, lambda i, c: c + x[i], 0.0), "8@x"),
    "cond": (lambda x: lax.cond(x[0] > 5, lambda: jnp.ones(2), lambda: jnp.zeros(2)), "8@x,2"),
    "cond of shared": (lambda x: lax.cond(jnp.array(True), lambda x: jnp.ones(3), jnp.sin, x),
                       "8@x,3"),
    "switch": (lambda x: lax.switch(x[0].astype(int) % 3, [jnp.sin, jnp.cos, jnp.zeros_like], x),
               "8@x,3"),
    "custom_vjp": (lambda x: product(x, jnp.arange(3.0))[1], "8@x,2"),
    "custom_jvp": (lambda x: sine(x)[1], "8@x,2"),
    "checkpoint": (jax.checkpoint(lambda x: jnp.sin(x).sum() * jnp.ones(2)), "8@x,2"),
    "linear_solve": (lambda x: lax.custom_linear_solve(
        lambda v: x * v, jnp.ones(3), lambda mv, b: b / x, symmetric=True), "8@x,3"),
    "solve for columns": (lambda x: jnp.linalg.solve(2 * jnp.eye(3), x), "8@x,3"),
    "associative_scan": (lambda x: lax.associative_scan(
        lambda a, b: (a[0] * b[0], a[1] + b[1]), (x, jnp.ones(3)))[1], "8@x,3"),
    "scatter": (lambda x: jnp.zeros(4).at[1].set(x[0]), "8@x,4"),
    "psum": (jax.vmap(lambda y: lax.psum(y, "i"), axis_name="i"), "8@x,3"),
    "vmap": (lambda x: jax.vmap(lambda y: y * x.sum())(jnp.arange(4.0)), "8@x,4"),
    "fold_in": (lambda x: jax.random.uniform(
        jax.random.fold_in(jax.random.key(0), x[0].astype(int)), (2,)), "8@x,2"),
    "auto_axes": (jax.sharding.auto_axes(lambda x: jnp.cumsum(x), out_sharding=P()), "8@x,3"),
    "einsum": (lambda x: jnp.einsum("i,j->ij", x, jnp.ones(4), out_sharding=P(None, "y")),
               "8@x,3,4@y"),
    "shard_map": (jax.shard_map(lambda x: lax.cond(x[0] > 3, jnp.sin, jnp.cos, x), in_specs=P(),
                                out_specs=P()), "8@x,3"),
}


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_cut_as_the_batch(explicit, name, wrap):
    f, types = PROGRAMS[name]
    x = jax.device_put(X, P("x"))
    for g in (jax.vmap(f), jax.vmap(jax.jit(f))):
        out = wrap(g)(x)
        assert spec_text(out) == types
        assert out.sharding.spec[0] == "x"
        np.testing.assert_allclose(out, jax.vmap(f)(X), rtol=1e-5)


@pytest.mark.parametrize("name", ["scan of a carry", "while of shared", "cond", "switch",
                                  "custom_vjp", "custom_jvp", "checkpoint", "constant", "scatter"])
def test_gradients_are_cut_as_the_batch(explicit, name):
    def total(x):
        return (PROGRAMS[name][0](x) ** 2).sum()

    derivative = jax.grad if name != "while of shared" else jax.jacfwd
    out = jax.vmap(derivative(total))(jax.device_put(X, P("x")))
    assert spec_text(out) == "8@x,3"
    np.testing.assert_allclose(out, jax.vmap(derivative(total))(X), rtol=1e-5)


def test_batches_within_batches_are_cut_along_their_axes(explicit):
    x = jax.device_put(np.ones((8, 4, 2), np.float32), P("x", "y"))
    outs = jax.vmap(jax.vmap(
        lambda x: (jnp.ones(3), lax.scan(lambda c, y: (c + y, c), 0.0, x))))(x)
    assert [spec_text(out) for out in jax.tree.leaves(outs)] == ["8@x,4@y,3", "8@x,4@y",
                                                                 "8@x,4@y,2"]


def test_axes_elsewhere(explicit):
    x = jax.device_put(X.T, P(None, ("x", "y")))
    one, two = jax.vmap(lambda x: (x, jnp.ones(2)), in_axes=1, out_axes=1)(x)
    assert spec_text(one) == "3,8@(x,y)"
    assert spec_text(two) == "2,8@(x,y)"


def test_no_mesh_need_be_set():
    mesh = jax.make_mesh((4, 2), ("x", "y"), (AxisType.Explicit,) * 2)
    x = jax.device_put(X, NamedSharding(mesh, P("x")))
    out = jax.vmap(lambda x: lax.scan(lambda c, y: (c + y, c), 0.0, x))(x)[1]
    jacobian = jax.jacrev(lambda x: x * 2)(x)
    assert out.sharding == NamedSharding(mesh, P("x", None))
    np.testing.assert_array_equal(jacobian.sum((2, 3)), 2 * np.ones((8, 3)))


def test_all_arguments_must_be_cut_alike(explicit):
    x, y = jax.device_put(X, P("x")), jax.device_put(X, P("y"))
    for other, entry in ((X, None), (y, "y")):
        with pytest.raises(ValueError, match="Mapped away dimension of inputs passed to vmap "
                           "should be sharded the same. Got inconsistent axis specs: "
                           f"x vs {entry}"):
            jax.vmap(jnp.add)(x, other)
    assert spec_text(jax.vmap(jnp.add, (0, None))(x, jnp.ones(3))) == "8@x,3"


def test_spmd_axis_name_is_that_of_the_batch(explicit):
    x = jax.device_put(X, P("x"))
    assert spec_text(jax.vmap(jnp.sin, spmd_axis_name="x")(x)) == "8@x,3"
    with pytest.raises(ValueError, match="Only one of spmd_axis_name or arrays sharded"):
        jax.vmap(jnp.sin, spmd_axis_name="y")(x)


def test_jacobians_are_cut_as_results_and_arguments(explicit):
    x = jax.device_put(X, P("x"))
    assert spec_text(jax.jacfwd(lambda x: x.sum(1))(x)) == "8@x,8,3"
    assert spec_text(jax.jit(jax.jacfwd(jnp.sin))(x)) == "8@x,3,8,3"
    assert spec_text(jax.jacrev(jnp.sin)(x)) == "8,3,8@x,3"
    np.testing.assert_allclose(jax.jacfwd(jnp.sin)(x), jax.jacfwd(jnp.sin)(X), rtol=1e-6)


COLLECTIVES = {
    "all_gather": (lambda v: lax.all_gather(v, "i"), "2,2,8@x,4"),
    "all_gather behind": (lambda v: lax.all_gather(v, "i", axis=1), "2,8@x,2,4"),
    "all_gather tiled": (lambda v: lax.all_gather(v, "i", axis=1, tiled=True), "2,8@x,8"),
    "psum_scatter": (lambda v: lax.psum_scatter(jnp.stack([v, 2 * v]), "i"), "2,8@x,4"),
    "psum_scatter tiled": (lambda v: lax.psum_scatter(v, "i", scatter_dimension=1, tiled=True),
                           "2,8@x,2"),
    "all_to_all": (lambda v: lax.all_to_all(jnp.stack([v, 2 * v]), "i", 0, 2), "2,8@x,4,2"),
    "all_to_all tiled": (lambda v: lax.all_to_all(v, "i", 1, 1, tiled=True), "2,8@x,4"),
    "ppermute": (lambda v: lax.ppermute(v, "i", [(0, 1), (1, 0)]), "2,8@x,4"),
}


@pytest.mark.parametrize("name", COLLECTIVES)
def test_collectives_of_examples_that_are_cut(explicit, name):
    f, want = COLLECTIVES[name]
    of_all = jax.vmap(f, axis_name="i")
    x = np.arange(64, dtype=np.float32).reshape(2, 8, 4) / 64
    cut = jax.device_put(x, P(None, "x"))
    gradient = jax.grad(lambda x: jnp.sin(of_all(x)).sum())
    for run in (lambda f: f, jax.jit):
        assert spec_text(run(of_all)(cut)) == want
        np.testing.assert_allclose(run(of_all)(cut), of_all(x), rtol=1e-6)
        assert spec_text(run(gradient)(cut)) == "2,8@x,4"
        np.testing.assert_allclose(run(gradient)(cut), gradient(x), rtol=1e-5)


def test_collectives_take_no_parts_of_what_is_cut(explicit):
    x = jax.device_put(np.ones((2, 8, 4), np.float32), P(None, "x"))
    for f in (lambda v: lax.all_gather(v, "i", tiled=True),
              lambda v: lax.psum_scatter(v, "i", tiled=True),
              lambda v: lax.all_to_all(v, "i", 0, 0, tiled=True)):
        with pytest.raises(ShardingTypeError, match="axis 0, which has to be whole"):
            jax.vmap(f, axis_name="i")(x)


@pytest.mark.parametrize("kind", [AxisType.Explicit, AxisType.Auto])
@pytest.mark.parametrize("axes", [("x", "y"), ("y", "x")])
def test_batches_cut_along_several_axes_in_their_order(kind, axes):
    mesh = jax.make_mesh((2, 2, 2), ("x", "y", "z"), (kind,) * 3)
    with jax.set_mesh(mesh):
        x = jax.device_put(np.arange(64, dtype="f").reshape(8, 8), P(axes, "z"))
        for manual in ({"x", "z"}, {"y", "z"}, {"x", "y", "z"}, {"z"}):
            f = jax.vmap(jax.shard_map(lambda v: 2 * v, in_specs=P("z"), out_specs=P("z"),
                                       axis_names=manual))
            for call in (f, jax.jit(f)):
                out = call(x)
                np.testing.assert_array_equal(out, 2 * np.asarray(x))
                if kind is AxisType.Explicit:
                    spec = out.sharding.spec
                    assert set(spec[0]) == set(axes) and spec[1] == "z"
                    assert spec[0] == axes or len(manual) == 2  # Manual axes come first


def test_constraints_on_examples_that_they_do_not_divide():
    mesh = jax.make_mesh((2, 2, 2), ("x", "y", "z"), (AxisType.Auto,) * 3)
    x = np.arange(40, dtype="f").reshape(8, 5)
    for spec, kept in ((P("x"), P("x")), (P(("y", "x")), P(("y", "x"))), (P(), P())):
        cut = jax.device_put(x, NamedSharding(mesh, spec))
        out = jax.vmap(lambda v: jax.lax.with_sharding_constraint(
            v, NamedSharding(mesh, P("z"))))(cut)
        assert out.sharding.is_equivalent_to(NamedSharding(mesh, kept), 2)
        np.testing.assert_array_equal(out, x)
    cut = jax.device_put(np.ones((8, 8), "f"), NamedSharding(mesh, P(("y", "x"))))
    out = jax.vmap(lambda v: jax.lax.with_sharding_constraint(
        v, NamedSharding(mesh, P("x"))))(cut)
    assert out.sharding.spec == P("y", "x")
    with pytest.raises(ValueError, match="should evenly divide"):
        jax.lax.with_sharding_constraint(x[0], NamedSharding(mesh, P("z")))
