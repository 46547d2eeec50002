"""pmap: an example on each device."""

from functools import partial

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax
from pyjx.sharding import PartitionSpec as P

X = np.arange(8, dtype="f4")
PAIRS = X.reshape(4, 2)


# -- as guides show it -----------------------------------------------------------------------------


def test_random_matrices_and_products():
    keys = jax.random.split(jax.random.PRNGKey(0), 8)
    matrices = jax.pmap(lambda key: jax.random.normal(key, (50, 60)))(keys)
    assert matrices.shape == (8, 50, 60) and len(matrices.sharding.device_set) == 8
    products = jax.pmap(lambda x: jnp.dot(x, x.T))(matrices)
    assert products.shape == (8, 50, 50)
    np.testing.assert_allclose(jax.pmap(jnp.mean)(products), products.mean((1, 2)), rtol=1e-5)


def test_collectives_between_devices():
    @partial(jax.pmap, axis_name="i")
    def normalize(x):
        return x / lax.psum(x, "i")

    np.testing.assert_allclose(normalize(np.arange(4.)), np.arange(4) / 6, rtol=1e-6)


def test_nested_and_differentiated():
    @jax.pmap
    def f(x):
        y = jnp.sin(x)

        @jax.pmap
        def g(z):
            return jnp.cos(z) * jnp.tan(y.sum()) * jnp.tanh(x).sum()

        return jax.grad(lambda w: jnp.sum(g(w)))(x)

    def one(x):
        return -jnp.sin(x) * jnp.tan(jnp.sin(x).sum()) * jnp.tanh(x).sum()

    np.testing.assert_allclose(f(PAIRS), jax.vmap(one)(PAIRS), rtol=1e-4)
    np.testing.assert_allclose(
        jax.grad(lambda x: jnp.sum(f(x)))(PAIRS),
        jax.grad(lambda x: jnp.sum(jax.vmap(one)(x)))(PAIRS), rtol=1e-3)


def test_training_step():
    @partial(jax.pmap, axis_name="batch", in_axes=(None, 0), out_axes=None)
    def step(p, batch):
        grads = jax.grad(lambda p: ((batch @ p - 1) ** 2).mean())(p)
        return p - 0.1 * lax.pmean(grads, "batch")

    batches = np.random.default_rng(0).normal(size=(8, 2, 3)).astype("f4")
    p = np.ones(3, "f4")
    whole = jax.grad(lambda p: ((batches.reshape(16, 3) @ p - 1) ** 2).mean())(p)
    np.testing.assert_allclose(step(p, batches), p - 0.1 * whole, rtol=1e-5)


# -- arguments and results -------------------------------------------------------------------------


def test_axes():
    a = np.arange(6.).reshape(3, 2)
    out, same = jax.pmap(lambda x, y: (x + y, y), in_axes=(1, None), out_axes=(1, None))(a, 1.)
    np.testing.assert_array_equal(out, a + 1)
    assert same == 1
    np.testing.assert_array_equal(jax.pmap(lambda x: x, in_axes=-1, out_axes=-1)(a), a)
    np.testing.assert_array_equal(jax.pmap(lambda x: x, in_axes=-1)(a), a.T)
    tree = jax.pmap(lambda x, *, y: {"a": x["p"] + y, "b": x["q"]}, in_axes=({"p": 0, "q": None},))(
        {"p": X, "q": 3.}, y=X)
    assert tree["a"].tolist() == (2 * X).tolist() and tree["b"].tolist() == [3] * 8


def test_shardings_of_results():
    out = jax.pmap(lambda x: lax.psum(x, "i"), axis_name="i")(X)
    assert out.sharding.spec == P("i") and out.sharding.mesh.axis_names == ("i",)
    assert jax.pmap(lambda x: 2 * x)(out).tolist() == [56] * 8
    elsewhere = jax.device_put(X, jax.devices()[3])
    assert jax.pmap(lambda x: x + 1)(elsewhere).tolist() == (X + 1).tolist()


def test_static_and_donated_arguments():
    f = jax.pmap(lambda n, x: x * n, static_broadcasted_argnums=0)
    assert f(3, X).tolist() == (3 * X).tolist() and f(2, X).tolist() == (2 * X).tolist()
    g = jax.pmap(lambda n, x, y: (x * n, y), static_broadcasted_argnums=0, in_axes=(None, 0, None),
                 donate_argnums=1)
    x = jax.pmap(lambda x: x)(X)
    assert g(3, x, 1.)[0].tolist() == (3 * X).tolist()
    assert x.is_deleted()
    with pytest.raises(ValueError, match="Non-hashable static arguments"):
        f([3], X)


def test_devices():
    devices = jax.devices()[::-1][:4]
    out = jax.pmap(lambda x: x, devices=devices)(X[:4])
    assert [s.device for s in out.addressable_shards] == devices
    one = jax.pmap(lambda x: (lax.psum(x, "i"), lax.all_gather(x, "i"), lax.axis_index("i"),
                              lax.ppermute(x, "i", [(0, 0)])), axis_name="i")(X[1:2])
    assert [x.tolist() for x in one] == [[1], [[1]], [0], [1]]


def test_errors():
    with pytest.raises(ValueError, match="requires 9 logical devices, but only 8"):
        jax.pmap(lambda x: x)(np.arange(9))
    with pytest.raises(ValueError, match=r"pmap got inconsistent sizes(.|\n)*axis 0 of argument y"):
        jax.pmap(lambda n, x, y: x, static_broadcasted_argnums=0)(3, X, X[:4])
    with pytest.raises(ValueError, match="at least one argument with a mapped axis"):
        jax.pmap(lambda x: x, in_axes=None)(X)
    with pytest.raises(ValueError, match="rank should be at least 2"):
        jax.pmap(lambda x: x, in_axes=1)(X)
    with pytest.raises(ValueError, match=r"number of local devices passed to pmap"):
        jax.pmap(lambda x: x, devices=jax.devices()[:2])(X)
    with pytest.raises(ValueError, match="pmap out_axes: axis 7 is out of bounds"):
        jax.pmap(lambda x: x, out_axes=7)(PAIRS)
    with pytest.raises(ValueError, match="at least one example"):
        jax.pmap(lambda x: x)(X[:0])
    for call in (lambda f: f(X, n=3), lambda f: f(X)):
        with pytest.raises(ValueError, match=r"static_broadcasted_argnums=\(1,\) but was called"):
            call(jax.pmap(lambda x, n=2: x * n, static_broadcasted_argnums=1))
    with pytest.raises(ValueError, match="Specified axis_size 4"):
        jax.pmap(lambda x: x, axis_size=4)(X)
    with pytest.raises(TypeError, match="pmap in_axes must be"):
        jax.pmap(lambda x: x, in_axes="x")


# -- transformations -------------------------------------------------------------------------------


def test_gradients_through_collectives():
    f = jax.pmap(lambda x: jnp.sin(x) * lax.pmean(x, "i"), axis_name="i")
    np.testing.assert_allclose(
        jax.grad(lambda x: f(x).sum())(X),
        jax.grad(lambda x: (jnp.sin(x) * x.mean()).sum())(X), rtol=1e-5)
    np.testing.assert_allclose(
        jax.hessian(lambda x: f(x).sum())(X[:2]),
        jax.hessian(lambda x: (jnp.sin(x) * x.mean()).sum())(X[:2]), rtol=1e-5)


def test_under_jit_and_vmap():
    total = jax.pmap(lambda x: lax.psum(x, "i"), axis_name="i")
    assert jax.jit(total)(X).tolist() == [28] * 8
    assert jax.vmap(total)(PAIRS).tolist() == [[1, 1], [5, 5], [9, 9], [13, 13]]
    both = jax.pmap(jax.pmap(
        lambda x: lax.psum(x, ("i", "j")) + 10 * lax.axis_index("i") + lax.axis_index("j"),
        axis_name="j"), axis_name="i")
    assert both(PAIRS).tolist() == [[28, 29], [38, 39], [48, 49], [58, 59]]


def test_groups():
    f = jax.pmap(lambda x: lax.psum(x, "i", axis_index_groups=[[0, 1], [2, 3]]), axis_name="i")
    assert f(X[:4]).tolist() == [1, 1, 5, 5]


ARGUMENTS = {
    "None": (lambda x, y: x, (X, None), {}),
    "None in a tree": (lambda d: d["a"], ({"a": X, "b": None},), {}),
    "keyword": (lambda x, *, y: x + y, (X,), {"y": X}),
    "keyword None": (lambda x, y=None: x, (X,), {"y": None}),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_a_program_takes_the_arguments_of_the_function(name):
    f, args, kwargs = ARGUMENTS[name]
    mapped = jax.pmap(f)
    compiled = mapped.lower(*args, **kwargs).compile()
    want = mapped(*args, **kwargs)
    assert compiled(*args, **kwargs).tolist() == want.tolist()
    assert compiled.in_tree == jax.tree.structure((args, kwargs))
    with pytest.raises(TypeError, match="does not match the input pytree"):
        compiled(*args, 1, **kwargs)


def test_a_program_for_what_is_described():
    lowered = jax.pmap(lambda x: 2 * x).lower(jax.ShapeDtypeStruct((8, 3), "float32"))
    assert lowered.in_avals == ((jax.core.ShapedArray((8, 3), "float32"),), {})
    assert lowered.compile()(np.ones((8, 3), "f4")).tolist() == np.full((8, 3), 2.).tolist()


def test_program():
    text = jax.pmap(lambda x: lax.psum(x, "i"), axis_name="i").lower(X).as_text()
    assert "sdy.manual_computation" in text and "stablehlo.all_reduce" in text


# -- what is not a number --------------------------------------------------------------------------

TWO = jax.sharding.Mesh(np.array(jax.devices()[:2]), ("i",)) if len(jax.devices()) > 1 else None


def cut(f):
    return jax.shard_map(f, mesh=TWO, in_specs=P("i"), out_specs=P("i"))


NANS = {
    "pmap": lambda x: jax.pmap(lambda x: jnp.log(x) * 0)(x),
    "jit of pmap": lambda x: jax.jit(jax.pmap(lambda x: x / x))(x),
    "gradient of pmap": jax.grad(lambda x: jax.pmap(lambda x: jnp.sqrt(x) * x)(x).sum()),
    "shard_map": cut(lambda x: jnp.log(x) * 0),
    "jit of shard_map": jax.jit(cut(lambda x: jnp.log(x) * 0)),
    "shard_map in jit": jax.jit(lambda x: cut(lambda x: x / x)(x) + 1),
    "vmap of shard_map": lambda x: jax.vmap(cut(lambda x: x / x))(jnp.stack([x, x])),
    "compiled": lambda x: jax.jit(cut(lambda x: x / x)).lower(x).compile()(x),
}


@pytest.mark.parametrize("name", NANS)
def test_debug_nans(name):
    with jax.debug_nans(True), pytest.raises(FloatingPointError, match="in sharded computation"):
        NANS[name](jnp.zeros(2))


def test_debug_nans_of_what_is_fine():
    with jax.debug_nans(True):
        assert cut(lambda x: 2 * x)(jnp.ones(2)).tolist() == [2, 2]
        assert jax.pmap(lambda x: 2 * x)(jnp.ones(2)).tolist() == [2, 2]
    with jax.debug_infs(True), pytest.raises(FloatingPointError, match=r"\(inf\) encountered"):
        jax.pmap(jnp.log)(jnp.zeros(2))
