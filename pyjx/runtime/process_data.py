"""Arrays over several processes, of what each process has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pyjx import tree_util
from pyjx.core import dtypes
from pyjx.core.prefixes import broadcast_argument
from pyjx.runtime.array_parts import check_has_devices, make_array_from_callback
from pyjx.runtime.device_put import device_put
from pyjx.runtime.processes import group
from pyjx.runtime.sharding import Sharding, parts_along


def make_array_from_process_local_data(sharding: Any, local_data: Any,
                                       global_shape: Any = None) -> Any:
    """The array whose parts on the devices of this process are `local_data`.

    Args:
      sharding: of the whole array, or a pytree prefix of `local_data` of shardings.
      local_data: a pytree of what this process has: along each dimension its parts one after the
        other, or all of the array. What several processes have must be equal in them.
      global_shape: of the whole array; None, for it or for a dimension, where `local_data` holds
        this process's parts alone.

    Raises:
      ValueError: a dimension is neither that of the whole nor that of this process's parts.

    >>> import pyjx as jax
    >>> import numpy as np
    >>> mesh = jax.make_mesh((1,), ("data",))
    >>> rows = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("data"))
    >>> jax.make_array_from_process_local_data(rows, np.ones((2, 3), "f4")).shape
    (2, 3)
    """
    leaves, tree = tree_util.tree_flatten(local_data)
    name = "make_array_from_process_local_data"
    shardings = broadcast_argument(f"{name} sharding", sharding, local_data, None)
    shapes = [None] * len(leaves) if global_shape is None else broadcast_argument(
        f"{name} global_shape", global_shape, local_data, _is_shape)
    return tree_util.tree_unflatten(tree, [
        _array(s, x if dtypes.is_extended(getattr(x, "dtype", None)) else np.asarray(x), shape)
        for s, x, shape in zip(shardings, leaves, shapes, strict=True)])


def _is_shape(x: Any) -> bool:
    return x is None or (isinstance(x, Sequence)
                         and all(n is None or not isinstance(n, Sequence) for n in x))


def _array(sharding: Any, local: Any, global_shape: Any) -> Any:
    ndim = local.ndim
    if not isinstance(sharding, Sharding):
        return _put_alone(sharding, local, global_shape)
    check_has_devices(sharding, "jax.make_array_from_process_local_data")
    counts = parts_along(sharding, ndim)  # of parts along each dimension
    mine = [sorted({index[i].start or 0 for index in
                    sharding.addressable_devices_indices_map(counts).values()})
            for i in range(ndim)]  # which of these this process has
    if global_shape is None:
        global_shape = (None,) * ndim
    if not isinstance(global_shape, Sequence) or len(global_shape) != ndim:
        raise ValueError("make_array_from_process_local_data: global_shape must have as many "
                         f"dimensions as local_data, got {global_shape} for {local.shape}.")
    shape = tuple([
        _whole_size(i, size, len(has), count) if whole is None else whole
        for i, (size, has, count, whole) in enumerate(
            zip(local.shape, mine, counts, global_shape, strict=True))])
    part = sharding.shard_shape(shape)
    for i, (size, has) in enumerate(zip(local.shape, mine, strict=True)):
        if size not in (shape[i], part[i] * len(has)):
            raise ValueError(
                "Invalid host data, each dimension should match either global or process shape. "
                f"In dimension {i}, the process data has {size} elements. Process addresses "
                f"{part[i] * len(has)} elements and global_shape={shape}.")

    def cut(index: tuple[slice, ...]) -> Any:
        return local[tuple([
            s if local.shape[i] == shape[i]
            else _at(mine[i].index((s.start or 0) // part[i]), part[i])
            for i, s in enumerate(index)])]

    return make_array_from_callback(shape, sharding, cut, dtype=local.dtype)


def _put_alone(target: Any, local: Any, global_shape: Any) -> Any:
    """A device, a spec or a Format says where the data of a process goes that has all of it."""
    if group.client is not None:
        raise TypeError("make_array_from_process_local_data: among several processes the sharding "
                        f"is a Sharding, got {target!r} of type {type(target)}.")
    if global_shape is not None and tuple(global_shape) != local.shape:
        raise ValueError("make_array_from_process_local_data: a single process has all of the "
                         f"array. Got {global_shape=} for {local.shape=}.")
    return device_put(local, target)


def _at(position: int, size: int) -> slice:
    return slice(position * size, (position + 1) * size)


def _whole_size(i: int, size: int, has: int, count: int) -> int:
    if size % has:
        raise ValueError(f"make_array_from_process_local_data: dimension {i} of the process data "
                         f"has {size} elements, which is not a multiple of the {has} parts that "
                         "this process has of it.")
    return size // has * count
