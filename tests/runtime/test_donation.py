"""Arguments that a compiled function may overwrite."""

import copy
import warnings
import weakref

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
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


# -- captured arrays, of which programs have copies ------------------------------------------------

Z = np.arange(3, dtype=np.float32)


def of_lowered(mean):
    lowered = jax.jit(lambda x: x - mean).lower(Z)
    return lambda x: lowered.compile()(x)


def with_a_rule(mean):
    f = jax.custom_vjp(lambda x: (x * mean).sum())
    f.defvjp(lambda x: (f(x), None), lambda _, g: (g * mean,))
    return jax.jit(jax.grad(f))


def with_references(mean):
    @jax.jit
    def f(x):
        total = jax.new_ref(jnp.zeros(()))
        total[...] += mean.sum()
        return x + total[...]
    return f


def with_a_key(mean):
    return jax.jit(lambda x: x * mean + jax.random.normal(jax.random.key(0), x.shape))


MADE = {
    "jit": lambda m: jax.jit(lambda x: x - m),
    "result": lambda m: jax.jit(lambda x: m),
    "nested": lambda m: jax.jit(jax.jit(lambda x: x - m)),
    "scan": lambda m: jax.jit(lambda x: jax.lax.scan(lambda c, y: (c + m.sum(), c * y), 0.0, x)),
    "compiled": lambda m: jax.jit(lambda x: x - m).lower(Z).compile(),
    "budget": lambda m: jax.jit(lambda x: x - m, memory_budget="1GiB"),
    "callback": lambda m: jax.jit(lambda x: jax.pure_callback(np.negative, x, x + m)),
    "effect": lambda m: jax.jit(lambda x: jax.debug.print("{}", m.sum()) or x - m),
    "dynamic": lambda m: jax.jit(lambda x: x - m[0], dynamic={"x": ("n",)}),
    "early": lambda m: jax.jit(lambda x: x - m, inline=jax.Inline.JAX_EARLY),
    "lowered": of_lowered, "rule": with_a_rule, "references": with_references, "key": with_a_key,
}


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("lose", [
    lambda x: x.delete(), lambda x: jax.jit(lambda x: x * 2, donate_argnums=0)(x),
], ids=["deleted", "donated"])
def test_functions_go_on_when_an_array_is_gone_that_they_captured(name, lose):
    mean = jnp.full(3, 2.0)
    f = MADE[name](mean)
    before = jax.tree.map(np.array, f(Z))
    lose(mean)
    assert mean.is_deleted()
    for _ in range(2):
        jax.tree.map(np.testing.assert_array_equal, f(Z), before)
    if name == "dynamic":
        equal(f(np.ones(4)), -np.ones(4))


@pytest.mark.parametrize("wrap", [
    jax.vmap, lambda f: jax.vmap(lambda x: f(x)), lambda f: jax.vmap(jax.grad(
        lambda x: f(x).sum())), lambda f: jax.vmap(jax.jacfwd(f)),
], ids=["vmap", "vmap in Python", "grad", "jacfwd"])
@pytest.mark.parametrize("name", ["jit", "dynamic", "early", "references", "key"])
def test_transformations_of_functions_go_on_likewise(name, wrap):
    mean, x = jnp.full(3, 2.0), np.ones((2, 3), np.float32)
    f = wrap(MADE[name](mean))
    before = np.array(f(x))
    mean.delete()
    equal(f(x), before)


@pytest.mark.parametrize("look", [
    lambda f: jax.jit(lambda x: f(x))(Z), lambda f: jax.make_jaxpr(f)(Z),
    lambda f: f.trace(Z).memory(), lambda f: f.lower(Z).as_text(), lambda f: f.eval_shape(Z),
], ids=["called by another", "make_jaxpr", "memory", "lower", "eval_shape"])
@pytest.mark.parametrize("name", ["jit", "references", "key", "dynamic"])
def test_what_was_asked_of_them_before_is_of_no_account(name, look):
    mean = jnp.full(3, 2.0)
    f = MADE[name](mean)
    look(f)
    before = np.array(f(Z))
    mean.delete()
    equal(f(Z), before)


def test_dynamic_shapes_of_themselves():
    scale = jnp.full((), 2.0)
    f = jax.jit(lambda x: x * scale)
    jax.config.update("jax_dynamic_shapes", "auto")
    try:
        for n in (3, 4, 5):
            f(np.ones(n, np.float32))
        scale.delete()
        equal(f(np.ones(5, np.float32)), np.full(5, 2.0))
    finally:
        jax.config.update("jax_dynamic_shapes", "off")


def test_a_program_is_the_same_whatever_ran_before():
    mean = jnp.ones(3)
    inner = jax.jit(lambda x: x * mean)
    texts = []
    for _ in range(2):
        texts.append(jax.jit(lambda x: inner(x) + mean).lower(Z).as_text())
        inner(Z)
    assert texts[0] == texts[1] and texts[0].count("tensor<3xf32>") and len(
        jax.make_jaxpr(lambda x: inner(x) + mean)(Z).consts) == 1


def test_captured_keys_and_references_go_on():
    key, total = jax.random.key(0), jax.new_ref(jnp.zeros(()))

    @jax.jit
    def f(x):
        total[...] += 1
        return jax.random.normal(key, x.shape)

    before = f(Z)
    jax.jit(lambda key: jax.random.fold_in(key, 1), donate_argnums=0)(key)
    equal(f(Z), before)
    assert total[...] == 2


@pytest.mark.parametrize("make", [
    lambda mean: mean, lambda mean: np.broadcast_to(mean, mean.shape),
], ids=["writable", "a view that is not"])
def test_captured_host_arrays_may_change(make):
    array = np.ones(30, np.float32)
    mean = make(array)
    f = jax.jit(lambda x: x + mean)
    mapped, lowered = jax.vmap(f), f.lower(array)
    before = mapped(np.ones((2, 30), np.float32))
    array[:] = 5
    equal(mapped(np.ones((2, 30), np.float32)), before)
    equal(lowered.compile()(np.zeros(30, np.float32)), np.ones(30))


def test_programs_share_one_copy_which_goes_with_them():
    mean = jnp.ones(1000)
    fs = [jax.jit(lambda x, n=n: (x + n) * mean) for n in range(3)]
    outer = jax.jit(lambda x: fs[0](x) + fs[1](x))
    copies = {f.lower(x).compile()._executable.const_args[0].unsafe_buffer_pointer()
              for f in (*fs, outer) for x in (1.0, 1)}
    assert len(copies) == 1 and mean.unsafe_buffer_pointer() not in copies
    known = weakref.ref(fs[2].lower(1.0).compile()._executable.const_args[0])
    fs.clear()
    del outer
    jax.clear_caches()
    assert known() is None


def test_copies_of_programs_are_no_live_arrays():
    mean = jnp.ones(999)
    f = jax.jit(lambda x: (x * mean).sum())
    for x in (1.0, np.ones(1), np.ones((2, 1), np.float32)):
        jax.grad(lambda x: f(x).sum())(1.0)
        f(x)
    assert [x is mean for x in jax.live_arrays() if x.shape == (999,)] == [True]


def test_what_was_captured_when_it_was_gone_is_an_error():
    mean = jnp.ones(3)
    f = jax.jit(lambda x: x + mean)
    f(Z)
    mean.delete()
    with pytest.raises(RuntimeError, match=r"Array has been deleted with shape=float32\[3\]"):
        f(np.ones((2, 3), np.float32))
