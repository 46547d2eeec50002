"""Arrays with given shardings: of host values, and of arrays that are elsewhere."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from pyjx import configuration as config
from pyjx import jaxlib_api
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.explicit import aval_on
from pyjx.runtime import backends
from pyjx.runtime.array import value
from pyjx.runtime.sharding import IndivisibleError, SingleDeviceSharding, single_device_sharding

_put = jaxlib_api.batched_device_put
_default_device_flag = config.default_device
_CopySemantics = jaxlib_api.ArrayCopySemantics


# ---- host to device -----------------------------------------------------------------------

_default_placement: tuple[Any, list[Any]] | None = None


def default_placement() -> tuple[Any, list[Any]]:
    """The sharding of uncommitted arrays, and its device in a list."""
    global _default_placement
    if _default_device_flag.value is None:
        if _default_placement is None:
            device = backends.default_device()
            _default_placement = single_device_sharding(device), [device]
        return _default_placement
    device = backends.default_device()
    return single_device_sharding(device), [device]


def array_from_numpy(x: np.ndarray[Any, Any], aval: ShapedArray, *, alias: bool = False) -> Any:
    """The uncommitted array of the elements of `x`, on the default device: one transfer.

    Args:
      x: array of the dtype of `aval`.
      aval: the aval of the result.
      alias: nobody else has `x`, or will write to it: its memory may be shared.
    """
    sharding, devices = default_placement()
    return _put(aval, sharding, (x,), devices, False, alias)


def host_value(x: Any, aval: ShapedArray) -> tuple[np.ndarray[Any, Any], bool]:
    """`x` as NumPy array of the dtype of its aval, and whether it is a new one."""
    if isinstance(x, np.ndarray):
        if x.dtype == aval.dtype:
            return x, False
        return x.astype(aval.dtype), True
    try:
        return np.array(x, dtype=aval.dtype), True
    except OverflowError:
        raise OverflowError(f"Python int {x} too large to convert to {aval.dtype}") from None


def array_from_host(x: Any) -> Any:
    """The uncommitted array of a NumPy array, NumPy scalar or Python scalar."""
    aval = get_aval(x)
    array, fresh = host_value(x, aval)
    sharding, devices = default_placement()
    return _put(aval, sharding, (array,), devices, False, fresh)


def put_host(x: np.ndarray[Any, Any], aval: ShapedArray, sharding: Any, alias: bool) -> Any:
    """A committed array with the given sharding."""
    if type(sharding) is SingleDeviceSharding:
        return _put(aval_on(aval, sharding), sharding, (x,), [sharding._device], True, alias)
    aval = aval_on(aval, sharding)
    devices, parts, places = _parts(sharding, aval)
    cut = [x[index] for index in parts]  # copies of a part share host memory
    return _put(aval, sharding, [cut[i] for i in places], devices, True, alias)


@lru_cache(maxsize=4096)
def _parts(sharding: Any, aval: ShapedArray) -> tuple[list[Any], list[Any], list[int]]:
    """The addressable devices, the parts that an array has there, and which one each device has."""
    check_fits(sharding, aval)
    parts: dict[str, tuple[int, Any]] = {}
    places = []
    indices = sharding.addressable_devices_indices_map(aval.shape)
    for index in indices.values():
        places.append(parts.setdefault(str(index), (len(parts), index))[0])
    return list(indices), [index for _, index in parts.values()], places


def check_fits(sharding: Any, aval: ShapedArray) -> None:
    try:
        sharding.check_compatible_aval(aval.shape)
    except ValueError as error:
        raise ValueError(
            "One of device_put args is incompatible with its sharding annotation "
            f"{sharding}: {error}"
        ) from None
    try:
        sharding.shard_shape(aval.shape)
    except IndivisibleError as error:
        raise IndivisibleError(f"One of device_put args was given the sharding {error}") from None


# ---- device to device ---------------------------------------------------------------------


def move_array(x: Any, sharding: Any) -> Any:
    """The elements of `x` as a committed array with another sharding."""
    x._check_if_deleted()
    aval = x.aval
    check_fits(sharding, aval)
    if _same_parts(x._sharding, sharding, aval):
        copy = jaxlib_api.copy_arrays([x], [sharding._internal_device_list], [sharding],
                                      [_CopySemantics.REUSE_INPUT])[0]
        typed = aval_on(aval, sharding)
        if copy._committed and typed is aval:
            return copy
        return jaxlib_api.commit(copy, sharding, aval=typed)
    return put_host(value(x), aval, sharding, False)


def _same_parts(old: Any, new: Any, aval: ShapedArray) -> bool:
    """Whether device number i holds the same elements in both, for all i."""
    if old.num_devices != new.num_devices:
        return False
    if not (old.is_fully_addressable and new.is_fully_addressable):
        return False
    a, b = old.devices_indices_map(aval.shape), new.devices_indices_map(aval.shape)
    return list(a.values()) == list(b.values())
