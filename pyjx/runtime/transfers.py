"""Arrays with given shardings: of host values, and of arrays that are elsewhere. Those of strings
(NumPy's StringDType) lie on CPU devices, and no program takes them."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from pyjx import jaxlib_api
from pyjx.core import dtypes
from pyjx.core.array_type import DTypeLike
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.bounded import BoundedDict, kept
from pyjx.core.layouts import Format
from pyjx.core.meshes import Mesh
from pyjx.core.specs import PartitionSpec
from pyjx.jaxlib_api import Sharding
from pyjx.runtime import backends
from pyjx.runtime.array import ArrayImpl, put, value
from pyjx.runtime.processes import group
from pyjx.runtime.sharding import (
    GSPMDSharding,
    NamedSharding,
    SingleDeviceSharding,
    check_annotation,
    devices_of,
    open_sums,
    single_device_sharding,
    summed,
)


def put_strings(x: np.ndarray[Any, Any], sharding: Sharding | None, dtype: DTypeLike | None = None
               ) -> Any:
    """The array of strings with a sharding; `dtype` is the one that is asked for.

    Raises:
      TypeError: another dtype is asked for, strings are missing, or no CPU devices are named.
    """
    if dtype is not None and np.dtype(dtype) != x.dtype:
        name = dtypes.name(dtypes.canonicalize_dtype(dtype))
        raise TypeError(f"Cannot make an array with dtype {name} from an object with dtype "
                        f"{x.dtype}. NumPy's x.astype(float) reads numbers.")
    if x.dtype != type(x.dtype)():
        raise TypeError(f"Dtype {x.dtype} is not a valid JAX array type. Only arrays of numeric "
                        "types are supported by JAX, and strings none of which is missing.")
    if sharding is None or any([d.platform != "cpu" for d in sharding.device_set]):
        raise TypeError("String arrays can only be sharded to CPU devices. Received unsupported "
                        f"device or sharding: {sharding}. Name one, as jax.devices('cpu')[0].")
    if x.size == 0:
        raise TypeError(f"Arrays of no strings, as this one of shape {x.shape}, cannot be on a "
                        "device: the runtime takes none. Leave it a NumPy array.")
    return put_host(x, ShapedArray(x.shape, x.dtype), sharding, False)


_CopySemantics = jaxlib_api.ArrayCopySemantics


def _given() -> str:
    return "One of device_put args"


# ---- host to device -----------------------------------------------------------------------

_places = BoundedDict(64, "places of uncommitted arrays")  # by device


def default_placement() -> tuple[Any, list[Any]]:
    """The sharding of uncommitted arrays, and its device in a list."""
    device = backends.default_device()
    found = _places.get(device)
    if found is None:
        found = _places[device] = single_device_sharding(device), [device]
    return found  # type: ignore[no-any-return]


def array_from_numpy(x: np.ndarray[Any, Any], aval: ShapedArray, *, alias: bool = False) -> Any:
    """The uncommitted array of the elements of `x`, on the default device: one transfer.

    Args:
      x: array of the dtype of `aval`.
      aval: the aval of the result.
      alias: nobody else has `x`, or will write to it: its memory may be shared.
    """
    sharding, devices = default_placement()
    # A buffer that shares memory cannot be donated; to copy a page costs little more than that.
    return put(aval, sharding, (x,), devices, False, alias and x.nbytes > 4096)


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
    return put(aval, sharding, (array,), devices, False, fresh)


def array_for(x: Any) -> Any:
    """The value that a traced function of the library gives: of NumPy's arrays an array, unless
    they are of float0, which have no content."""
    return array_from_host(x) if type(x) is np.ndarray and x.dtype != dtypes.float0 else x


def put_host(x: np.ndarray[Any, Any], aval: ShapedArray, sharding: Sharding, alias: bool) -> Any:
    """A committed array with the given sharding."""
    if open_sums(sharding):
        return moved(put_host(x, aval, summed(sharding), alias), sharding)
    if type(sharding) is SingleDeviceSharding:
        return put(aval.reshard(sharding), sharding, (x,), [sharding._device], True, alias)
    return _put_parts(aval, sharding, lambda index: x[index], alias)


def _put_parts(aval: ShapedArray, sharding: Sharding, part: Callable[[Any], Any], alias: bool
              ) -> Any:
    """A committed array of what `part` gives for each index, which several devices may share."""
    aval = aval.reshard(sharding)
    devices, indices, places = _parts(sharding, aval)
    cut = [part(index) for index in indices]  # copies of a part share host memory
    if aval.dtype.kind == "T":  # the runtime puts strings that all devices have on one of them
        kind = ShapedArray(sharding.shard_shape(aval.shape), aval.dtype)
        arrays = [put(kind, single_device_sharding(device), (cut[i],), [device], True, False)
                  for device, i in zip(devices, places, strict=True)]
        return ArrayImpl(aval, sharding, arrays, True)
    return put(aval, sharding, [cut[i] for i in places], devices, True, alias)


@kept(4096)
def _parts(sharding: Sharding, aval: ShapedArray) -> tuple[list[Any], list[Any], list[int]]:
    """The addressable devices, the parts that an array has there, and which one each device has."""
    check_fits(sharding, aval)
    parts: dict[str, tuple[int, Any]] = {}
    places = []
    indices = sharding.addressable_devices_indices_map(aval.shape)
    for index in indices.values():
        places.append(parts.setdefault(str(index), (len(parts), index))[0])
    return list(indices), [index for _, index in parts.values()], places


def check_rank(sharding: Sharding, aval: ShapedArray) -> None:
    """ValueError if the sharding is for arrays of more dimensions."""
    check_annotation(_given, sharding, aval.shape)


def check_fits(sharding: Sharding, aval: ShapedArray) -> None:
    """ValueError if the sharding is for arrays of more dimensions, or other sizes, or names no
    devices."""
    check_rank(sharding, aval)
    if devices_of(sharding) is None:
        raise ValueError("device_put: is_fully_addressable is not implemented for "
                         f"`jax.sharding.AbstractMesh`. Name the devices by a Mesh. Got {sharding}")
    check_annotation(_given, sharding, aval.shape, divides=True)


# ---- device to device ---------------------------------------------------------------------


def moved(x: Any, sharding: Sharding) -> Any:
    """The elements of `x` as a committed array with another sharding.

    Where its devices stay they exchange parts, in a compiled program; but devices of the host share
    its memory. Else a part that a device has goes to others as it is; what none has goes through
    the host.

    Raises:
      ValueError: the sharding does not fit, or other processes have parts that would have to come
        from there to other devices.
    """
    x._check_if_deleted()
    old, aval = x._sharding, x.aval
    same = old is sharding or old == sharding
    if same or old.is_equivalent_to(sharding, aval.ndim):
        if not same:
            check_rank(sharding, aval)
        typed = aval.reshard(sharding)
        if same and x._committed and typed is aval:
            return x
        return jaxlib_api.commit(x, sharding, aval=typed)
    check_fits(sharding, aval)
    if open_sums(old) != open_sums(sharding) or (open_sums(old) and (
            old._internal_device_list != sharding._internal_device_list)):
        return _with_sums(x, sharding)
    if (old.num_devices > 1 and old._internal_device_list == sharding._internal_device_list
            and old.memory_kind == sharding.memory_kind):
        return _read(x, sharding) if _is_read(x, sharding) else _exchanged(x, sharding)
    if group.client is not None:
        x = _within_process(x, sharding)
    if _same_parts(x._sharding, sharding, aval):
        copy = jaxlib_api.copy_arrays([x], [sharding._internal_device_list], [sharding],
                                      [_CopySemantics.REUSE_INPUT])[0]
        return jaxlib_api.commit(copy, sharding, aval=aval.reshard(sharding))
    return _of_parts(x, sharding)


def _with_sums(x: Any, sharding: Sharding | None) -> Any:
    """An array whose sums along other axes are yet to be taken: those of `x` are, where it is."""
    old = x._sharding
    if open_sums(old):
        return moved(_exchanged(x, summed(old)), sharding)
    return _exchanged(moved(x, summed(sharding)), sharding)


_LONGEST_READ = 1 << 24  # bytes; where parts are to be joined a program is faster for more


def _is_read(x: Any, sharding: Sharding | None) -> bool:
    """Whether an array is to come from the memory of the host, which its devices share: collectives
    of CPU devices wait for each other's threads, three times as long as that takes."""
    old = x._sharding
    return (old._device_assignment[0].platform == "cpu" and old.is_fully_addressable
            and not open_sums(old) and not open_sums(sharding)
            and (old.is_fully_replicated or x.nbytes <= _LONGEST_READ or x.dtype.kind == "T"))


def _read(x: Any, sharding: Sharding | None) -> Any:
    """An array of parts of the host's view of another one."""
    whole = value(x)
    return _put_parts(x.aval, sharding, lambda index: whole[index], True)


_formatted: Callable[[Any, Format], Any]


def exchange_by(formatted: Callable[[Any, Format], Any]) -> None:
    """Say how a compiled program lays an array out otherwise on its devices, which may exchange
    parts. The arguments of such programs are moved here, so who runs them comes later."""
    global _formatted
    _formatted = formatted


def _exchanged(x: Any, sharding: Sharding | None) -> Any:
    return _formatted(x, Format(None, sharding))


def _within_process(x: Any, sharding: Sharding) -> Any:
    """The array, whose parts as far as this process needs them this process has."""
    old = x._sharding
    if old.is_fully_addressable or (old.is_fully_replicated and old.has_addressable_devices):
        if old.is_fully_addressable and not sharding.is_fully_addressable:
            check_agreement(value(x), sharding, str(type(x)))
        return x
    if type(sharding) is SingleDeviceSharding:
        raise ValueError("When the second argument to `device_put` is a Device, the first argument "
                         "must be a fully addressable array or a non-addressable array with a "
                         f"single device sharding. Got value with devices {old.device_set}")
    if old.device_set != sharding.device_set:
        raise ValueError(
            "device_put: an array that other processes have parts of can be laid out otherwise on "
            f"its own devices only. It is on those of {old}, and is wanted on those of {sharding}.")
    # The devices come in another order, which no program changes.
    return _exchanged(x, GSPMDSharding.get_replicated(old._internal_device_list, old.memory_kind))


def _same_parts(old: Any, new: Any, aval: ShapedArray) -> bool:
    """Whether device number i holds the same elements in both, for all i, and one client has all
    devices."""
    if old.num_devices != new.num_devices:
        return False
    if not (old.is_fully_addressable and new.is_fully_addressable):
        return False
    if old._device_assignment[0].client is not new._device_assignment[0].client:
        return False
    a, b = old.devices_indices_map(aval.shape), new.devices_indices_map(aval.shape)
    return list(a.values()) == list(b.values())


def _of_parts(x: Any, sharding: Sharding | None) -> Any:
    """An array of the parts of another one, on other devices."""
    aval = x.aval
    there = x._sharding.addressable_devices_indices_map(aval.shape)
    known = {_bounds(index, aval): part for index, part in zip(there.values(), x._arrays,
                                                               strict=True)}

    def part(index: Any) -> Any:
        found = known.get(_bounds(index, aval))
        return value(x)[index] if found is None else found

    return _put_parts(aval, sharding, part, False)


def _bounds(index: Any, aval: ShapedArray) -> tuple[tuple[int, int, int], ...]:
    """What a part holds of each dimension."""
    return tuple([s.indices(n) for s, n in zip(index, aval.shape, strict=True)])


# ---- among processes ----------------------------------------------------------------------


def check_agreement(x: np.ndarray[Any, Any], sharding: Sharding, what: str) -> None:
    """Compare a value among the processes that `sharding` has devices of; all of them call this.

    Raises:
      AssertionError: they do not have the same one.
    """
    # the first device of each process
    firsts = {d.process_index: d for d in [*sharding._internal_device_list][::-1]}
    me = backends.process_index()
    if len(firsts) < 2 or me not in firsts:
        return
    content = f"{x.dtype} {x.shape}".encode() + x.tobytes()
    mesh = Mesh(np.array([firsts[i] for i in sorted(firsts)], dtype=object), ("process",))
    mine = np.array([[zlib.crc32(content), zlib.adler32(content)]], np.uint32)
    aval = ShapedArray((len(firsts), 2), np.dtype(np.uint32))
    sums = put(aval, NamedSharding(mesh, PartitionSpec("process")), [mine], [firsts[me]])
    found = value(_exchanged(sums, NamedSharding(mesh, PartitionSpec())))
    if (found != found[0]).any():
        differ = [i for i, d in zip(sorted(firsts), found, strict=True) if (d != found[0]).any()]
        raise AssertionError(f"{what} passed to device_put is not the same on each process. Make "
                             f"sure you are passing the same value of {what} on each process: that "
                             f"of processes {differ} is not that of process {min(firsts)}. Where "
                             "each has a part, use jax.make_array_from_process_local_data.")
