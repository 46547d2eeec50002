"""`jax._src.pjit`: calls of jitted functions."""

from __future__ import annotations

from pyjx.engine.calls import jit_p
from pyjx.experimental.pjit import pjit
from pyjx.runtime.resharding import auto_axes

__all__ = ["auto_axes", "jit_p", "pjit"]
