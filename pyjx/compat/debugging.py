"""`jax._src.debugging`: looking at values inside compiled programs."""

from __future__ import annotations

from typing import Any

import pyjx.debug
from pyjx.debug import callback as debug_callback
from pyjx.debug import print as debug_print
from pyjx.debug.shardings import inspect_sharding_p
from pyjx.lax.callbacks import DebugEffect, OrderedDebugEffect, debug_callback_p

__all__ = ["debug_callback", "debug_callback_p", "debug_effect", "debug_print",
           "inspect_sharding_p", "ordered_debug_effect"]

debug_effect, ordered_debug_effect = DebugEffect(), OrderedDebugEffect()


def __getattr__(name: str) -> Any:
    return getattr(pyjx.debug, name)
