"""Values as error messages show them."""

import pytest

import pyjx as jax
from pyjx.core.value_texts import shortened


def test_long_texts_lose_their_middle():
    assert shortened("a" * 98) == repr("a" * 98)
    assert shortened("a" * 99 + "b") == f"'{'a' * 47}...{'a' * 47}b'"
    assert len(shortened([*range(10**4)])) == 100


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
