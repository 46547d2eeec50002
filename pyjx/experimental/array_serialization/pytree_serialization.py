"""Pytrees of arrays in files: their structures as JSON, their arrays by TensorStore."""

from __future__ import annotations

import json
import os
import re
import shutil
import threading
from collections.abc import Generator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from pyjx.core.avals import get_aval
from pyjx.engine.functions import with_at
from pyjx.experimental.array_serialization import serialization
from pyjx.experimental.array_serialization import tensorstore_impl as stores
from pyjx.export.trees import tree_from_data, tree_to_data
from pyjx.lazy import directory
from pyjx.runtime.abstract import ShapeDtypeStruct
from pyjx.runtime.array import Array
from pyjx.runtime.device_put import device_put
from pyjx.runtime.processes import group
from pyjx.tree_util import PyTree, broadcast_prefix, tree_flatten, tree_map, tree_unflatten

__all__ = ["load", "load_pytreedef", "nonblocking_load", "nonblocking_save", "save"]


def serialize_pytreedef(node: PyTree) -> dict[str, Any]:
    """A pytree of texts and None as JSON's values.

    Raises:
      ValueError: a type of its nodes has no serialization.

    >>> deserialize_pytreedef(serialize_pytreedef({"a": ["x", None]}))
    {'a': ['x', None]}
    """
    leaves, tree = tree_flatten(node)
    return {"tree": tree_to_data(tree), "leaves": leaves}


def deserialize_pytreedef(pytreedef_repr: dict[str, Any]) -> Any:
    """The pytree that `serialize_pytreedef` made the values of."""
    if "tree" not in pytreedef_repr:
        raise ValueError("deserialize_pytreedef: the structure was written by another package, in "
                         "a form of its own; read the arrays by their specs")
    return tree_unflatten(tree_from_data(pytreedef_repr["tree"]), pytreedef_repr["leaves"])


class PyTreeFuture:
    """A pytree that comes later.

    Attributes:
      pytree: its structure, with types in the place of arrays.
    """

    def __init__(self, future: Future[Any], pytree: PyTree = None) -> None:
        self._future = future
        self.pytree = pytree

    def done(self) -> bool:
        """Whether it is there."""
        return self._future.done()

    def result(self, *args: Any, **kw: Any) -> Any:
        """Wait for it."""
        return self._future.result(*args, **kw)

    def __await__(self) -> Generator[Any, None, Any]:
        while not self._future.done():
            yield
        return self.result()

    def __repr__(self) -> str:
        return f"PyTreeFuture(done={self.done()}, pytree={self.pytree})"


_STRUCTURE, _ARRAYS = "pytreedef.json", "array_store"
_saving = threading.RLock()  # one save at a time
_threads = ThreadPoolExecutor(max_workers=4, thread_name_prefix="pytree_serialization")


def _described(leaf: Any) -> str:
    if not (hasattr(leaf, "shape") and hasattr(leaf, "dtype")) and not isinstance(
            leaf, (bool, int, float, complex)):
        raise ValueError("For serialization, all leaves must be either None or jax.Array-like "
                         f"objects; got {leaf!r}")
    aval = get_aval(leaf)
    return f"Array({aval.dtype.name}[{', '.join(map(str, aval.shape))}])"


def _typed(text: str) -> ShapeDtypeStruct:
    found = re.fullmatch(r"Array\((\w+)\[([0-9, ]*)\]\)", text)
    if found is None:
        raise ValueError(f"load_pytreedef: {text!r} describes no array")
    return ShapeDtypeStruct(tuple([int(n) for n in found[2].split(",") if n.strip()]),
                            stores.tensorstore().dtype(found[1]).numpy_dtype)


def _placed(leaf: Any) -> Any:
    return leaf if isinstance(leaf, Array) else device_put(leaf)


def _write(path: str | os.PathLike[str], text: str | None) -> str | None:
    """Write a file or, without a text, read it; None where there is none."""
    if not stores.is_remote(path):
        place = Path(path)
        if text is None:
            return place.read_text(encoding="utf-8") if place.exists() else None
        place.write_text(text, encoding="utf-8")
        return None
    folder, name = os.path.split(os.fspath(path))
    store = stores.tensorstore().KvStore.open(
        {**stores.kvstore(folder), "path": stores.kvstore(folder)["path"] + "/"}).result()
    if text is None:
        found = store.read(name).result()
        return None if found.state == "missing" else found.value.decode()
    store.write(name, text.encode()).result()
    return None


def _prepare(root: str, overwrite: bool, structure: dict[str, Any]) -> None:
    """Make the folder, without what another save has left there."""
    there = _write(os.path.join(root, _STRUCTURE), None) is not None or (
        not stores.is_remote(root) and Path(root).exists() and any(Path(root).iterdir()))
    if there and not overwrite:
        raise ValueError(f"Files already exist at path: `{root}`, but you specified "
                         "`overwrite=False`")
    if not stores.is_remote(root):
        if there:
            if not (Path(root) / _STRUCTURE).exists():
                raise RuntimeError(f"save: the folder {root} holds other files than a saved "
                                   "pytree; remove them, or save elsewhere")
            shutil.rmtree(Path(root) / _ARRAYS, ignore_errors=True)
        Path(root).mkdir(parents=True, exist_ok=True)
    _write(os.path.join(root, _STRUCTURE), json.dumps(structure))


def _meet(what: str) -> None:
    if group.client is not None and group.num_processes > 1:
        group.client.wait_at_barrier(f"pytree_serialization/{what}", 300_000)


def _leaf_specs(ts_specs: PyTree, tree: PyTree, n: int) -> list[Any]:
    if ts_specs is None:
        return [None] * n
    return list(broadcast_prefix(ts_specs, tree, is_leaf=stores.is_tensorstore_spec_leaf))


def save(data: PyTree, directory: str | os.PathLike[str], *, overwrite: bool = True,
         ts_specs: PyTree = None) -> None:
    """Write a pytree of arrays to a folder. All processes have to call it.

    Args:
      data: its leaves are arrays; None is part of the structure.
      directory: of this machine, or of a storage service (`gs://`, `s3://`).
      overwrite: whether what has been saved there may go.
      ts_specs: a prefix tree of what the TensorStore specs of the arrays are to say besides.

    Raises:
      ValueError: a leaf is no array, or there are files and `overwrite` is False.
      RuntimeError: the folder holds other files.
      ImportError: tensorstore is not installed.
    """
    root = os.fspath(directory) if stores.is_remote(directory) else os.path.abspath(directory)
    structure = serialize_pytreedef(tree_map(_described, data))
    leaves, _ = tree_flatten(data)
    given = _leaf_specs(ts_specs, data, len(leaves))
    arrays = list(map(_placed, leaves))
    several = group.num_processes > 1
    with _saving:
        if group.process_id == 0:
            _prepare(root, overwrite, structure)
        _meet(f"{root}/prepared")
        store = os.path.join(root, _ARRAYS)
        if not stores.is_remote(root):
            Path(store).mkdir(exist_ok=True)
        found = [stores.merge_nested_ts_specs(stores.get_tensorstore_spec(
            os.path.join(store, str(i)), process_idx=group.process_id if several else None,
            arr=array), own) for i, (array, own) in enumerate(zip(arrays, given, strict=True))]
        for spec, array in zip(found, arrays, strict=True):
            stores.verify_tensorstore_spec(spec, array, store, ocdbt=True)
        serialization.run_serialization(arrays, found)
        _meet(f"{root}/written")
        if several and group.process_id == 0:
            stores.combine_kvstores(_database(store), [
                _database(os.path.join(store, f"process_{i}")) for i in range(group.num_processes)])
        _meet(f"{root}/saved")


def _database(path: str) -> dict[str, Any]:
    return {"driver": "ocdbt", "base": stores.kvstore(path)}


def load_pytreedef(directory: str | os.PathLike[str]) -> Any:
    """The structure of a saved pytree, with types in the place of arrays.

    Raises:
      AssertionError: nothing has been saved there.
    """
    text = _write(os.path.join(directory, _STRUCTURE), None)
    if text is None:
        raise AssertionError(f"Checkpoint directory {directory} does not exist")
    return tree_map(_typed, deserialize_pytreedef(json.loads(text)))


def load(directory: str | os.PathLike[str], shardings: PyTree, *, mask: PyTree = None,
         ts_specs: PyTree = None) -> Any:
    """Read a pytree that `save` has written.

    Args:
      directory: as of `save`.
      shardings: a prefix tree of where the arrays go: a sharding, or a ShapeDtypeStruct with one.
      mask: a prefix tree of booleans; leaves where it is False are None in the result.
      ts_specs: as of `save`.

    Raises:
      AssertionError: nothing has been saved there.
      ImportError: tensorstore is not installed.
    """
    return _loaded(directory, load_pytreedef(directory), shardings, mask, ts_specs)


def _loaded(directory: str | os.PathLike[str], types: PyTree, shardings: PyTree, mask: PyTree,
            ts_specs: PyTree) -> Any:
    root = os.fspath(directory) if stores.is_remote(directory) else os.path.abspath(directory)
    leaves, tree = tree_flatten(types)
    wanted = [True] * len(leaves) if mask is None else broadcast_prefix(mask, types)
    places = broadcast_prefix(shardings, types, is_leaf=lambda x: x is Ellipsis)
    given = _leaf_specs(ts_specs, types, len(leaves))
    chosen = [i for i, want in enumerate(wanted) if want]
    specs = [stores.merge_nested_ts_specs(stores.get_tensorstore_spec(
        os.path.join(root, _ARRAYS, str(i))), given[i]) for i in chosen]
    arrays = serialization.run_deserialization([places[i] for i in chosen], specs) if specs else ()
    return tree_unflatten(tree, with_at([None] * len(leaves), chosen, arrays))


def nonblocking_save(data: PyTree, directory: str | os.PathLike[str], *, overwrite: bool = True,
                     ts_specs: PyTree = None) -> PyTreeFuture:
    """As `save`, in another thread."""
    types = tree_map(lambda x: ShapeDtypeStruct(get_aval(x).shape, get_aval(x).dtype), data)
    return PyTreeFuture(_threads.submit(save, data, directory, overwrite=overwrite,
                                        ts_specs=ts_specs), types)


def nonblocking_load(directory: str | os.PathLike[str], shardings: PyTree, *, mask: PyTree = None,
                     ts_specs: PyTree = None) -> PyTreeFuture:
    """As `load`, in another thread."""
    types = load_pytreedef(directory)
    return PyTreeFuture(_threads.submit(_loaded, directory, types, shardings, mask, ts_specs),
                        types)


__dir__ = directory(__name__, __all__)
