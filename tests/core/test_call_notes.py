"""Notes on errors that show the user's call: true ones, and never in the error's way."""

import functools

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx.core import call_notes, tracebacks

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
    assert notes_of(lambda: tracebacks.api_boundary(fun)(X), (Unreadable, ValueError)) == []


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
