"""Arrays made of the parts that devices, or processes, have or are to have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pyjx import tree_util
from pyjx.core import dtypes
from pyjx.core.avals import ShapedArray
from pyjx.core.layouts import AutoLayout, Format, ShardingLike
from pyjx.core.meshes import AbstractMesh
from pyjx.core.prefixes import broadcast_argument
from pyjx.core.value_texts import in_short
from pyjx.runtime.array import ArrayImpl, check_part, put
from pyjx.runtime.device_put import device_put
from pyjx.runtime.processes import group
from pyjx.runtime.sharding import Sharding, parts_along


def make_array_from_process_local_data(sharding: ShardingLike, local_data: Any,
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


def _array(sharding: ShardingLike, local: Any, global_shape: Any) -> Any:
    ndim = local.ndim
    if hasattr(sharding, "dtype"):
        raise TypeError("make_array_from_process_local_data: the sharding comes first, got "
                        f"{in_short(sharding)} for it.")
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


def make_array_from_single_device_arrays(shape: Sequence[int], sharding: Any,
                                         arrays: Sequence[Any], *, dtype: Any = None) -> Any:
    """The array of `shape` whose parts are `arrays`, one for each addressable device.

    Raises:
      TypeError: `arrays` is no list or tuple of arrays, or `sharding` is no Sharding.
      ValueError: the arrays do not fit the sharding, are of another dtype than `dtype`, or there
        are none and no `dtype`.

    >>> import pyjx as jax
    >>> part = jax.numpy.arange(3)
    >>> jax.make_array_from_single_device_arrays((3,), part.sharding, [part]).tolist()
    [0, 1, 2]
    """
    name = "jax.make_array_from_single_device_arrays"
    if isinstance(arrays, (ArrayImpl, dict)) or not isinstance(arrays, Sequence):
        raise TypeError(f"{name} `arrays` argument must be a list or tuple, but got "
                        f"{type(arrays)}.")
    check_has_devices(sharding, name)
    for part in arrays:
        if not hasattr(part, "aval"):
            raise TypeError(f"Unsupported type for elements in `arrays`: {type(part)}. {name} "
                            "takes arrays of one device each; jax.device_put makes one.")
    dtype = _dtype_of_parts(arrays, dtype, name)
    shape = tuple(shape)
    if dtypes.issubdtype(dtype, dtypes.extended):  # keys are of the arrays behind the parts
        behind = dtype.physical_aval(ShapedArray(shape, dtype))
        return dtype.from_physical(make_array_from_single_device_arrays(
            behind.shape, sharding, [part._base_array for part in arrays], dtype=behind.dtype))
    return ArrayImpl(ShapedArray(shape, dtype).reshard(sharding), sharding, list(arrays), True)


def make_array_from_callback(shape: Sequence[int], sharding: Any,
                             data_callback: Callable[[Any], Any], dtype: Any = None) -> Any:
    """The array whose part with index `i` (a tuple of slices) is `data_callback(i)`.

    Args:
      shape: of the whole array.
      sharding: which part is on which device; a Format says how its elements stand in memory, too.
      data_callback: called for each device of this process; it gives arrays or arrays of keys.
      dtype: by default that of the parts.

    Raises:
      TypeError: `sharding` is neither, or parts are no arrays.
      ValueError: the sharding has no device of this process, and no dtype is given; or parts have
        another shape than the sharding says, or another dtype than the one that is given.

    >>> import pyjx as jax
    >>> import numpy as np
    >>> on_one = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    >>> jax.make_array_from_callback((3,), on_one, lambda i: np.arange(3, dtype="i4")[i]).tolist()
    [0, 1, 2]
    """
    name = "jax.make_array_from_callback"
    wanted: Any = None
    if isinstance(sharding, Format):
        if isinstance(sharding.layout, AutoLayout):
            raise TypeError("`Layout.AUTO` cannot be used in place of a device-local layout when "
                            f"calling `{name}`. Got {sharding}")
        wanted, sharding = sharding, sharding.sharding
    check_has_devices(sharding, name)
    shape = tuple(shape)
    sharding.check_compatible_aval(shape)
    local = sharding.addressable_devices_indices_map(shape)
    parts = [data_callback(index) for index in local.values()]
    if any([part is None for part in parts]):
        raise TypeError(f"{name}: data_callback returned None. Is a `return` missing?")
    parts = [p if dtypes.is_extended(getattr(p, "dtype", None)) else np.asarray(p) for p in parts]
    dtype = _dtype_of_parts(parts, dtype, name)
    if dtypes.is_extended(dtype):
        _check_parts(parts, ShapedArray(shape, dtype), sharding)
        return make_array_from_single_device_arrays(
            shape, sharding, [device_put(p, d) for p, d in zip(parts, local, strict=True)],
            dtype=dtype)
    aval = ShapedArray(shape, dtype).reshard(sharding)
    _check_parts(parts, aval, sharding)
    array = put(
        aval, sharding, [p.astype(dtype, copy=False) for p in parts], list(local))
    return array if wanted is None else device_put(array, wanted)


def check_has_devices(sharding: ShardingLike, name: str) -> None:
    """TypeError unless it is a Sharding, ValueError if it names no devices."""
    if not isinstance(sharding, Sharding):
        raise TypeError(f"{name}: sharding should be an instance of `jax.sharding.Sharding`. Got "
                        f"{sharding} of type {type(sharding)}. One for a spec is "
                        "NamedSharding(mesh, spec), one for a device SingleDeviceSharding(device).")
    if isinstance(getattr(sharding, "mesh", None), AbstractMesh):
        raise ValueError(f"{name}: addressable_devices is not implemented for "
                         f"`jax.sharding.AbstractMesh`. Name the devices by a Mesh. Got {sharding}")


def _dtype_of_parts(parts: Sequence[Any], asked: Any, name: str) -> Any:
    """The dtype of an array that is made of these parts.

    Raises:
      ValueError: it is not the one that was asked for, or there are neither parts nor that.
      TypeError: it is no dtype of arrays.
    """
    if not parts and asked is None:
        raise ValueError("If the Array has no addressable shards, `dtype` must be provided via the "
                         f"`dtype` argument to `{name}`.")
    wanted = None if asked is None else dtypes.canonicalize_dtype(asked, allow_extended_dtype=True)
    if not parts:
        return wanted
    found = parts[0].dtype
    if not dtypes.is_extended(found) and found.kind != "T":
        dtypes.check_valid_dtype(found)
        if type(parts[0]) is not ArrayImpl:
            found = dtypes.canonicalize_dtype(found)
    if wanted is not None and wanted != dtypes.canonicalize_dtype(
            found, allow_extended_dtype=True):
        raise ValueError(
            f"If `dtype` is provided to `{name}`, it must match the dtype of the addressable "
            f"shards. Got dtype={dtypes.name(wanted)} and shard dtype={dtypes.name(found)}.")
    return found


def _check_parts(parts: Sequence[Any], aval: ShapedArray, sharding: Any) -> None:
    wanted = sharding.shard_shape(aval.shape)
    for part in parts:
        dtype = dtypes.canonicalize_dtype(part.dtype, allow_extended_dtype=True)
        check_part(part, dtype, wanted, aval, sharding, ". The function that is passed to "
                   "make_array_from_callback gets the index of each part.")
