"""`jax._src.xla_metadata_lib`: what XLA is told of operations that are made now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyjx.core.name_stack import thread_state

__all__ = ["current_xla_metadata", "filter_nones"]


def current_xla_metadata() -> dict[str, Any] | None:
    """The metadata of the contexts that are entered, None where there is none.

    >>> from pyjx.experimental.xla_metadata import set_xla_metadata
    >>> with set_xla_metadata(tag="first"):
    ...     current_xla_metadata()
    {'tag': 'first'}
    """
    metadata = thread_state.program.metadata
    return dict(metadata) if metadata else None


def filter_nones(d: Mapping[str, Any]) -> dict[str, Any]:
    """The entries that are not None.

    >>> filter_nones({"a": 1, "b": None})
    {'a': 1}
    """
    return {name: value for name, value in d.items() if value is not None}
