"""`jax._src.core`: programs, types and interpreters."""

from __future__ import annotations

from typing import Any

import pyjx.core
import pyjx.extend.core
from pyjx.compat.avals import raise_to_shaped
from pyjx.core.contexts import (
    AxisEnv,
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
    "AxisEnv", "EvalTrace", "OpaqueTraceState", "TracingContext", "physical_aval",
    "raise_to_shaped", "set_current_trace", "take_current_trace", "trace_ctx",
    "trace_state_clean", "typeof",
]

typeof = pyjx.core.get_aval


def __getattr__(name: str) -> Any:
    for public in (pyjx.extend.core, pyjx.core):
        if name in public.__all__:
            return getattr(public, name)
    raise AttributeError(f"module 'jax._src.core' has no attribute {name!r} here")
