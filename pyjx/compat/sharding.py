"""`jax._src.sharding`: how arrays are cut into parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyjx.sharding
from pyjx.runtime.sharding import Index, Shape, Sharding

__all__ = ["Index", "Sharding", "common_devices_indices_map"]


def common_devices_indices_map(s: Sharding, global_shape: Shape) -> Mapping[Any, Index]:
    """The part of each device, as a tuple of slices."""
    return s.devices_indices_map(global_shape)  # type: ignore[no-any-return]


def __getattr__(name: str) -> Any:
    return getattr(pyjx.sharding, name)
