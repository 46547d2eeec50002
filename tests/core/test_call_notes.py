"""Notes on errors that show the user's call: true ones, and never in the error's way."""

import functools
from types import SimpleNamespace

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx.compat.callables import api_boundary
from pyjx.core import call_code, call_notes
from pyjx.example_libraries import optimizers
from pyjx.scipy.spatial.transform import Rotation

X = np.ones((2, 3), np.float32)


class Unreadable(Exception):
    def __str__(self):
        raise RuntimeError("no text")


class Mute:
    def __repr__(self):
        raise RuntimeError("no text")


def fail(*_):
    raise Unreadable


def notes_of(call, error=(TypeError, ValueError)):
    with pytest.raises(error) as caught:
        call()
    return [n for n in getattr(caught.value, "__notes__", ()) if n.startswith("The call")]


@pytest.mark.parametrize("mode", ["off", "quiet_remove_frames", "remove_frames"])
def test_the_users_own_exception_stays_though_it_has_no_text(mode):
    old = jax.config.jax_traceback_filtering
    jax.config.update("jax_traceback_filtering", mode)
    try:
        for call in (lambda: jax.lax.map(fail, X), lambda: jax.lax.scan(fail, 0.0, X),
                     lambda: jax.jit(fail)(X), lambda: jnp.apply_along_axis(fail, 0, X)):
            assert notes_of(call, Unreadable) == []
    finally:
        jax.config.update("jax_traceback_filtering", old)


class Calls:
    def __call__(self, *_):
        raise ValueError("mine")


@pytest.mark.parametrize("fun", [functools.partial(fail), Calls()])
def test_entries_without_a_name_raise_what_they_raise(fun):
    assert notes_of(lambda: api_boundary(fun)(X), (Unreadable, ValueError)) == []


def test_users_objects_are_shown_by_their_class():
    assert notes_of(lambda: jnp.sum(X, axis=7, keepdims=Mute())) == [
        "The call was sum(float32[2,3], axis=7, keepdims=<Mute>)."]
    assert notes_of(lambda: jnp.sum(X, axis=7, keepdims=((Mute(),), 1))) == [
        "The call was sum(float32[2,3], axis=7, keepdims=((<Mute>,), 1))."]


def test_what_goes_wrong_in_a_note_stays_there(monkeypatch):
    monkeypatch.setattr(call_notes, "_shown", fail)
    assert notes_of(lambda: jnp.sum(X, axis=7)) == []


def test_nothing_is_put_into_words_where_the_message_names_the_function(monkeypatch):
    asked = []
    monkeypatch.setattr(call_notes, "_shown", asked.append)
    assert notes_of(lambda: jnp.add(X, jnp.ones(4))) == []
    assert not asked


def test_containers_show_types_of_arrays_and_not_their_elements():
    assert notes_of(lambda: jnp.sum(X, axis=(5,))) == ["The call was sum(float32[2,3], axis=(5,))."]
    assert notes_of(lambda: jnp.sum(X, axis={"a": jnp.ones(3)})) == [
        "The call was sum(float32[2,3], axis={'a': float32[3]})."]
    assert notes_of(lambda: jnp.transpose(X, list(range(9)))) == [
        "The call was transpose(float32[2,3], [0, 1, 2, 3, 4, 5, ...])."]


PLAIN = """
def rebinds(x, axis=None, dtype=None):
    dtype = dtype or "float32"
    return jnp.sum(x, axis=axis, dtype=dtype)

def converts(x, axis):
    x = jnp.asarray(x)
    return jnp.sum(x, axis=axis)

def variadic(axis, *xs, keepdims=False, **options):
    return jnp.sum(xs[0], axis=axis, keepdims=keepdims)

def first(x, /, axis):
    return jnp.sum(x, axis=axis)
"""
plain = {"jnp": jnp}
TURNS = Rotation.from_rotvec(jnp.ones((3, 3)))
EULER = functools.partial(Rotation.from_euler, "xyz")
DEGREES = functools.partial(Rotation.from_euler, degrees=True)
MEAN_OF = functools.partial(Rotation.mean, TURNS)
MEAN = functools.partial(TURNS.mean)
HELD = SimpleNamespace(euler=EULER)
exec(compile(PLAIN, jnp.__file__.replace("__init__", "plain"), "exec"), plain)


@pytest.mark.parametrize(("call", "note"), [
    (lambda: jnp.linspace(0, X, 5, axis=9), "linspace(start=0, stop=float32[2,3], num=5, axis=9)"),
    (lambda: jnp.einsum("ij->ijk", X), "einsum('ij->ijk', float32[2,3])"),
    (lambda: jnp.einsum("ij->ijk", X, optimize="greedy"),
     "einsum('ij->ijk', float32[2,3], optimize='greedy')"),
    (lambda: plain["rebinds"](X, 5), "rebinds(x=float32[2,3], axis=5)"),
    (lambda: plain["converts"](X, 5), "converts(x=float32[2,3], axis=5)"),
    (lambda: plain["converts"](X[None], 5), "converts(x=X[None], axis=5)"),
    (lambda: plain["converts"](
        X[None], 5), "converts(x=..., axis=5)"),  # of several lines
    (lambda: plain["converts"](*[X[None]], 5), "converts(x=..., axis=5)"),
    (lambda: optimizers.piecewise_constant([1], [2]),
     "piecewise_constant(boundaries=[1], values=[2])"),
    (lambda: jax.vmap(fail)({"w": X, "n": "a"}), "vmap(fun=fail)({'w': float32[2,3], 'n': 'a'})"),

    (lambda: plain["variadic"](5, X, 1, keepdims=True, y=2),
     "variadic(5, float32[2,3], 1, keepdims=True, y=2)"),
    (lambda: plain["variadic"](5, X), "variadic(5, float32[2,3])"),
    (lambda: plain["first"](X, 5), "first(float32[2,3], axis=5)"),
    (lambda: Rotation.from_euler("xyz", X[0, :2]),
     "Rotation.from_euler(seq='xyz', angles=X[0, :2])"),
    (lambda: Rotation.from_euler("x" + "yz", angles=X[0, :2] * 1, degrees=True),
     "Rotation.from_euler(seq='xyz', angles=X[0, :2] * 1, degrees=True)"),
    (lambda: EULER(X[0, :2]), "Rotation.from_euler(seq='xyz', angles=X[0, :2])"),
    (lambda: HELD.euler(X[0, :2]), "Rotation.from_euler(seq='xyz', angles=X[0, :2])"),
    (lambda: Rotation.mean(TURNS, X + 1),
     "Rotation.mean(self=Rotation(quat=float32[3,4]), weights=X + 1)"),
    (lambda: MEAN_OF(X + 1),
     "Rotation.mean(self=Rotation(quat=float32[3,4]), weights=X + 1)"),
    (lambda: MEAN(X + 1), "Rotation.mean(weights=X + 1)"),
    (lambda: DEGREES("xyz", X[0, :2]),
     "Rotation.from_euler(seq='xyz', angles=X[0, :2], degrees=True)"),
    (lambda: EULER(X[0, :2], True),
     "Rotation.from_euler(seq='xyz', angles=X[0, :2], degrees=True)"),
    (lambda: TURNS.mean(X + 1), "Rotation.mean(weights=X + 1)"),
    (lambda: jnp.add.reduce(X + 1, 3), "ufunc.reduce(a=X + 1, axis=3)"),
    (lambda: jnp.multiply.accumulate(a=X + 1, axis=2), "ufunc.accumulate(a=X + 1, axis=2)"),
])
def test_calls_of_plain_functions_are_those_that_were_made(call, note):
    assert notes_of(call) == [f"The call was {note}."]


def test_no_call_is_shown_of_functions_that_users_cannot_name():
    def inner(x):
        return jnp.sum(x, axis=7)

    assert call_code.public_name(inner) is None
    assert call_code.public_name(jax.Array.__add__) is None
    assert call_code.public_name(jnp.sum) == "sum"


def test_frames_are_looked_at_once_for_a_note(monkeypatch):
    """An error passes several boundaries, of which one is the user's."""
    asked = []
    monkeypatch.setattr(call_notes, "_users_function_ran", lambda exc: asked.append(exc))
    assert notes_of(lambda: jnp.sum(X, axis=7)) == ["The call was sum(float32[2,3], axis=7)."]
    assert len(asked) == 1


@pytest.mark.parametrize("call", [
    lambda: optimizers.adam(), lambda: optimizers.adam(1, 2, 3, 4, 5),
    lambda: optimizers.adam(0.1, beta1=0.9), lambda: optimizers.momentum(0.1)])
def test_decorated_functions_have_the_names_that_the_user_called(call):
    assert notes_of(call) == []  # as the message names them


def test_notes_of_decorated_functions_have_their_names():
    assert notes_of(lambda: optimizers.sgd(jnp.ones(2))) == [
        "The call was sgd(step_size=float32[2])."]
