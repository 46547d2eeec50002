"""The order of effects from program to program, and waiting for their end.

Programs run while Python goes on. One with effects leaves a token that is ready when it is done;
one with ordered effects takes the token that the last such program of its thread and devices gave.
"""

from __future__ import annotations

import atexit
import threading
from collections import deque
from typing import Any

import numpy as np

from pyjx import jaxlib_api
from pyjx.core.avals import ShapedArray
from pyjx.core.tracebacks import api_boundary
from pyjx.runtime.transfers import put_host

TOKEN = ShapedArray((0,), np.dtype(np.bool_))  # what a token is as a buffer

_MOST_PENDING = 256  # programs whose end is waited for later; then the oldest is waited for


class _Order(threading.local):
    """The token of this thread's last program with ordered effects, by the devices it ran on."""

    def __init__(self) -> None:
        self.tokens: dict[Any, Any] = {}


_order = _Order()
_pending: deque[Any] = deque()  # a token for each program with effects, the oldest first
_failed: deque[Exception] = deque(maxlen=16)  # of those whose end was waited for


def take_order(devices: tuple[Any, ...], sharding: Any) -> Any:
    """What the next program with ordered effects takes. A program that fails gives none back."""
    token = _order.tokens.pop(devices, None)
    if token is None:
        token = put_host(np.zeros(0, np.bool_), TOKEN, sharding, False)
    return token


def give_order(devices: tuple[Any, ...], token: Any) -> None:
    """Keep the token that a program with ordered effects gives."""
    _order.tokens[devices] = token


def add_pending(token: Any) -> None:
    """Keep the token of a program with effects until these are done.

    Where there are too many the oldest is waited for; that it failed is for `effects_barrier` to
    say, not for the program that happens to come now.
    """
    _pending.append(token)
    if len(_pending) > _MOST_PENDING:
        try:
            _wait_for_oldest()
        except jaxlib_api.JaxRuntimeError as error:
            _failed.append(error)


def _wait_for_oldest() -> bool:
    """Whether there was one."""
    try:
        token = _pending.popleft()
    except IndexError:  # another thread waits for it
        return False
    token.block_until_ready()
    return True


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
    while True:
        try:
            if not _wait_for_oldest():
                break
        except jaxlib_api.JaxRuntimeError as failure:  # the others still are to end
            _order.tokens.clear()  # they may hang on the program that failed
            _failed.append(failure)
    if _failed:
        error = _failed.popleft()
        _failed.clear()
        raise error


@atexit.register
def _at_exit() -> None:
    try:
        effects_barrier()
    except Exception as error:
        print(f"pyjx: a program failed: {error}")
