"""`jax._src.dispatch`: running single operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyjx.core.open_primitives import apply_primitive
from pyjx.runtime.device_put import device_put_p
from pyjx.runtime.result_checks import not_a_number
from pyjx.runtime.tokens import effects_barrier as wait_for_tokens

__all__ = ["apply_primitive", "check_special", "device_put_p", "wait_for_tokens"]


def check_special(name: str, bufs: Sequence[Any]) -> None:
    """FloatingPointError if `debug_nans` or `debug_infs` is set, and an array has such elements.

    >>> import pyjx as jax
    >>> with jax.debug_nans(True):
    ...     check_special("f", [jax.numpy.ones(2)])
    """
    kind = next(filter(None, map(not_a_number, bufs)), None)
    if kind is not None:
        raise FloatingPointError(f"invalid value ({kind}) encountered in {name}")
