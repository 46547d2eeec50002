"""`jax._src.op_shardings`: XLA's shardings, compared and asked for the parts of devices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pyjx.runtime.sharding import Index, Shape, indices_of, partitions
from pyjx.runtime.sharding import is_replicated_hlo as is_hlo_sharding_replicated
from pyjx.runtime.sharding import same_hlo as are_hlo_shardings_equal

__all__ = [
    "are_hlo_shardings_equal", "get_num_ways_dim_sharded", "is_hlo_sharding_replicated",
    "op_sharding_to_indices", "op_sharding_to_numpy_indices",
]


def get_num_ways_dim_sharded(hlo_sharding: Any) -> tuple[list[int], int]:
    """In how many parts each dimension is cut, and how many devices have each part.

    >>> from pyjx.jaxlib_api import HloSharding
    >>> get_num_ways_dim_sharded(HloSharding.replicate())
    ([], 1)
    """
    if hlo_sharding.is_replicated():
        return [], 1
    tiles = list(partitions(hlo_sharding))
    return tiles, math.prod(hlo_sharding.tile_assignment_dimensions()) // math.prod(tiles)


def op_sharding_to_indices(op_sharding: Any, shape: Shape, num_devices: int) -> tuple[Index, ...]:
    """The part of each device, as a tuple of slices."""
    return indices_of(op_sharding, tuple(shape), num_devices)


def op_sharding_to_numpy_indices(hlo_sharding: Any, shape: Shape, num_devices: int
                                 ) -> np.ndarray[Any, Any]:
    """As `op_sharding_to_indices`, in an array of objects."""
    indices = np.empty(num_devices, dtype=object)
    indices[:] = op_sharding_to_indices(hlo_sharding, shape, num_devices)
    return indices
