"""Reading and writing of arrays, part by part, by TensorStore."""

from __future__ import annotations

import asyncio
import importlib
import math
import os
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from pyjx.core.array_type import DTypeLike
from pyjx.core.layouts import Format
from pyjx.lazy import directory
from pyjx.runtime.abstract import ShapeDtypeStruct
from pyjx.runtime.array_parts import make_array_from_single_device_arrays
from pyjx.runtime.backends import process_index
from pyjx.runtime.device_put import device_put

__all__ = [
    "Future", "Transaction", "async_deserialize", "async_serialize", "combine_kvstores",
    "estimate_read_memory_footprint", "get_tensorstore_spec", "is_tensorstore_spec_leaf",
    "merge_nested_ts_specs", "verify_tensorstore_spec",
]

# Classes of tensorstore, which need not be installed, so checkers may not know them.
Future: Any
Transaction: Any


Spec = dict[str, Any]

REMOTE = {"gs://": "gcs", "s3://": "s3"}
FILE_BYTES = 2 << 30  # files are not made larger, as far as chunks of an array allow


def tensorstore() -> Any:
    """The package TensorStore.

    Raises:
      ImportError: it is not installed.
    """
    try:
        return importlib.import_module("tensorstore")
    except ImportError:
        raise ImportError("array_serialization needs the package tensorstore: install it with "
                          "`pip install tensorstore`") from None


_shared: dict[str, Any] = {}


def shared_context() -> Any:
    """The TensorStore context that all reading and writing shares."""
    if not _shared:
        _shared["context"] = tensorstore().Context(
            {"file_io_concurrency": {"limit": 128}, "data_copy_concurrency": {"limit": 128}})
    return _shared["context"]


def kvstore(path: str) -> Spec:
    """The store of keys and values at a path of this machine, `gs://bucket/...` or `s3://...`."""
    for prefix, driver in REMOTE.items():
        if path.startswith(prefix):
            found = re.fullmatch(r"([^/]+)(?:/(.*))?", path[len(prefix):])
            if found is None:
                raise ValueError(f"get_tensorstore_spec: {path!r} names no bucket; write "
                                 f"{prefix}BUCKET/PATH")
            return {"driver": driver, "bucket": found[1], "path": (found[2] or "").rstrip("/")}
    return {"driver": "file", "path": path}


def is_remote(path: Any) -> bool:
    """Whether a path, or a spec, is of a storage service."""
    if isinstance(path, dict):
        return path.get("driver") in REMOTE.values() or any(
            [is_remote(path.get(k)) for k in ("base", "kvstore", "path")])
    return isinstance(path, (str, os.PathLike)) and os.fspath(path).startswith(tuple(REMOTE))


def spec_of_path(path: str, ocdbt: bool, driver: str, process: int | None = None) -> Spec:
    """The spec of the array at a path. With `ocdbt` the folder is one database, of which the array
    is an entry, and each process may have its own."""
    path = os.path.normpath(path).replace("gs:/", "gs://").replace("s3:/", "s3://")
    if not ocdbt:
        return {"driver": driver, "kvstore": kvstore(path)}
    folder, name = os.path.split(path)
    if process is not None:
        folder = os.path.join(folder, f"process_{process}")
    return {"driver": driver, "kvstore": {"driver": "ocdbt", "base": kvstore(folder), "path": name}}


def chunk_shape(shape: Sequence[int], itemsize: int, most: int = FILE_BYTES) -> list[int]:
    """A part of an array of this shape that divides it and has no more than so many bytes.

    >>> chunk_shape((6, 4), 4, 48)
    [3, 4]
    """
    chunk = list(shape)
    while math.prod(chunk) * itemsize > most:
        at = max(range(len(chunk)), key=lambda i: chunk[i])
        if chunk[at] == 1:
            break
        factor = next(p for p in range(2, chunk[at] + 1) if chunk[at] % p == 0)
        chunk[at] //= factor
    return chunk


def metadata(array: Any, driver: str) -> Spec:
    """What a new array in a store is to be like: its files hold the parts that devices have."""
    part = array.sharding.shard_shape(array.shape) if hasattr(array, "sharding") else array.shape
    chunk = [max(n, 1) for n in chunk_shape(part, array.dtype.itemsize)]
    if driver == "zarr":
        return {"compressor": {"id": "zstd"}, "shape": tuple(array.shape), "chunks": chunk}
    return {"codecs": [], "shape": tuple(array.shape), "data_type": array.dtype.name,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}}}


class ByteLimiter:
    """Lets readers wait until what they need fits into the memory that they share."""

    def __init__(self, host_memory_bytes_limit: int) -> None:
        self.limit = self.free = host_memory_bytes_limit
        self._changed = asyncio.Condition()

    async def wait_for_bytes(self, requested_bytes: int) -> None:
        """Wait; what is more than there is may go alone."""
        async with self._changed:
            await self._changed.wait_for(lambda: self.free >= min(requested_bytes, self.limit))
            self.free -= min(requested_bytes, self.limit)

    async def release_bytes(self, requested_bytes: int) -> None:
        async with self._changed:
            self.free += min(requested_bytes, self.limit)
            self._changed.notify_all()


# -- specs -----------------------------------------------------------------------------------------


def get_tensorstore_spec(ckpt_path: str | os.PathLike[str], ocdbt: bool = True,
                         process_idx: int | None = None, arr: Any = None, driver: str = "zarr3"
                         ) -> Spec:
    """The spec of an array at a path.

    Args:
      ckpt_path: absolute, or of a storage service (`gs://`, `s3://`).
      ocdbt: whether its folder is one database.
      process_idx: of the process that has a database of its own.
      arr: the array that is to be written; its shape and parts are said in the spec then.
      driver: zarr or zarr3, the form of the files.

    Raises:
      ValueError: the path is relative.

    >>> get_tensorstore_spec("/data/x", ocdbt=False)
    {'driver': 'zarr3', 'kvstore': {'driver': 'file', 'path': '/data/x'}}
    """
    path = os.fspath(ckpt_path)
    if not (is_remote(path) or os.path.isabs(path)):
        raise ValueError(f"Checkpoint path should be absolute. Got {path}")
    spec = spec_of_path(path, ocdbt, driver, process_idx)
    if arr is not None:
        spec["metadata"] = metadata(arr, driver)
    return spec


def is_tensorstore_spec_leaf(leaf: Any) -> bool:
    """Whether it is a spec, or None in the place of one.

    >>> is_tensorstore_spec_leaf({"driver": "zarr", "kvstore": {}})
    True
    """
    return leaf is None or (isinstance(leaf, dict) and "driver" in leaf)


def merge_nested_ts_specs(dict1: dict[Any, Any], dict2: dict[Any, Any] | None) -> dict[Any, Any]:
    """Two specs as one; of what both have the second's, but for where the array is."""
    if dict2 is None:
        return dict1
    stores = {**dict2.get("kvstore", {}), **dict1.get("kvstore", {})}
    return {**dict1, **dict2, "kvstore": stores}


def verify_tensorstore_spec(spec: Spec, arr: Any, path: str | os.PathLike[str], ocdbt: bool,
                            check_metadata: bool = True) -> None:
    """Check that a spec is of this place, and of an array like `arr`.

    Raises:
      ValueError: it is not.
    """
    store = spec.get("kvstore", {})
    if ocdbt and store.get("driver") != "ocdbt":
        raise ValueError(f"Expected ocdbt driver, got {spec=}")
    base = store.get("base") if ocdbt else store
    place = base if isinstance(base, str) else (base or {}).get("path", "")
    wanted = kvstore(os.fspath(path))["path"]
    if not os.path.normpath(place).startswith(os.path.normpath(wanted)):
        raise ValueError(f"Provided {path=} does not match the spec path: {store}")
    if arr is None or not check_metadata:
        return
    said = spec.get("metadata", {})
    if "shape" not in said:
        raise ValueError(f"The spec must have the shape of the array in its metadata, got {spec=}")
    if tuple(said["shape"]) != tuple(arr.shape):
        raise ValueError(f"Provided shape (metadata['shape']={tuple(said['shape'])}) doesn't match "
                         f"(arr.shape={arr.shape})")
    if said.get("data_type", arr.dtype.name) != arr.dtype.name:
        raise ValueError(f"Provided dtype ({said['data_type']}) doesn't match (arr.dtype="
                         f"{arr.dtype})")


def combine_kvstores(combined_kvstore: Spec, kvstores: list[Spec], context: Any = None) -> None:
    """Write what is in several stores to another one. One process may do it at a time."""
    ts = tensorstore()
    own = shared_context() if context is None else context
    target = ts.KvStore.open(ts.KvStore.Spec(combined_kvstore), context=own).result()
    for spec in kvstores:
        source = ts.KvStore.open(ts.KvStore.Spec(spec), context=own).result()
        source.experimental_copy_range_to(target).result()


def estimate_read_memory_footprint(t: Any, domain: Any) -> int:
    """The bytes that reading a part takes: of all chunks that it touches."""
    chunk = t.chunk_layout.read_chunk_template
    if chunk is None or chunk.rank != t.rank or domain.size == 0:
        return int(domain.size) * t.dtype.numpy_dtype.itemsize
    touched = 1
    for size, origin, first, last in zip(chunk.shape, chunk.origin, domain.inclusive_min,
                                         domain.exclusive_max, strict=True):
        touched *= (-(-(last - origin) // size) - (first - origin) // size) * size
    return touched * t.dtype.numpy_dtype.itemsize  # type: ignore[no-any-return]


# -- arrays ----------------------------------------------------------------------------------------


async def async_serialize(arr_inp: Any, tensorstore_spec: Any,
                          commit_future: list[Any] | None = None, context: Any = None,
                          chunk_layout: Any = None, primary_host: int | None = None,
                          replica_id: int = 0, transaction: Any = None) -> None:
    """Write an array: each process the parts that it has.

    Args:
      arr_inp: the array.
      tensorstore_spec: where it goes; what it does not say of the form is taken from the array.
      commit_future: a list that gets what waits until the parts are written; without it this
        waits, else it returns when they are copied.
      chunk_layout: of files, where the spec does not say it.
      primary_host: the process that makes the array in the store; None for each.
      replica_id: which of the copies of a part is written.
      transaction: of TensorStore.

    Raises:
      ValueError: the array has parts in other processes and is one of a single device.
    """
    ts = tensorstore()
    if not isinstance(tensorstore_spec, dict):
        tensorstore_spec = tensorstore_spec.to_json()
    spec = dict(tensorstore_spec)
    spec.setdefault("metadata", metadata(arr_inp, spec.get("driver", "zarr")))
    if spec.get("driver") != "zarr3":
        spec.setdefault("dtype", np.dtype(arr_inp.dtype).name)
    own = shared_context() if context is None else context
    options = {} if chunk_layout is None else {"chunk_layout": chunk_layout}
    if transaction is not None:
        options["transaction"] = transaction
    creates = primary_host is None or primary_host == process_index()
    store = await ts.open(ts.Spec(spec), open=True, create=creates, context=own, **options)
    writes = [store[shard.index].write(np.asarray(shard.data)) for shard in
              arr_inp.addressable_shards if shard.replica_id == replica_id]
    await asyncio.gather(*[w.copy for w in writes])
    if commit_future is None:
        await asyncio.gather(*[w.commit for w in writes])
    else:
        commit_future.extend([w.commit for w in writes])


async def async_deserialize(in_type: Any, tensorstore_spec: Any,
                            global_shape: Sequence[int] | None = None,
                            dtype: DTypeLike | None = None, byte_limiter: ByteLimiter | None = None,
                            context: Any = None, chunk_layout: Any = None,
                            assume_metadata: bool = False) -> Any:
    """Read an array: each process the parts that its devices are to have.

    Args:
      in_type: a sharding, a Format with one, or a ShapeDtypeStruct with one.
      tensorstore_spec: where it is.
      global_shape: cut it to this shape, or fill it up with zeros.
      dtype: of the result; by default that of the store.
      byte_limiter: what reading shares its memory by.
      assume_metadata: take what the spec says of the form for true, and do not read it.

    Raises:
      ValueError: there is no sharding.
    """
    ts = tensorstore()
    sharding, layout = _sharding_of(in_type)
    if isinstance(in_type, ShapeDtypeStruct):
        global_shape = in_type.shape if global_shape is None else global_shape
        dtype = in_type.dtype if dtype is None else dtype
    options = {} if chunk_layout is None else {"chunk_layout": chunk_layout}
    own = shared_context() if context is None else context
    spec = tensorstore_spec if isinstance(tensorstore_spec, dict) else tensorstore_spec.to_json()
    store = await ts.open(ts.Spec(spec), open=True, assume_metadata=assume_metadata, context=own,
                          **options)
    shape = tuple(store.shape) if global_shape is None else tuple(global_shape)
    parts = sharding.addressable_devices_indices_map(shape)

    async def read(index: tuple[slice, ...], device: Any) -> Any:
        bounds = [s.indices(n)[:2] for s, n in zip(index, shape, strict=True)]
        there = tuple([slice(min(a, n), min(b, n)) for (a, b), n in
                       zip(bounds, store.shape, strict=True)])
        domain = store[there]
        needed = estimate_read_memory_footprint(store, domain.domain)
        if byte_limiter is not None:
            await byte_limiter.wait_for_bytes(needed)
        try:
            found = np.asarray(await domain.read())
        finally:
            if byte_limiter is not None:
                await byte_limiter.release_bytes(needed)
        wanted = [b - a for a, b in bounds]
        if list(found.shape) != wanted:
            found = np.pad(found, [(0, w - n) for w, n in zip(wanted, found.shape, strict=True)])
        return device_put(found if dtype is None else found.astype(dtype), device)

    arrays = await asyncio.gather(*[read(index, device) for device, index in parts.items()])
    array = make_array_from_single_device_arrays(shape, sharding, arrays)
    return array if layout is None else device_put(array, Format(layout, sharding))


def _sharding_of(in_type: Any) -> tuple[Any, Any]:
    found = getattr(in_type, "format", None) or in_type if isinstance(
        in_type, ShapeDtypeStruct) else in_type
    layout = found.layout if isinstance(found, Format) else None
    sharding = found.sharding if isinstance(found, (Format, ShapeDtypeStruct)) else found
    if not hasattr(sharding, "addressable_devices_indices_map"):
        raise ValueError("array_serialization: to read an array takes a sharding, a Format or a "
                         f"ShapeDtypeStruct with one, got {in_type!r}")
    return sharding, layout


__dir__ = directory(__name__, __all__, Future=lambda: tensorstore().Future,
                    Transaction=lambda: tensorstore().Transaction)
