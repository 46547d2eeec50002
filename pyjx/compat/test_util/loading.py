"""`jax._src.test_loader`: how tests are found, and which run beside others: here none do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from absl.testing import absltest

__all__ = ["JaxTestLoader", "thread_unsafe_test", "thread_unsafe_test_class"]


class JaxTestLoader(absltest.TestLoader):
    """The loader of tests that programs give to `absltest.main`."""


@contextmanager
def thread_unsafe_test(condition: bool = True) -> Iterator[None]:
    """A context, or a decorator, for tests that cannot run beside others in threads."""
    yield


def thread_unsafe_test_class(condition: bool = True) -> Callable[[type], type]:
    """A decorator of classes of tests that cannot run beside others in threads."""
    return lambda cls: cls
