"""`jax._src.core`: programs, types and interpreters."""

from __future__ import annotations

from typing import Any

import pyjx.core
import pyjx.errors
import pyjx.extend.core
import pyjx.extend.core.primitives
from pyjx.compat.contexts import (
    OpaqueTraceState,
    TracingContext,
    set_current_trace,
    take_current_trace,
    trace_ctx,
    trace_state_clean,
)
from pyjx.core.trace import EagerTrace as EvalTrace
from pyjx.runtime.executable import physical_aval

__all__ = [
    "EvalTrace", "OpaqueTraceState", "TracingContext", "physical_aval", "set_current_trace",
    "take_current_trace", "trace_ctx", "trace_state_clean",
]

_PUBLIC = (pyjx.extend.core, pyjx.core, pyjx.extend.core.primitives, pyjx.errors)


def __getattr__(name: str) -> Any:
    for public in _PUBLIC:
        if name in public.__all__:
            return getattr(public, name)
    raise AttributeError(f"module 'jax._src.core' has no attribute {name!r} here")
