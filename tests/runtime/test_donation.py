"""Arguments that a compiled function may overwrite."""

import copy
import warnings

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from tests.mistakes import mistake
from tests.runtime.jitted import equal

pytestmark = [pytest.mark.gpu, pytest.mark.smoke]


def fresh():
    return jnp.arange(4.0) + 1


@pytest.mark.parametrize("options", [{"donate_argnums": 0}, {"donate_argnums": (0,)},
                                     {"donate_argnames": "a"}, {"donate_argnums": -2}])
def test_donated_argument_is_deleted(options):
    f = jax.jit(lambda a, b: (a + 1, b * 2), **options)
    a, b = fresh(), fresh()
    out = f(a, b)
    assert a.is_deleted()
    assert not b.is_deleted()
    equal(out[0], [2, 3, 4, 5])
    with pytest.raises(RuntimeError, match=r"Array has been deleted with shape=float32\[4\]"):
        np.asarray(a)


def test_donation_of_a_tree_and_beside_static_arguments():
    f = jax.jit(lambda n, t, b: (jax.tree_util.tree_map(lambda v: v * n, t), b),
                static_argnums=0, donate_argnums=1)
    tree, b = {"a": fresh(), "b": [fresh()]}, fresh()
    f(3, tree, b)
    assert tree["a"].is_deleted()
    assert tree["b"][0].is_deleted()
    assert not b.is_deleted()


def test_loop_of_donations():
    f = jax.jit(lambda a: a + 1, donate_argnums=0)
    a = fresh()
    for _ in range(5):
        a = f(a)
    equal(a, [6, 7, 8, 9])


def test_use_after_donation_is_an_error():
    f = jax.jit(lambda a: a + 1, donate_argnums=0)
    a = fresh()
    f(a)
    with pytest.raises((RuntimeError, ValueError), match="deleted"):
        f(a)
    gone = fresh()
    gone.delete()
    with pytest.raises((RuntimeError, ValueError), match="deleted"):
        jax.jit(lambda v: v * 3)(gone)


def test_numpy_argument_is_not_overwritten():
    a = np.arange(4.0, dtype=np.float32)
    jax.jit(lambda v: v + 1, donate_argnums=0)(a)
    equal(a, np.arange(4.0))


def test_useless_donation_warns():
    with pytest.warns(UserWarning, match=r"Some donated buffers were not usable: float32\[4\]"):
        jax.jit(lambda a: a.sum(), donate_argnums=0)(fresh())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jax.jit(lambda a, b: b + 1, donate_argnums=0)(fresh(), fresh())  # not used at all


def test_aliases_in_the_text():
    text = jax.jit(lambda a, b: (b.sum(), a + 1, a.reshape(2, 2)), donate_argnums=(0, 1)).lower(
        fresh(), fresh()).as_text()
    assert "%arg0: tensor<4xf32> {tf.aliasing_output = 1 : i32}" in text
    assert "%arg1: tensor<4xf32> {jax.buffer_donor = true}" in text


def test_donated_by_name():
    def add(x, y):
        return x + y

    for options, calls in (
        ({"donate_argnames": "y"}, [lambda f, a, b: f(a, b), lambda f, a, b: f(a, y=b)]),
        ({"donate_argnums": 1}, [lambda f, a, b: f(a, b), lambda f, a, b: f(a, y=b)]),
    ):
        for call in calls:
            a, b = jnp.ones(3), jnp.ones(3)
            call(jax.jit(add, **options), a, b)
            assert (a.is_deleted(), b.is_deleted()) == (False, True)


@pytest.mark.parametrize("made", [
    lambda: jnp.array(0.0), lambda: jnp.asarray(np.float32(2)), lambda: jnp.arange(1.0),
    lambda: jnp.array([1.0, 2.0]), lambda: jnp.arange(1000.0)])
def test_small_arrays_give_their_memory_to_results(made):
    x = made()
    address = x.unsafe_buffer_pointer()
    out = jax.jit(lambda x: x + 1, donate_argnums=0)(x)
    assert out.unsafe_buffer_pointer() == address
    assert x.is_deleted()


@pytest.mark.parametrize("copied", [
    jnp.copy, jnp.array, lambda x: jnp.asarray(x, copy=True), jax.random.clone,
    lambda x: jax.device_put(x, may_alias=False), lambda x: x.copy(), copy.deepcopy,
    lambda x: jax.device_put(x, jax.devices()[0], may_alias=False)])
@pytest.mark.parametrize("make", [
    lambda: jax.random.key(0), lambda: jax.random.split(jax.random.key(0), 3),
    lambda: jax.random.PRNGKey(0)], ids=["key", "keys", "raw"])
def test_copies_of_keys_may_be_donated(copied, make):
    keys, same = make(), jax.jit(lambda x: x, donate_argnums=0)
    given = copied(keys)
    kept = same(given)
    assert given.is_deleted() and not keys.is_deleted()
    assert (jax.random.key_data(kept) == jax.random.key_data(keys)).all()


@pytest.mark.parametrize("copied", [lambda x: +x, lambda x: x.flatten()])
@pytest.mark.parametrize("x", [jnp.arange(3.0), jnp.ones((2, 2)), jnp.float32(1)])
def test_what_numpy_copies_may_be_donated(copied, x):
    given = copied(x)
    jax.jit(lambda x: x + 1, donate_argnums=0)(given)
    assert given.is_deleted() and not x.is_deleted()
    assert not jax.make_jaxpr(lambda x: +x.ravel())(jnp.ones(3)).eqns


def test_a_captured_array_that_is_gone():
    mean = jnp.ones(3)
    fun = jax.jit(lambda x: (x - mean).sum())
    fun(jnp.zeros(3))
    mean.delete()
    text = mistake(lambda: fun(jnp.zeros(3)))
    assert "It was captured by the function" in text and "let it capture jnp.copy" in text
