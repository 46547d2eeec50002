"""Settings that tests run with: flags, and variables of the environment."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

import pyjx
from pyjx import configuration

__all__ = [
    "assert_global_configs_unchanged", "global_config_context", "set_env",
    "strict_promotion_if_dtypes_match", "thread_local_config_context", "with_config",
    "with_global_config",
]


@contextmanager
def thread_local_config_context(**kwds: Any) -> Iterator[None]:
    """A context in which flags, named as in `jax.config`, have other values in this thread."""
    with ExitStack() as stack:
        for name, value in kwds.items():
            state = getattr(configuration, name.removeprefix("jax_"))
            stack.enter_context(state(value))
        yield


@contextmanager
def global_config_context(**kwds: Any) -> Iterator[None]:
    """A context in which flags, named as in `jax.config`, have other values in all threads."""
    before = {name: pyjx.config.read(name) for name in kwds}
    try:
        for name, value in kwds.items():
            pyjx.config.update(name, value)
        yield
    finally:
        for name, value in before.items():
            pyjx.config.update(name, value)


def _with_context(context: Callable[..., Any], attribute: str, kwds: dict[str, Any]
                  ) -> Callable[[Any], Any]:
    def decorate(test: Any) -> Any:
        if isinstance(test, type):
            setattr(test, attribute, {**getattr(test, attribute, {}), **kwds})
            return test

        @functools.wraps(test)
        def run(*args: Any, **kwargs: Any) -> Any:
            with context(**kwds):
                return test(*args, **kwargs)

        return run

    return decorate


def with_config(**kwds: Any) -> Callable[[Any], Any]:
    """A decorator: the test, or the class of tests, runs with other values of flags."""
    return _with_context(thread_local_config_context, "_default_thread_local_config", kwds)


def with_global_config(**kwds: Any) -> Callable[[Any], Any]:
    """As `with_config`, with values that other threads see too."""
    return _with_context(global_config_context, "_default_global_config", kwds)


def strict_promotion_if_dtypes_match(dtypes: Sequence[Any]) -> Any:
    """A context of strict promotion of dtypes if they are one, else of the standard one."""
    same = len({np.dtype(t) for t in dtypes}) == 1
    return pyjx.numpy_dtype_promotion("strict" if same else "standard")


@contextmanager
def set_env(**kwargs: str | None) -> Iterator[None]:
    """A context in which environment variables have other values; None takes one away."""
    before = {name: os.environ.get(name) for name in kwargs}

    def put(values: Mapping[str, str | None]) -> None:
        for name, value in values.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value

    put(kwargs)
    try:
        yield
    finally:
        put(before)


@contextmanager
def assert_global_configs_unchanged() -> Iterator[None]:
    """A context that raises AssertionError if flags have other values for all threads after it."""
    before = dict(pyjx.config.values)
    yield
    after = dict(pyjx.config.values)
    changed = {name: (before.get(name), value) for name, value in after.items()
               if before.get(name) != value}
    if changed:
        raise AssertionError(f"flags are left with other values: {changed}")
