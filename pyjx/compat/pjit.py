"""`jax._src.pjit`: calls of jitted functions."""

from __future__ import annotations

from pyjx.experimental.pjit import pjit
from pyjx.extend.core.primitives import jit_p
from pyjx.sharding import auto_axes

__all__ = ["auto_axes", "jit_p", "pjit"]
