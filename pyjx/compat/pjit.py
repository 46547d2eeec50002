"""`jax._src.pjit`: calls of jitted functions, and where values lie along Explicit axes."""

from __future__ import annotations

from pyjx.engine.explicit import reshard_p
from pyjx.experimental.layout import layout_constraint_p
from pyjx.experimental.pjit import pjit
from pyjx.extend.core.primitives import jit_p
from pyjx.lax import with_sharding_constraint
from pyjx.runtime.constraints import sharding_constraint_p
from pyjx.sharding import auto_axes, explicit_axes, reshard

__all__ = [
    "auto_axes", "explicit_axes", "jit_p", "layout_constraint_p", "pjit", "reshard", "reshard_p",
    "sharding_constraint_p", "with_sharding_constraint",
]
