"""Telling XLA which calls to schedule together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyjx.engine.metadata import xla_metadata_call_p
from pyjx.experimental.xla_metadata import xla_metadata_call
from pyjx.lazy import directory, refuse

__all__ = ["scheduling_group", "xla_metadata_call", "xla_metadata_call_p"]
__dir__ = directory(__name__, __all__)
__getattr__ = refuse(__name__)


def scheduling_group(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: calls of the function are in a group of this name.

    >>> import pyjx as jax
    >>> from pyjx.experimental.scheduling_groups import scheduling_group
    >>> f = jax.jit(scheduling_group("first")(jax.numpy.sin))
    >>> 'scheduling_group = "first"' in f.lower(1.0).as_text()
    True
    """
    return xla_metadata_call(scheduling_group=name)  # type: ignore[no-any-return]
