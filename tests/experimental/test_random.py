"""Generators that keep count, against keys made by hand."""

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax
from pyjx.experimental.random import StatefulPRNG, stateful_rng


def key_of(seed, i):
    return jax.random.fold_in(jax.random.key(seed), i)


def test_each_draw_takes_the_next_key():
    rng = stateful_rng(3)
    draws = [
        (rng.random(), lambda k: jax.random.uniform(k)),
        (rng.random((2, 3), "bfloat16"), lambda k: jax.random.uniform(k, (2, 3), "bfloat16")),
        (rng.uniform(2, 5, 4), lambda k: jax.random.uniform(k, (4,), minval=2, maxval=5)),
        (rng.uniform(jnp.arange(2.0), 3.0),
         lambda k: jax.random.uniform(k, (2,), minval=jnp.arange(2.0), maxval=3.0)),
        (rng.normal(1.0, 2.0, size=3), lambda k: jax.random.normal(k, (3,)) * 2 + 1),
        (rng.normal(size=2, dtype=complex), lambda k: jax.random.normal(k, (2,), complex)),
        (rng.integers(7, size=5), lambda k: jax.random.randint(k, (5,), 0, 7)),
        (rng.integers(-3, 9, dtype="int8"), lambda k: jax.random.randint(k, (), -3, 9, "int8")),
    ]
    for i, (drawn, by_hand) in enumerate(draws):
        expected = by_hand(key_of(3, i))
        assert drawn.dtype == expected.dtype
        np.testing.assert_array_equal(drawn, expected)
    assert int(rng._counter[...]) == len(draws)


def test_keys_and_parts():
    rng = stateful_rng(3)
    data = jax.random.key_data
    assert (data(rng.key()) == data(key_of(3, 0))).all()
    assert (data(rng.key(2)) == data(jax.random.split(key_of(3, 1), 2))).all()
    part, children = rng.split(2), rng.spawn(2)
    assert (data(part._base_key) == data(jax.random.split(key_of(3, 2), 2))).all()
    assert part._counter[...].tolist() == [0, 0]
    assert (data(children[1]._base_key) == data(jax.random.split(key_of(3, 3), 2)[1])).all()
    assert isinstance(children[0], StatefulPRNG) and len(children) == 2


def test_in_transformed_functions():
    rng, same = stateful_rng(3), stateful_rng(3)
    draw = jax.jit(lambda rng: (rng.random(), rng.normal(size=2)))
    for _ in range(2):
        a, b = draw(rng)
        assert a == same.random() and (b == same.normal(size=2)).all()
    ys = lax.scan(lambda c, _: (c, rng.random()), None, None, length=3)[1]
    assert ys.tolist() == [float(same.random()) for _ in range(3)]
    many, single = rng.split(3), same.spawn(3)
    assert jax.vmap(lambda r: r.random())(many).tolist() == [float(r.random()) for r in single]
    ys = lax.scan(lambda c, r: (c, r.random()), None, many)[1]
    assert ys.tolist() == [float(r.random()) for r in single]
    assert float(jax.grad(lambda x: x * rng.normal())(1.0)) == float(same.normal())
    assert float(jax.jit(lambda seed: stateful_rng(seed).random())(3)) == float(
        stateful_rng(3).random())


def test_seeds():
    assert stateful_rng()._base_key.shape == ()
    assert stateful_rng(1, impl="rbg").random().shape == ()
    with pytest.raises(TypeError, match="requires an explicit seed to be set"):
        jax.jit(lambda: stateful_rng().random())()
    for transformed in (jax.grad(lambda x: x * stateful_rng().random()),
                        jax.vmap(lambda x: x * stateful_rng().random(), axis_size=2, in_axes=None)):
        with pytest.raises(TypeError, match="requires an explicit seed to be set"):
            transformed(1.0)
    with pytest.raises(TypeError, match="seed must be an integer"):
        stateful_rng(1.5)


def test_examples_of_vmap_do_not_share_a_generator():
    rng = stateful_rng(3)
    for f in (jax.vmap(lambda rng, x: x * rng.uniform(), in_axes=(None, 0)),
              jax.jit(jax.vmap(lambda rng, x: x * rng.uniform(), in_axes=(None, 0))),
              lambda rng, x: jax.vmap(lambda x: x * rng.uniform())(x)):
        with pytest.raises(Exception, match="on an unbatched array reference of type Ref"):
            f(rng, jnp.ones(2))
    assert int(rng._counter[...]) == 0


def test_what_a_generator_is_made_of():
    key = jax.random.key(0)
    for wrong in (np.array([0, 1], np.uint32), 3):
        with pytest.raises(ValueError, match="Expected base_key to be a typed PRNG key; got"):
            StatefulPRNG(wrong, jax.new_ref(0))
    for wrong in (0, jnp.int32(0), jax.new_ref(0.5)):
        with pytest.raises(ValueError, match="Expected counter to be a reference to integers"):
            StatefulPRNG(key, wrong)
    assert StatefulPRNG(key, jax.new_ref(0)).uniform() == stateful_rng(0).uniform()
