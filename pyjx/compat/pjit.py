"""`jax._src.pjit`: calls of jitted functions, and where values lie along Explicit axes."""

from __future__ import annotations

from pyjx.experimental.pjit import pjit
from pyjx.extend.core.primitives import jit_p
from pyjx.lax import with_sharding_constraint
from pyjx.sharding import auto_axes, explicit_axes, reshard

__all__ = ["auto_axes", "explicit_axes", "jit_p", "pjit", "reshard", "with_sharding_constraint"]
