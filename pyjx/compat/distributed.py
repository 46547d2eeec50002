"""`jax._src.distributed`: the group of processes."""

from __future__ import annotations

from pyjx.distributed import initialize, is_initialized, shutdown
from pyjx.runtime.processes import group as global_state

__all__ = ["global_state", "initialize", "is_initialized", "shutdown"]
