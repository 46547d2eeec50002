"""Random keys that are used twice, with the flag `jax_debug_key_reuse`."""

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax
from pyjx.errors import KeyReuseError
from pyjx.experimental.key_reuse import (
    Forward,
    KeyReuseSignature,
    Sink,
    Source,
    check_key_reuse,
    function_type_signature,
)

normal = jax.random.normal


@pytest.fixture(autouse=True)
def watched():
    with jax.debug_key_reuse(True):
        yield


def keys(n=4):
    return jax.random.split(jax.random.key(0), n)


REUSED = {
    "two draws": lambda k, ks: normal(k) + normal(k),
    "a draw and a split": lambda k, ks: (normal(k), jax.random.split(k)),
    "one of an array": lambda k, ks: normal(ks[0]) + normal(ks[0]),
    "all and one": lambda k, ks: (jax.vmap(normal)(ks), normal(ks[2])),
    "by traced indices": lambda k, ks: normal(lax.dynamic_slice(ks, [k.size], [1])[0]) + normal(
        ks[0]),
    "reshaped": lambda k, ks: normal(k.reshape(1)[0]) + normal(k),
    "transposed": lambda k, ks: (normal(ks.reshape(2, 2).T[0, 1]), normal(ks[2])),
    "stacked": lambda k, ks: (jnp.stack([k, k]), normal(k)),
    "after a branch": lambda k, ks: lax.cond(ks.size > 3, normal, lambda k: 0.0, k) + normal(k),
    "in a loop's constant": lambda k, ks: lax.scan(lambda c, _: (c, normal(k)), 0, None, 3),
    "in a loop's carry": lambda k, ks: lax.scan(lambda k, _: (k, normal(k)), k, None, 3),
    "in a while loop": lambda k, ks: lax.while_loop(
        lambda c: c < 1, lambda c: c + jax.random.uniform(k), 0.0),
    "in the elements of a loop": lambda k, ks: (
        lax.scan(lambda c, k: (c, normal(k)), 0, ks), normal(ks[1])),
    "of a jitted function": lambda k, ks: jax.jit(normal)(k) + jax.jit(normal)(k),
    "in a jitted function": lambda k, ks: jax.jit(lambda k: normal(k) + normal(k))(k),
    "a seed's": lambda k, ks: (lambda k: normal(k) + normal(k))(jax.random.key(0)),
    "checkpointed": lambda k, ks: jax.checkpoint(lambda k: normal(k))(k) + normal(k),
    "twice in what is checkpointed": lambda k, ks: jax.grad(
        jax.checkpoint(lambda x: x * normal(k) + normal(k)))(1.0),
}

ONCE = {
    "halves of a split": lambda k, ks: sum(map(normal, jax.random.split(k))),
    "elements": lambda k, ks: normal(ks[0]) + normal(ks[1]) + jax.vmap(normal)(ks[2:]).sum(),
    "folded in": lambda k, ks: normal(jax.random.fold_in(k, 1)) + normal(k),
    "cloned": lambda k, ks: normal(jax.random.clone(k)) + normal(k),
    "in two branches": lambda k, ks: lax.cond(ks.size > 3, normal, jax.random.uniform, k),
    "in a loop": lambda k, ks: lax.fori_loop(
        0, 3, lambda i, c: c + normal(jax.random.fold_in(k, i)), 0.0),
    "a carry that is split": lambda k, ks: lax.scan(
        lambda k, _: (jax.random.split(k)[0], 0.0), k, None, 3),
    "compared": lambda k, ks: (k == k, jax.random.key_data(k), normal(k)),
    "poisson": lambda k, ks: jax.random.poisson(k, 3.0, (2,)),
    "binomial": lambda k, ks: jax.random.binomial(k, 4, 0.5, (2,)),
    "again in a backward pass": lambda k, ks: jax.jit(jax.grad(
        jax.checkpoint(lambda x, k: jnp.sin(x * normal(k)))))(1.0, k),
    "again in a backward loop": lambda k, ks: jax.grad(lambda x: lax.scan(
        jax.checkpoint(lambda c, k: (jnp.sin(c * normal(k)), None)), x, ks)[0])(1.0),
    "without branches": lambda k, ks: lax.scan(lambda c, k: (c, normal(k)), 0, ks),
}


@pytest.mark.parametrize("name", REUSED)
def test_a_key_is_not_used_twice(name):
    with pytest.raises(KeyReuseError, match="onsumed"):
        jax.jit(REUSED[name])(jax.random.key(1), keys())
    if name not in ("by traced indices", "transposed"):  # from call to call parts are known alone
        with pytest.raises(KeyReuseError, match="onsumed"):
            REUSED[name](jax.random.key(1), keys())


def test_a_transposed_array_is_another_one():
    def f(ks):
        swapped = jax.jit(lambda ks: ks.reshape(2, 2).T)(ks)
        return normal(swapped[0, 0]) + normal(ks[1])

    with pytest.raises(KeyReuseError):  # it is not known that they differ
        jax.jit(f)(keys())


@pytest.mark.parametrize("f", ONCE.values(), ids=ONCE)
def test_what_uses_keys_once(f):
    jax.jit(f)(jax.random.key(1), keys())
    f(jax.random.key(1), keys())


def test_keys_remember_from_call_to_call():
    k, f = jax.random.key(0), jax.jit(lambda k: (normal(k), k))
    passed_on = f(k)[1]
    for again in (k, passed_on, k.copy()):
        with pytest.raises(KeyReuseError, match="Previously-consumed key passed to"):
            f(again)
    ks = keys()
    normal(ks[0])
    jax.vmap(normal)(ks[2:])
    with pytest.raises(KeyReuseError, match="Previously-consumed key passed to random_bits at "):
        normal(ks[0])
    with pytest.raises(KeyReuseError):
        jax.vmap(normal)(ks)
    jax.random.permutation(ks[1], 8)
    with pytest.raises(KeyReuseError, match="Previously-consumed key"):
        jax.random.permutation(ks[1], 8)
    with jax.debug_key_reuse(False):
        normal(k)


def line_of(function, offset):
    return f"{__file__}:{function.__code__.co_firstlineno + offset}:"


def test_an_error_says_where_the_key_was_first_used():
    def eager(ks):
        normal(ks[0])
        normal(ks[1])
        normal(jax.random.split(ks[2])[0])
        return normal(ks[1:][0])

    def calls(ks):
        jax.jit(lambda k: normal(k))(ks[0])
        jax.jit(jax.vmap(normal))(ks[1:])
        jax.jit(lambda k: normal(k))(ks[2])

    for function, first in ((eager, 2), (calls, 2)):
        for wrap in (lambda f: f, jax.jit):
            with pytest.raises(KeyReuseError) as caught:
                wrap(function)(keys())
            text = str(caught.value)
            assert f"It was first used at {line_of(function, first)}" in text
            assert text.count("Make a new key for each use: key, subkey = jax.random.split(") == 1
            assert text.count("More: ") == 1
            again = f"It is used again at {line_of(function, first + 2 - (function is calls))}"
            assert wrap is not jax.jit or again in text


def test_a_loop_that_uses_its_key_again_has_a_cure():
    with pytest.raises(KeyReuseError, match="when repeatedly executed") as caught:
        jax.lax.scan(lambda k, _: (k, normal(k)), jax.random.key(0), jnp.arange(3))
    assert "jax.random.split(key)" in str(caught.value) and "unknown" not in str(caught.value)
    assert "jax.random.fold_in(key, i)" in str(caught.value)


def test_results_are_those_without_the_flag():
    draws = [normal(jax.random.key(3), (4,)), jax.random.poisson(jax.random.key(3), 9.0, (4,)),
             jax.random.key_data(jax.random.split(jax.random.key(3)))]
    with jax.debug_key_reuse(False):
        expected = [normal(jax.random.key(3), (4,)),
                    jax.random.poisson(jax.random.key(3), 9.0, (4,)),
                    jax.random.key_data(jax.random.split(jax.random.key(3)))]
    jax.tree.map(np.testing.assert_array_equal, draws, expected)


DRAWN = {
    "randint": lambda k: jax.random.randint(k, (3,), 0, 5),
    "permutation": lambda k: jax.random.permutation(k, 8),
    "shuffled rows": lambda k: jax.random.permutation(k, jnp.eye(3), independent=True),
    "shuffled again": lambda k: jax.random.permutation(jax.random.fold_in(k, 1), 8),
    "choice": lambda k: jax.random.choice(k, 5, (3,)),
    "choice without replacement": lambda k: jax.random.choice(k, 5, (3,), replace=False),
    "beta": lambda k: jax.random.beta(k, 1.0, 2.0, (3,)),
    "ball": lambda k: jax.random.ball(k, 3),
    "wald": lambda k: jax.random.wald(k, 1.0, (3,)),
    "an index of NumPy": lambda k: normal(jax.random.split(k, 3)[np.int64(1)]),
    "an index": lambda k: normal(jax.random.split(k, 3)[jnp.array(1)]),
    "indices": lambda k: jax.vmap(normal)(jax.random.split(k, 3)[np.array([0, 2])]),
    "a mask": lambda k: jax.vmap(normal)(jax.random.split(k, 3)[np.array([True, False, True])]),
    "no keys": lambda k: jax.random.split(k, 3)[np.array([], int)].shape,
    "picked by a program": lambda k: normal(jax.jit(lambda ks: ks[1])(jax.random.split(k, 3))),
}


@pytest.mark.parametrize("draw", DRAWN.values(), ids=DRAWN)
@pytest.mark.parametrize("make", [jax.random.key, jax.random.PRNGKey,
                                  lambda n: jax.random.key(n, impl="rbg")], ids=["", "old", "rbg"])
def test_draws_outside_of_jit_are_those_without_the_flag(draw, make):
    found = draw(make(3))
    with jax.debug_key_reuse(False):
        expected = draw(make(3))
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_signatures():
    k = jax.random.key(0)
    assert function_type_signature(normal, k) == KeyReuseSignature(Sink(0))
    both = function_type_signature(lambda k: (normal(k), k), k)
    assert both == KeyReuseSignature(Sink(0), Forward(0, 1))
    assert function_type_signature(jax.random.split, k) == KeyReuseSignature(Sink(0), Source(0))
    assert function_type_signature(jax.random.fold_in, k, 1) == KeyReuseSignature(Source(0))
    first = function_type_signature(lambda ks: normal(ks[0]), keys(2))
    assert first == KeyReuseSignature(Sink(0, np.array([True, False])))
    assert first != KeyReuseSignature(Sink(0)) and hash(first) != hash(KeyReuseSignature(Sink(0)))
    assert KeyReuseSignature(Forward(0, 1)) != KeyReuseSignature(Forward(0, 2))
    check_key_reuse(normal, k)
    with pytest.raises(KeyReuseError):
        check_key_reuse(lambda k: normal(k) + normal(k), k)
    assert repr(first) == "KeyReuseSignature(Sink(0, [True, False]))"
