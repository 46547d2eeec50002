"""Values as error messages show them."""

import numpy as np
import pytest

import pyjx as jax
from pyjx.core.value_texts import shortened, shortened_lines


def test_long_texts_lose_their_middle():
    assert shortened("a" * 98) == repr("a" * 98)
    assert shortened("a" * 99 + "b") == f"'{'a' * 47}...{'a' * 47}b'"


@pytest.mark.parametrize(("value", "text"), [
    ([*range(10**4)], "[0, 1, 2, 3, 4, 5, ...]"), (np.zeros((200, 3)), "float64[200,3]"),
    ([[*range(10**4)]], "[[0, 1, 2, 3, 4, 5, ...]]"), (np.zeros(2), "array([0., 0.])"),
    (dict.fromkeys(range(100)), "{0: None, 1: None, 2: None, 3: None, 4: None, 5: None, ...}"),
    (np.ones((4, 5)), "float64[4,5]"), ((1, "a"), "(1, 'a')")], ids=range(7))
def test_large_values_are_shown_by_what_they_are(value, text):
    assert shortened(value) == text


def test_messages_of_any_length_are_shortened():
    assert shortened_lines("a\n" * 100 + "b" * 300) == "a\n" * 100 + "b" * 300
    few, many = [shortened_lines("\n".join(["x" * 700] * n)) for n in (3, 500)]
    assert [len(line) for line in few.split("\n")] == [600] * 3
    assert many.split("\n")[8] == "  ... (486 lines more)"
    assert len(many) < 10_000


class Unspeakable:
    def __repr__(self):
        raise RuntimeError("no")


@pytest.mark.parametrize("value", [
    *[type(name, (), {})() for name in ("array", "deque", "dict", "list", "str", "int")],
    Unspeakable(), [Unspeakable()], 10**5000], ids=range(9))
def test_any_value_can_be_shown(value):
    assert type(value).__name__ in shortened(value)


@pytest.mark.parametrize("name", ["array", "deque"])
def test_classes_named_as_those_of_python_in_messages(name):
    with pytest.raises(TypeError, match=f"{name} object> of .* is not a valid JAX type"):
        jax.vmap(lambda x: x)(type(name, (), {})())
