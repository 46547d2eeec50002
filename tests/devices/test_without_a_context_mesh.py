"""Arrays along Explicit axes where no mesh is set: what is of no mesh lies as they do where carries
and branches meet, and the cures of errors name a mesh."""

import re

import numpy as np
import pytest

import pyjx as jax
from pyjx import lax
from pyjx import numpy as jnp
from pyjx.errors import ShardingTypeError
from pyjx.sharding import NamedSharding
from pyjx.sharding import PartitionSpec as P

MESH = jax.make_mesh((8,), ("x",))
OTHER = jax.make_mesh((4, 2), ("y", "z"))
WHOLE = jnp.zeros((16, 8))


def cut(*spec, shape=(16, 8), mesh=MESH):
    values = np.arange(np.prod(shape), dtype=np.float32).reshape(shape) / 64
    return jax.device_put(values, NamedSharding(mesh, P(*spec)))


def zeros():
    return jnp.zeros((16, 8))


BY_ROWS = [
    ("while_loop", lambda y: lax.while_loop(lambda c: c.sum() < 300, lambda c: c + y, zeros()), 3),
    ("fori_loop", lambda y: lax.fori_loop(0, 3, lambda i, c: c + y, zeros()), 3),
    ("scan", lambda y: lax.scan(lambda c, _: (c + y, None), zeros(), None, length=3)[0], 3),
    ("cond", lambda y: lax.cond(y.sum() > 0, lambda x: x, lambda x: zeros(), y), 1),
    ("cond, the other", lambda y: lax.cond(y.sum() > 0, lambda x: zeros(), lambda x: x, y), 0),
    ("switch", lambda y: lax.switch(2, [lambda x: zeros(), lambda x: zeros(), lambda x: x * 2], y),
     2),
    ("result", lambda y: lax.scan(lambda c, _: (zeros(), None), y, None, length=3)[0], 0),
    ("constant", lambda y: lax.cond(y.sum() < 0, lambda x: x, lambda x: WHOLE, y), 0),
    ("swapped", lambda y: lax.fori_loop(0, 2, lambda i, c: (c[1], c[0] + y), (zeros(),) * 2)[0], 1),
    ("tree", lambda y: lax.scan(lambda c, _: ({"a": c["a"] + y, "b": c["a"]}, None),
                                {"a": zeros(), "b": zeros()}, None, length=3)[0]["b"], 2),
    ("number", lambda y: lax.scan(lambda c, _: (c + y, None), np.zeros((16, 8), np.float32), None,
                                  length=2)[0], 2),
]


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit])
@pytest.mark.parametrize(("f", "times"), [case[1:] for case in BY_ROWS],
                         ids=[case[0] for case in BY_ROWS])
def test_carries_and_branches_of_no_mesh(f, times, wrap):
    y = cut("x", None)
    out = wrap(f)(y)
    assert str(jax.typeof(out)) == "float32[16@x,8]"
    assert out.sharding.is_equivalent_to(y.sharding, 2)
    np.testing.assert_allclose(out, times * np.asarray(y), rtol=1e-6)


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit])
@pytest.mark.parametrize("loop", [
    lambda c, y: lax.fori_loop(0, 3, lambda i, c: c + y, c),
    lambda c, y: lax.while_loop(lambda c: c.sum() < 300, lambda c: c + y, c, max_steps=4),
    lambda c, y: lax.scan(lambda c, _: (c + y, None), c, None, length=3)[0],
    lambda c, y: lax.fori_loop(0, 6, lambda i, c: (c[1], c[0] + y), (c, c))[0],
    lambda c, y: lax.scan(lambda c, _: (c + y, None), WHOLE, None, length=3)[0]])
def test_a_carry_that_was_made_before_a_mesh_was_set(loop, wrap):
    y, c = cut("x", None), zeros()
    with jax.set_mesh(MESH):
        out = wrap(loop)(c, y)
        gradient = wrap(jax.grad(lambda c, y: loop(c, y).sum()))(c, y)
        with pytest.raises(TypeError, match=r"type float32\[16@x,8\] but .* float32\[16,8\]"):
            wrap(lambda y: lax.fori_loop(0, 3, lambda i, c: jax.reshard(c, P()), y))(y)
    assert str(jax.typeof(out)) == "float32[16@x,8]"
    np.testing.assert_allclose(out, 3 * np.asarray(y))
    np.testing.assert_array_equal(gradient, np.full((16, 8), float(loop(c + 1, y)[0, 0] == 1)))


def test_a_carry_lies_as_what_is_scanned():
    x = cut(None, "x")
    last, each = lax.scan(lambda c, r: (c + r, c), jnp.zeros(8), x)
    assert (str(jax.typeof(last)), str(jax.typeof(each))) == ("float32[8@x]", "float32[16,8@x]")
    np.testing.assert_allclose(last, np.asarray(x).sum(0), rtol=1e-6)
    twice = lax.map(lambda r: lax.fori_loop(0, 2, lambda i, c: c + r, jnp.zeros(8)), x)
    np.testing.assert_array_equal(twice, 2 * np.asarray(x))


def test_derivatives_and_batches():
    y = cut("x", None)

    def powers(c, y):
        return lax.fori_loop(0, 3, lambda i, c: c * y + y, c)

    of_y = jax.grad(lambda y: powers(zeros(), y).sum())
    for f in (of_y, jax.jit(of_y)):
        assert str(jax.typeof(f(y))) == "float32[16@x,8]"
        np.testing.assert_allclose(f(y), 1 + 2 * y + 3 * y * y, rtol=1e-5)
    of_init = jax.jit(jax.grad(lambda c, y: powers(c, y).sum()))(zeros(), y)
    assert jax.typeof(of_init).shape == (16, 8)
    np.testing.assert_allclose(of_init, np.asarray(y) ** 3, rtol=1e-5)
    out, tangent = jax.jvp(lambda y: lax.cond(y.sum() > 0, lambda: y * y, zeros), (y,), (y,))
    np.testing.assert_allclose(tangent, 2 * out, rtol=1e-6)
    each = jax.vmap(lambda b: powers(zeros() + b, y))(jnp.arange(2.0))
    assert str(jax.typeof(each)) == "float32[2,16@x,8]"
    np.testing.assert_allclose(each[1], powers(jnp.ones((16, 8)), y), rtol=1e-5)


def test_what_lies_along_two_meshes_or_otherwise_is_refused():
    x, y, z = cut(None, "x"), cut("x", None), cut("y", None, mesh=OTHER)
    with pytest.raises(TypeError, match="equal output types") as refused:
        lax.switch(0, [zeros, lambda: y, lambda: z])
    assert "reshard" not in str(refused.value)
    with pytest.raises(TypeError, match="must have equal types"):
        lax.scan(lambda c, _: (z, None), y, None, length=2)
    with pytest.raises(TypeError, match=r"jax\.reshard\(y, NamedSharding\(mesh, P\('x', None\)\)"):
        lax.cond(True, lambda: y, lambda: x)


def test_the_cure_of_a_carry_that_lies_otherwise():
    cure = r"jax\.reshard\(init, (P\(None, 'x'\))\).* out_sharding=P"
    with jax.set_mesh(MESH):
        with pytest.raises(TypeError, match=cure) as refused:
            lax.fori_loop(0, 2, lambda i, c: jax.reshard(c, P(None, "x")), cut("x", None))
        spec = eval(re.search(cure, str(refused.value))[1])
        for init in (jax.reshard(zeros(), spec), jnp.zeros((16, 8), out_sharding=spec)):
            out = lax.fori_loop(0, 2, lambda i, c: jax.reshard(c, P(None, "x")) + 1, init)
            np.testing.assert_allclose(out, np.full((16, 8), 2.0))
    init = cut(None, "x")  # outside the cure names the mesh

    def turned(i, c):
        return jax.reshard(c, NamedSharding(MESH, P("x", None)))

    with pytest.raises(TypeError, match=r"jax\.reshard\(init, NamedSharding\(mesh, P\('x', None"):
        lax.fori_loop(0, 2, turned, init)
    init = jax.reshard(init, NamedSharding(MESH, P("x", None)))
    assert str(jax.typeof(lax.fori_loop(0, 2, turned, init))) == "float32[16@x,8]"


@pytest.mark.parametrize("derivative", [
    lambda f, y: jax.grad(f)(y), lambda f, y: jax.value_and_grad(f)(y)[1],
    lambda f, y: jax.jacfwd(lambda y: f(y * y))(y), lambda f, y: jax.hessian(
        lambda y: f(y * y))(y).sum((2, 3))])
@pytest.mark.parametrize("f", [jnp.sum, jnp.mean, lambda y: y[:8].sum() - y.max()])
def test_derivatives_are_on_the_devices_of_the_argument(f, derivative):
    y = cut("x", None)
    out = derivative(f, y)
    assert out.sharding.device_set == y.sharding.device_set
    np.testing.assert_allclose(out, derivative(f, np.asarray(y)), rtol=1e-6)


@pytest.mark.parametrize(("wrong", "cured"), [
    (lambda x, y: x + y, lambda x, y, to: jax.reshard(x, to("x")) + y),
    (lambda x, y: jnp.concatenate([x, y]), lambda x, y, to: jnp.concatenate([
        jax.reshard(x, to("x")), y])),
    (lambda x, y: x @ y[:8], lambda x, y, to: jnp.matmul(x, y[:8], out_sharding=to("x"))),
    (lambda x, y: lax.reshape(x, (128,)), lambda x, y, to: lax.reshape(x, (128,),
                                                                       out_sharding=to("x"))),
])
def test_the_cures_of_operations_name_a_mesh(wrong, cured):
    x, y = cut(None, "x"), cut("x", None)
    with pytest.raises(ShardingTypeError, match=r" NamedSharding\(mesh, P\(\.\.\.\)\)[.,]"):
        wrong(x, y)
    with jax.set_mesh(MESH), pytest.raises(ShardingTypeError, match=r" P\(\.\.\.\)[.,]") as told:
        wrong(x, y)
    assert "NamedSharding(mesh, " not in str(told.value)
    expected = wrong(np.asarray(x), np.asarray(y))
    out = cured(x, y, lambda *spec: NamedSharding(MESH, P(*spec)))
    np.testing.assert_allclose(out, expected, rtol=1e-5)


def test_the_cure_of_an_open_sum_names_a_mesh():
    x, y = cut(None, "x"), cut("x", None, shape=(8, 16))
    product = jnp.matmul(x, y, out_sharding=NamedSharding(MESH, P(unreduced={"x"})))
    with pytest.raises(RuntimeError, match=r"jax\.reshard\(x, NamedSharding\(mesh, P\(\)\)\)"):
        np.asarray(product)
    np.testing.assert_allclose(jax.reshard(product, NamedSharding(MESH, P())),
                               np.asarray(x) @ np.asarray(y), rtol=1e-5)


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit])
@pytest.mark.parametrize(("join", "kind"), [
    (lambda x, y: jnp.concatenate([x, y]), "float32[32@x,8]"),
    (lambda x, y: jnp.vstack([y, x]), "float32[32@x,8]"),
    (lambda x, y: jnp.stack([x, y], 1), "float32[16@x,2,8]")])
def test_what_is_of_no_mesh_is_joined_to_what_is_cut(join, kind, wrap):
    x, y = zeros() + 1, cut("x", None)
    out = wrap(join)(x, y)
    assert str(jax.typeof(out)) == kind
    np.testing.assert_array_equal(out, join(np.asarray(x), np.asarray(y)))
    of_x, of_y = wrap(jax.grad(lambda x, y: (join(x, y) ** 2).sum(), (0, 1)))(x, y)
    assert [str(jax.typeof(g)) for g in (of_x, of_y)] == ["float32[16,8]", "float32[16@x,8]"]
    np.testing.assert_array_equal(of_x, 2 * np.asarray(x))
    np.testing.assert_array_equal(of_y, 2 * np.asarray(y))
    with jax.set_mesh(MESH), pytest.raises(ShardingTypeError, match="should have the same"):
        join(x, y)


def test_a_loop_that_lays_its_carry_is_called_by_its_name():
    y = cut("x", None)
    for name, loop in [
            ("fori_loop", lambda y: lax.fori_loop(0, 3, lambda i, c: c + y, zeros())),
            ("fori_loop", lambda y: lax.fori_loop(0, y.size, lambda i, c: c + y, zeros())),
            ("while_loop", lambda y: lax.while_loop(lambda c: c.sum() < 9, lambda c: c + y,
                                                    zeros())),
            ("scan", lambda y: lax.scan(lambda c, _: (c + y, None), zeros(), None, length=3))]:
        assert f"name={name}" in str(jax.make_jaxpr(loop)(y))
