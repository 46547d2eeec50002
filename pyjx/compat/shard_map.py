"""`jax._src.shard_map`: programs for each device of a mesh."""

from __future__ import annotations

from typing import Any

from pyjx.experimental.shard_map import shard_map
from pyjx.lax import pcast
from pyjx.parallel.calls import shard_map_p
from pyjx.parallel.mapping import smap

__all__ = ["pvary", "shard_map", "shard_map_p", "smap"]


def pvary(x: Any, axis_name: Any) -> Any:
    """Values that are taken to vary along the axes."""
    return pcast(x, axis_name, to="varying")
