"""Effects of primitives that libraries bring: they come from types and parameters."""

from __future__ import annotations

import numpy as np

import pyjx as jax
from pyjx import numpy as jnp
from pyjx.extend import core as jex
from pyjx.interpreters import ad, batching
from pyjx.lax.callbacks import IOEffect


class Noise(jex.Effect):
    """What the primitive of the tests below does."""


noise = Noise()


def noisy_primitive():
    """Its effects are told by the types and parameters of each equation."""
    noisy_p = jex.Primitive("noisy_of_test")

    def types_and_effects(x, *, axis):
        effects = {noise} if x.dtype == np.float32 else set()
        return x, effects | ({jax.core.NamedAxisEffect(axis)} if axis else set())

    noisy_p.def_effectful_abstract_eval(types_and_effects)
    ad.primitive_jvps[noisy_p] = lambda primals, tangents, axis: (
        noisy_p.bind(*primals, axis=axis), tangents[0])
    batching.fancy_primitive_batchers[noisy_p] = lambda data, operands, dims, axis: (
        operands[0] * data.size if axis else noisy_p.bind(*operands, axis=None), dims[0])
    return noisy_p


def test_effects_are_those_of_each_equation():
    noisy_p = noisy_primitive()

    def f(x, n):
        n = noisy_p.bind(n, axis=None)
        return noisy_p.bind(x, axis=None), noisy_p.bind(n, axis=None)

    def effects(fun, *args):
        return [e.effects for e in jax.make_jaxpr(fun)(*args).eqns if e.primitive is noisy_p]

    silent, loud = frozenset(), frozenset({noise})
    assert effects(f, 1.0, 2) == [silent, loud, silent]
    assert effects(jax.vmap(f), jnp.ones(3), jnp.ones(3, int)) == [silent, loud, silent]
    assert effects(lambda x, n: jax.jvp(lambda x: f(x, n), (x,), (x,)), 1.0, 2) == [
        silent, loud, silent]
    assert noisy_p.abstract_eval(jax.typeof(2), axis=None) == (jax.typeof(2), silent)
    assert noisy_p.is_effectful({"axis": None}) and not jex.Primitive("quiet").is_effectful({})


def test_an_operation_goes_to_the_axis_that_its_types_tell_it_reads():
    noisy_p = noisy_primitive()
    mapped = jax.vmap(lambda x: x + noisy_p.bind(jnp.float32(2), axis="i"), axis_name="i")
    assert mapped(jnp.zeros(3)).tolist() == [6, 6, 6]  # a constant, before any types were asked
    noisy_p.abstract_eval(jax.typeof(jnp.float32(1)), axis=None)  # as another thread may do
    assert mapped(jnp.zeros(3)).tolist() == [6, 6, 6]


def test_effects_of_users_show_as_their_objects():
    assert repr(noise).startswith("<tests.test_extend_effects.Noise object at 0x")
    assert repr(jax.core.NamedAxisEffect("i")) == "NamedAxisEffect(i)"


def test_effects_of_callbacks_can_be_derived_from():
    class Logged(IOEffect):
        """A callback writes a log."""

    assert Logged() == Logged() != IOEffect()
    assert len({Logged(), Logged(), IOEffect()}) == 2
