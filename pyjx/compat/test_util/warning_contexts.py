"""`jax._src.test_warning_util`: contexts, and decorators, that say what becomes of warnings."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["ignore_warning", "raise_on_warnings", "record_warnings"]


@contextmanager
def ignore_warning(*, message: str | None = None, category: type[Warning] = Warning
                   ) -> Iterator[None]:
    """Warnings of a category that begin with a regular expression are not shown."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=message or "", category=category)
        yield


@contextmanager
def raise_on_warnings() -> Iterator[None]:
    """Warnings are errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@contextmanager
def record_warnings() -> Iterator[list[warnings.WarningMessage]]:
    """Warnings are not shown, but put into the list that the context gives, each time.

    >>> with record_warnings() as seen:
    ...     warnings.warn("late")
    >>> [str(warning.message) for warning in seen]
    ['late']
    """
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        yield seen
