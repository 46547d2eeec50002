"""What callables are made of is told, ends, and calls none of them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx.core.unwrapping import layers, transformations, users_function, users_place
from pyjx.core.value_texts import in_short


def plain(x: Any) -> Any:
    return x


def around(fun: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(fun)
    def wrapper(*args: Any) -> Any:
        return fun(*args)

    return wrapper


class Any_:
    """What answers to every name, and must not be called."""

    def __getattr__(self, name: str) -> Any:
        return self

    def __call__(self, *_: Any) -> Any:
        raise AssertionError("it was called")


class Endless:
    @property
    def __wrapped__(self) -> Endless:
        return Endless()

    def __call__(self, x: Any) -> Any:
        return x


class Failing(Endless):
    @property
    def __wrapped__(self) -> Endless:
        raise RuntimeError("no")


@pytest.mark.parametrize(("fun", "inner"), [
    (plain, plain), (around(plain), plain), (functools.partial(around(plain), 1), plain),
    (jax.vmap(jax.jit(plain)), plain), (Endless().__call__, Endless.__call__),
    (jnp.sin, None), (print, None), (jax.vmap(jnp.sin), None), (Any_(), None), (Endless(), None)],
    ids=range(10))
def test_the_innermost_function_of_the_users_is_found(fun: Any, inner: Any) -> None:
    assert users_function(fun) is inner
    assert (users_place(fun) == "") == (inner is None)


def test_a_function_of_the_users_around_one_of_the_library_keeps_its_place() -> None:
    @functools.wraps(jnp.sin)
    def mine(x: Any) -> Any:
        return x

    assert users_function(mine) is mine
    assert in_short(mine).startswith(f"sin ({__file__}:")


@pytest.mark.parametrize(("fun", "names"), [
    (jax.vmap(jax.grad(plain)), ["vmap", "grad"]), (jax.vmap(jax.jit(plain)), ["vmap"]),
    (jax.vmap(around(plain)), ["vmap"]), (around(jax.vmap(plain)), []), (plain, []),
    (jax.hessian(plain), ["jacfwd", "jacrev"]), (jax.checkpoint(plain), ["checkpoint"]),
    (jax.named_call(plain, name="a"), []), (jax.vmap(jnp.sin), []), (jax.vmap(Any_()), [])],
    ids=range(10))
def test_names_are_those_of_public_transformations(fun: Any, names: list[str]) -> None:
    assert transformations(fun) == names


def test_walks_end_and_go_as_deep_as_users_do() -> None:
    assert len(layers(Endless())) == 1000
    assert len(layers(Failing())) == 1
    deep, wrapped = plain, plain
    for _ in range(300):
        deep, wrapped = jax.vmap(deep), around(wrapped)
    assert users_function(deep) is users_function(wrapped) is plain
    assert in_short(deep).startswith("vmap(" * 6 + "...(plain)))))))")


def test_objects_of_the_users_are_not_called() -> None:
    g = jax.vmap(Any_())

    @jax.jit
    def f(x: Any, k: Any = g) -> Any:
        return x

    assert f(1.0) == 1
    in_short(g)
