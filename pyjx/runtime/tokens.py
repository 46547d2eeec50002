"""The order of effects from program to program, and waiting for their end.

Programs run while Python goes on. One with effects leaves a token that is ready when it is done;
one with ordered effects takes the token that the last such program on its device gave.
"""

from __future__ import annotations

import atexit
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from pyjx import jaxlib_api
from pyjx.core.avals import ShapedArray
from pyjx.core.tracebacks import api_boundary
from pyjx.runtime.sharding import single_device_sharding

TOKEN = ShapedArray((0,), np.dtype(np.bool_))  # what a token is as a buffer


class _Order(threading.local):
    """The token of the last program with ordered effects, for each device; of this thread."""

    def __init__(self) -> None:
        self.tokens: dict[Any, Any] = {}
        self.failures = 0


_order = _Order()
_pending: dict[Any, Any] = {}  # (thread, device) -> a token for the last program with effects
_failures = 0


def after_failure() -> None:
    """A program has failed: what comes later does not wait for it."""
    global _failures
    _failures += 1


def token_for(device: Any) -> Any:
    """What the next program with ordered effects takes."""
    if _order.failures != _failures:
        _order.tokens.clear()
        _order.failures = _failures
    token = _order.tokens.get(device)
    if token is None:
        token = jaxlib_api.batched_device_put(
            TOKEN, single_device_sharding(device), [np.zeros(0, np.bool_)], [device], True)
    return token


def run(loaded: Any, device: Any, sharding: Any, before: Sequence[Any], operands: Sequence[Any],
        ordered: bool, handlers: Sequence[Any]) -> list[Any]:
    """The results of a program with effects."""
    if ordered:
        handlers = [jaxlib_api.result_handler(TOKEN, sharding, True), *handlers]
    given = [*before, token_for(device), *operands] if ordered else [*before, *operands]
    results = loaded.execute_sharded(given, with_tokens=True)
    _pending[threading.get_ident(), device] = results.consume_token()
    outs: list[Any] = results.consume_with_handlers(handlers)
    if ordered:
        _order.tokens[device] = outs.pop(0)
    return outs


@api_boundary
def effects_barrier() -> None:
    """Wait until the programs that have been called have had all their effects.

    Raises:
      JaxRuntimeError: one of them failed.

    >>> import pyjx as jax
    >>> jax.jit(lambda: jax.debug.print("done"))(), jax.effects_barrier()
    done
    (None, None)
    """
    for key, token in list(_pending.items()):
        _pending.pop(key, None)
        token.block_until_ready()


@atexit.register
def _at_exit() -> None:
    while _pending:
        try:
            effects_barrier()
        except Exception as error:  # the others still are to come
            print(f"pyjx: a program failed: {error}")
