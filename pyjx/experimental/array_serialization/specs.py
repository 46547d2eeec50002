"""Where TensorStore finds an array, and in which form: a nested dict, its spec."""

from __future__ import annotations

import importlib
import math
import os
import re
from collections.abc import Sequence
from typing import Any

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


def context() -> Any:
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
