"""The array class: jaxlib's C++ array with the attributes and conversions that users see.

Operators and NumPy-like methods come from pyjx.numpy. Attributes that only read a field are C
all the way (`property(attrgetter(...))`), and conversions of scalars read the buffer in place.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from enum import IntEnum
from operator import attrgetter
from typing import Any, NoReturn, Self

import numpy as np

from pyjx import configuration, jaxlib_api
from pyjx.core import avals, dtypes
from pyjx.core.array_type import Array
from pyjx.core.avals import AbstractRef, ShapedArray, aval_makers, length
from pyjx.core.layouts import Format, Layout
from pyjx.core.specs import spec_to_give
from pyjx.core.trace import Tracer
from pyjx.core.value_texts import DELETED
from pyjx.errors import ambiguous_truth
from pyjx.jaxlib_api import Sharding
from pyjx.jaxlib_pytrees import of_calls
from pyjx.lazy import deferred
from pyjx.runtime import backends
from pyjx.runtime import sharding as shardings  # noqa: F401  (gives the shardings their methods)
from pyjx.runtime.sharding import (
    SingleDeviceSharding,
    only_device,
    open_sums,
    single_device_sharding,
)

exhaustion = deferred("pyjx.runtime.exhaustion")  # under a flag alone

jaxlib_api.initialize(Tracer)

ArrayImpl = jaxlib_api.ArrayImpl
_to_numpy = jaxlib_api.to_numpy

_DELETED = "Array has been deleted with shape={}."
_ELSEWHERE = (
    "Fetching value for `jax.Array` that spans non-addressable (non process local) devices is not "
    "possible. You can use `jax.experimental.multihost_utils.process_allgather` to print the "
    "global array or use `.addressable_shards` method of jax.Array to inspect the addressable "
    "(process local) shards.")
_UNREDUCED = (
    "An array {} with an unreduced sharding has no values yet: what its devices hold is to be "
    "summed along the mesh axes {}. Sum it with jax.reshard(x, {}), or look at its "
    "`.addressable_shards`.")


class Shard:
    """The part of an array on one device.

    `index` is where the part is in the array; parts of equal index differ in `replica_id`;
    `data` is the part, or None where the device is another process's.
    """

    __slots__ = ("data", "device", "index", "replica_id")

    def __init__(self, device: Any, index: tuple[slice, ...], replica_id: int, data: Any) -> None:
        self.device = device
        self.index = index
        self.replica_id = replica_id
        self.data = data

    def __repr__(self) -> str:
        return (f"Shard(device={self.device!r}, index={self.index}, "
                f"replica_id={self.replica_id}, data={self.data})")


# ---- values on the host -------------------------------------------------------------------


def _raise_if_deleted(self: Any) -> None:
    if self.is_deleted():
        error = RuntimeError(_DELETED.format(self.aval.str_short()))
        error.add_note(DELETED)
        raise error


def value(self: Any) -> np.ndarray[Any, Any]:
    """The elements as a read-only NumPy array: a view on the CPU, else a copy that is kept."""
    kept = self._npy_value
    if kept is not None:
        return kept
    if type(self._sharding) is SingleDeviceSharding:
        try:
            array, copied = self._single_device_array_to_np_array_did_copy()
        except Exception:
            _raise_if_deleted(self)
            if not self.is_fully_addressable:
                raise RuntimeError(_ELSEWHERE) from None
            raise
    else:
        array, copied = _gather(self), True
    if copied:
        array.flags.writeable = False
        self._npy_value = array
    return array


def _gather(self: Any) -> np.ndarray[Any, Any]:
    """Put the parts of all devices together."""
    _raise_if_deleted(self)
    sharding = self._sharding
    if axes := open_sums(sharding):
        raise RuntimeError(_UNREDUCED.format(
            self.aval.str_short(), ", ".join(sorted(axes)), spec_to_give("P()")))
    if sharding.is_fully_replicated and self._arrays:
        return _to_numpy(self._fully_replicated_shard())
    if not sharding.is_fully_addressable:
        raise RuntimeError(_ELSEWHERE)
    aval = self.aval
    out = np.empty(aval.shape, aval.dtype)
    for shard in first_copies(self):
        out[shard.index] = _to_numpy(shard.data)
    return out


def first_copies(self: Any) -> Iterator[Shard]:
    """The addressable shards, those of equal index once."""
    for shard in self.addressable_shards:
        if shard.replica_id == 0:
            yield shard


def _scalar(self: Any) -> np.ndarray[Any, Any]:
    if self.aval.ndim:
        raise TypeError("Only scalar arrays can be converted to Python scalars; "
                        f"got arr.ndim={self.aval.ndim}")
    return value(self)


def _float(self: Any) -> float:
    return _scalar(self).__float__()


def _int(self: Any) -> int:
    return _scalar(self).__int__()


def _bool(self: Any) -> bool:
    size = self.aval.size
    if size != 1:
        raise ambiguous_truth(size)
    return bool(value(self).item())


def _index(self: Any) -> int:
    aval = self.aval
    if aval.ndim or not _is_int(aval.dtype):
        raise TypeError("Only integer scalar arrays can be converted to a scalar index.")
    return int(value(self).item())


def _is_int(dtype: np.dtype[Any]) -> bool:
    kind = dtype.kind
    return kind in "iu" or (kind == "V" and "int" in dtype.name)  # int4 and its like


def _array(self: Any, dtype: Any = None, context: None = None, copy: bool | None = None
           ) -> np.ndarray[Any, Any]:
    array = value(self)
    if dtype is None and not copy:
        return array
    if copy is False and dtype is not None and np.dtype(dtype) != array.dtype:
        raise ValueError("Unable to avoid copy while creating an array as requested.")
    return np.array(array, dtype=dtype, copy=bool(copy) or None)


def _item(self: Any, *args: Any) -> Any:
    """One element as a Python scalar: the only one, or that at a flat or full index."""
    if not args:
        if self.aval.size != 1:
            _raise_if_deleted(self)
            raise ValueError("can only convert an array of size 1 to a Python scalar")
        return value(self).item()
    if len(args) == 1 and isinstance(args[0], tuple):
        args = args[0]
    try:
        return value(self).item(*args)
    except IndexError:
        if len(args) == 1:
            raise IndexError(f"item: index {args[0]} is out of bounds for axis 0 with size "
                             f"{self.aval.size}, that of the flat array") from None
        raise


def no_rows(aval: ShapedArray) -> TypeError:
    """The error of iterating over a scalar."""
    if dtypes.is_extended(aval.dtype):
        return TypeError("iteration over a 0-d key array. This is one key; several are made of it "
                         "by split: first, second = jax.random.split(key).")
    return TypeError("iteration over a 0-d array")


def _reversed(self: Any) -> Iterator[Any]:
    if not self.aval.shape:
        raise no_rows(self.aval)
    return iter(list(self)[::-1])


# ---- text ---------------------------------------------------------------------------------


def _dtype_text(aval: ShapedArray | AbstractRef) -> str:
    dtype = aval.dtype
    text = f"dtype={dtype.name if dtype.kind in 'VT' or dtype.name in np.sctypeDict else dtype}"
    return f"{text}, weak_type=True)" if aval.weak_type else f"{text})"


def _is_known_here(self: Any) -> bool:
    """Whether the devices of this process have all elements."""
    sharding = self._sharding
    if open_sums(sharding):
        return False
    return bool(sharding.is_fully_addressable
                or (sharding.is_fully_replicated and sharding.has_addressable_devices))


def _is_large(aval: ShapedArray | AbstractRef) -> bool:
    """Whether an array is shown by its type alone: a line of a log is not to fetch it."""
    return bool(aval.size * aval.dtype.itemsize >= 2**20)


def _repr(self: Any) -> str:
    aval = self.aval
    if _is_large(aval):
        return f"Array(shape={aval.shape}, {_dtype_text(aval)}"
    _raise_if_deleted(self)
    if not _is_known_here(self):
        where = f", sharding={self._sharding})" if open_sums(self._sharding) else ")"
        return f"Array(shape={aval.shape}, {_dtype_text(aval)[:-1]}{where}"
    if aval.size == 0:
        return f"Array([], shape={aval.shape}, {_dtype_text(aval)}"
    width = np.get_printoptions()["linewidth"]
    body = np.array2string(value(self), prefix="Array(", suffix=",", separator=", ",
                           max_line_width=width)
    tail = _dtype_text(aval)
    last_line = len(body) - body.rfind("\n") - 1
    # JAX indents the dtype that would not fit, but breaks no line.
    separator = " " if last_line + len(tail) + 3 <= width else " " * len("Array(")
    return f"Array({body},{separator}{tail}"


def _str(self: Any) -> str:
    if _is_large(self.aval):
        return _repr(self)
    _raise_if_deleted(self)
    if not _is_known_here(self):
        return _repr(self)
    return str(value(self))


def _format(self: Any, format_spec: str) -> str:
    if not format_spec and not _is_known_here(self):
        return _repr(self)
    if not self.aval.shape:
        return format(value(self)[()], format_spec)
    if format_spec:
        raise TypeError("unsupported format string passed to ArrayImpl.__format__: a format is of "
                        "one number. np.array2string(np.asarray(x), precision=2) shows an array.")
    return format(value(self))


# ---- where it is --------------------------------------------------------------------------


def _device(self: Any) -> Any:
    """The device, or the sharding of an array on several."""
    sharding = self._sharding
    device = only_device(sharding)
    return sharding if device is None else device


def _format_of(self: Any) -> Format:
    """The order of the elements in memory, and the sharding."""
    _raise_if_deleted(self)
    layout = None if self.aval.dtype.kind == "T" else Layout.for_array(self)
    return Format(layout, self._sharding)


def _devices(self: Any) -> set[Any]:
    """The devices which hold (parts of) the array."""
    _raise_if_deleted(self)
    return self._sharding.device_set


def _shards(self: Any, everywhere: bool) -> list[Shard]:
    indices = self._sharding.devices_indices_map(self.aval.shape)
    data = {only_device(a._sharding): a for a in self._arrays}
    copies: dict[Any, int] = {}
    out = []
    for device, index in indices.items():
        key = tuple((s.start, s.stop) for s in index)
        replica = copies[key] = copies.get(key, -1) + 1
        if everywhere or device in data:
            out.append(Shard(device, index, replica, data.get(device)))
    return out


def _addressable_shards(self: Any) -> list[Shard]:
    """The parts on this process's devices."""
    _raise_if_deleted(self)
    return _shards(self, everywhere=False)


def _global_shards(self: Any) -> list[Shard]:
    """The parts on all devices; `data` is None for those of other processes."""
    _raise_if_deleted(self)
    if self.is_fully_addressable:
        return self.addressable_shards
    return _shards(self, everywhere=True)


def _addressable_data(self: Any, index: int) -> Any:
    """The part on this process's device number `index`, as an array."""
    _raise_if_deleted(self)
    if self._sharding.is_fully_replicated and index == 0:
        return self._fully_replicated_shard()
    return self._arrays[index]


def _copy_to_host_async(self: Any) -> None:
    """Start the copy to the host that reading the values needs; returns at once."""
    _raise_if_deleted(self)
    if self._npy_value is None:
        if type(self._sharding) is SingleDeviceSharding:
            self._copy_single_device_array_to_host_async()
        elif self._sharding.is_fully_replicated:
            self._fully_replicated_shard().copy_to_host_async()
        else:
            for shard in first_copies(self):
                shard.data.copy_to_host_async()


def _guarded(name: str) -> Callable[..., Any]:
    """A method of C++ that would crash on a deleted array."""
    method = getattr(ArrayImpl, name)

    def guarded(self: Any) -> Any:
        _raise_if_deleted(self)
        return method(self)

    guarded.__doc__ = method.__doc__
    return guarded


# ---- exchange -----------------------------------------------------------------------------


class DLDeviceType(IntEnum):
    """DLPack's device types."""

    kDLCPU = 1
    kDLCUDA = 2
    kDLROCM = 10


_DL_TYPES = {"cpu": DLDeviceType.kDLCPU, "gpu": DLDeviceType.kDLCUDA, "cuda": DLDeviceType.kDLCUDA,
             "rocm": DLDeviceType.kDLROCM}


def _dlpack_device(self: Any) -> tuple[Any, int]:
    """DLPack's (device type, device number)."""
    device = only_device(self._sharding)
    if device is None:
        raise BufferError(
            "to_dlpack can only pack a dlpack tensor from an array on a singular device, but an "
            f"array with a Sharding over {self._sharding.num_devices} devices was provided.")
    platform = device.platform
    if platform not in _DL_TYPES:
        raise BufferError(f"Cannot export arrays on platform {platform} through DLPack; copy the "
                          "array to the host first.")
    number = 0 if platform == "cpu" else device.local_hardware_id or 0
    return _DL_TYPES[platform], number


def _dlpack(self: Any, *, stream: Any = None, max_version: tuple[int, int] | None = None,
            dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> Any:
    """The DLPack capsule of the array, which shares its memory."""
    _raise_if_deleted(self)
    own = _dlpack_device(self)
    if dl_device is not None and tuple(dl_device) != tuple(own):
        raise BufferError(f"__dlpack__: the array is on device {tuple(map(int, own))}; move it "
                          f"with device_put before it is exported to {tuple(dl_device)}.")
    if self.aval.dtype == np.bool_ and max_version is not None and max_version < (1, 0):
        raise BufferError("__dlpack__: bool needs DLPack 1.0 or later.")
    source = jaxlib_api.copy_on_device(self) if copy else self
    return jaxlib_api.to_dlpack(source, stream, max_version)


def put(aval: ShapedArray, sharding: Sharding, shards: Sequence[Any], devices: Sequence[Any],
        committed: bool = True, alias: bool = False) -> Any:
    """An array of host buffers, as `jaxlib_api.batched_device_put` makes it, if it fits."""
    if configuration.memory_limit.value is None:
        return jaxlib_api.batched_device_put(aval, sharding, shards, devices, committed, alias)
    exhaustion.admit(aval, sharding, devices)
    made = jaxlib_api.batched_device_put(aval, sharding, shards, devices, committed, alias)
    exhaustion.note((made,))
    return made


def _reconstruct_array(fun: Callable[..., Any], args: Any, state: Any, aval_state: dict[str, Any]
                       ) -> Any:
    array = fun(*args)
    array.__setstate__(state)
    array = array.astype(dtypes.canonicalize_dtype(array.dtype), copy=False)  # x64 may be off now
    aval = ShapedArray(array.shape, array.dtype, aval_state["weak_type"])
    device = backends.default_device()
    return put(aval, single_device_sharding(device), [array], [device], False, alias=True)


def _reduce(self: Any) -> Any:
    reduced: Any = value(self).__reduce__()
    fun, args, state = reduced
    return _reconstruct_array, (fun, args, state, {"weak_type": self.aval.weak_type})


def _copied(self: Any, memo: Any = None) -> Any:
    _raise_if_deleted(self)
    return jaxlib_api.copy_on_device(self)


def for_programs(x: Any) -> Any:
    """What programs have in the place of a value that they captured: of an array one copy for all
    of them, of a host array that may change another; other values as they are."""
    if isinstance(x, np.ndarray):
        if x.flags.writeable or x.base is not None:
            x = np.array(x)
            x.flags.writeable = False
        return x
    if type(x) is not ArrayImpl:
        return copy(x) if isinstance(x, DataArray) else x
    if not x.is_deleted() and (known := _known_copy(x)) is not None:
        return known
    copied = as_of_programs(_copied(x))
    x._for_programs = copied._for_programs
    return copied


def _known_copy(x: Any) -> Any:
    """What programs have in the place of an array, if they have it: itself, if it is theirs."""
    return getattr(x, "_for_programs", lambda: None)()


def as_of_programs(x: Any) -> Any:
    """The array, marked as one that programs alone have: it is what they have in its place."""
    x._for_programs = weakref.ref(x)
    return x


def is_of_programs(x: Any) -> bool:
    return _known_copy(x) is x


def _setitem(self: Any, i: Any, x: Any) -> None:
    raise TypeError("JAX arrays are immutable and do not support in-place item assignment. Instead "
                    "of x[idx] = y, use x = x.at[idx].set(y) or another .at[] method: "
                    "https://docs.jax.dev/en/latest/_autosummary/jax.numpy.ndarray.at.html")


def _delitem(self: Any, i: Any) -> None:
    raise AttributeError("JAX arrays are immutable and have no parts to delete. Instead of del "
                         "x[i], use x = jnp.delete(x, i), whose result has another shape.")


def _removed(name: str, instead: str) -> Any:
    def refuse(self: Any) -> NoReturn:
        raise AttributeError(f"arr.{name} has been deprecated. Use {instead}")

    return refuse


def _check_and_rearrange(*arguments: Any) -> Sequence[Any]:
    """Called by C++ for arrays made of shards: order them as the sharding's devices are.

    Newer versions pass `(arrays, sharding, aval)`, older ones the array before them.
    """
    arrays, sharding, aval = arguments[-3:]
    devices = [only_device(a._sharding) for a in arrays]
    if None in devices:
        raise ValueError("When making an array from single-device arrays the input arrays must "
                         "have one shard each. An argument array had "
                         f"{len(arrays[devices.index(None)]._arrays)} shard(s).")
    by_device = dict(zip(devices, arrays, strict=True))
    wanted = sharding._addressable_device_assignment
    if len(arrays) != len(wanted):
        raise ValueError(f"Expected {len(wanted)} per-device arrays (this is how many devices are "
                         f"addressable by the sharding), but got {len(arrays)}")
    if len(arrays) != len(by_device):
        raise ValueError("When making an array from single-device arrays, the input arrays must be "
                         f"from distinct devices, but got device IDs {[d.id for d in devices]}")
    if set(by_device) != set(wanted):
        raise ValueError("Addressable devices and per-device arrays devices do not match. Sharding "
                         f"contains devices {_ids(wanted, by_device)} that are not present in "
                         "per-device arrays. Per-device arrays contain devices "
                         f"{_ids(by_device, wanted)} that are not present in the sharding.")
    part = sharding.shard_shape(aval.shape)
    for a in arrays:
        check_part(a, a.aval.dtype, part, aval, sharding)
    return [by_device[d] for d in wanted]


def check_part(part: Any, dtype: Any, shape: tuple[int, ...], aval: ShapedArray, sharding: Any,
               cure: str = "") -> None:
    """Raise ValueError unless a part of an array, of this dtype, is of its dtype and this shape."""
    if dtype != aval.dtype:
        raise ValueError(f"Input buffers to `Array` must have matching dtypes. Got "
                         f"{dtypes.name(dtype)}, expected {dtypes.name(aval.dtype)} for the part "
                         f"{part}")
    if part.shape != shape:
        raise ValueError(f"Expected shard shape {shape} doesn't match the single device array "
                         f"shape {part.shape}. Shape of Array is {aval.str_short()} with sharding "
                         f"{sharding}{cure}")


def _ids(devices: Iterable[Any], others: Iterable[Any]) -> set[int]:
    """The numbers of the devices that are not among `others`."""
    return {d.id for d in devices} - {d.id for d in others}


# ---- install ------------------------------------------------------------------------------

_PROPERTIES: dict[str, Any] = {
    **{name: attrgetter(f"aval.{name}")
       for name in ("shape", "dtype", "ndim", "size", "weak_type")},
    "sharding": attrgetter("_sharding"),
    "committed": attrgetter("_committed"),
    "itemsize": attrgetter("aval.dtype.itemsize"),
    "is_fully_replicated": attrgetter("_sharding.is_fully_replicated"),
    "is_fully_addressable": attrgetter("_sharding.is_fully_addressable"),
    "nbytes": lambda self: self.aval.size * self.aval.dtype.itemsize,
    "device": _device,
    "format": _format_of,
    "_value": value,
    "device_buffer": _removed("device_buffer", "arr.addressable_data(0)"),
    "device_buffers": _removed("device_buffers", "[x.data for x in arr.addressable_shards]"),
    "addressable_shards": _addressable_shards,
    "global_shards": _global_shards,
}

_METHODS: dict[str, Any] = {
    "__float__": _float,
    "__int__": _int,
    "__complex__": lambda self: complex(_scalar(self).item()),
    "__bool__": _bool,
    "__index__": _index,
    "__array__": _array,
    "__len__": length,
    "__reversed__": _reversed,
    "__repr__": _repr,
    "__str__": _str,
    "__format__": _format,
    "__dlpack__": _dlpack,
    "__dlpack_device__": _dlpack_device,
    "__reduce__": _reduce,
    "__copy__": _copied,
    "__deepcopy__": _copied,
    "__setitem__": _setitem,
    "__delitem__": _delitem,
    "item": _item,
    "tolist": lambda self: value(self).tolist(),
    "tobytes": lambda self, order="C": value(self).tobytes(order),
    "devices": _devices,
    "addressable_data": _addressable_data,
    "copy_to_host_async": _copy_to_host_async,
    **{name: _guarded(name)
       for name in ("is_ready", "unsafe_buffer_pointer", "on_device_size_in_bytes")},
    "_check_if_deleted": _raise_if_deleted,
    "_check_and_rearrange": _check_and_rearrange,
}


def _install() -> None:
    for name, getter in _PROPERTIES.items():
        descriptor = property(getter)
        setattr(ArrayImpl, name, descriptor)
        if hasattr(descriptor, "__set_name__"):  # for the error of an assignment
            descriptor.__set_name__(ArrayImpl, name)
    for name, method in _METHODS.items():
        method.__name__ = name
        method.__qualname__ = f"Array.{name}"
        setattr(ArrayImpl, name, method)
    ArrayImpl.__hash__ = None
    ArrayImpl.__array_priority__ = 100
    avals.aval_makers[ArrayImpl] = attrgetter("aval")


_install()


__all__ = ["Array", "ArrayImpl", "Shard", "single_device_sharding", "value"]


# -- arrays of extended dtypes ---------------------------------------------------------------------


class DataArray(Array):
    """An array with a type of its own, `aval`, over that of its data, `_base_array`."""

    __slots__ = ("__weakref__", "_base_array", "aval")

    _base_array: Any
    aval: ShapedArray

    shape = property(lambda self: self.aval.shape)
    dtype = property(lambda self: self.aval.dtype)
    ndim = property(lambda self: self.aval.ndim)
    size = property(lambda self: self.aval.size)
    weak_type = property(lambda self: False)
    itemsize = property(lambda self: self.aval.dtype.itemsize)
    nbytes = property(lambda self: self.aval.size * self.aval.dtype.itemsize)
    sharding = property(lambda self: self._base_array.sharding)
    device = property(lambda self: self._base_array.device)
    committed = property(lambda self: self._base_array.committed)
    _committed = committed
    traceback = property(lambda self: self._base_array.traceback)
    is_fully_addressable = property(lambda self: self._base_array.is_fully_addressable)
    is_fully_replicated = property(lambda self: self._base_array.is_fully_replicated)

    def block_until_ready(self) -> Self:
        self._base_array.block_until_ready()
        return self

    def __len__(self) -> int:
        return len(self.aval)


def _of_data(name: str) -> Callable[[DataArray], Any]:
    """The method of arrays that the data answers, documented as theirs."""
    def method(self: DataArray) -> Any:
        return getattr(self._base_array, name)()

    method.__name__, method.__qualname__ = name, f"DataArray.{name}"
    return method


for _name in ("devices", "is_deleted", "delete", "is_ready", "platform", "on_device_size_in_bytes",
              "unsafe_buffer_pointer", "unsafe_raw_buffer"):
    setattr(DataArray, _name, _of_data(_name))


class ExtendedArray(DataArray):
    """An array of an extended dtype, whose rules are those of a library.

    Args:
      aval: its type.
      data: the array that programs have in its place.

    Raises:
      ValueError: the data has another shape or dtype than the type says.
    """

    __slots__ = ()

    def __init__(self, aval: ShapedArray, data: Any) -> None:
        physical = aval.dtype.physical_aval(aval)
        if (data.shape, data.dtype) != (physical.shape, physical.dtype):
            raise ValueError(f"EArray: the data of an array of type {aval} is {physical}, got "
                             f"shape {data.shape} and dtype {data.dtype}")
        self.aval = aval
        self._base_array = data

    def __copy__(self) -> ExtendedArray:
        return ExtendedArray(self.aval, copy(self._base_array))

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError(f"an array of dtype {self.dtype} cannot be converted to a NumPy array; "
                        "convert it to the dtype of its data by jax.lax.convert_element_type")

    def __repr__(self) -> str:
        return f"EArray({self.aval.str_short()}, {self._base_array})"


aval_makers[ExtendedArray] = lambda x: x.aval
of_calls.register_node(ExtendedArray, lambda x: ((x._base_array,), x.aval),
                       lambda aval, data: ExtendedArray(aval, data[0]))
