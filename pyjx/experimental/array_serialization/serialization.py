"""Checkpoints: arrays that are written while the program goes on."""

from __future__ import annotations

import asyncio
import itertools
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from pyjx.experimental.array_serialization import tensorstore_impl as stores
from pyjx.experimental.array_serialization.tensorstore_impl import (
    ByteLimiter,
    async_deserialize,
    async_serialize,
)
from pyjx.lazy import directory
from pyjx.runtime.processes import group

__all__ = [
    "AsyncManager", "BarrierTimeoutError", "GlobalAsyncCheckpointManager",
    "GlobalAsyncCheckpointManagerBase", "TS_CONTEXT", "async_deserialize", "async_serialize",
    "get_tensorstore_spec", "is_remote_storage", "run_deserialization", "run_serialization",
]

# Of a class of tensorstore, which need not be installed, so checkers may not know it.
TS_CONTEXT: Any

_LimitInFlightBytes = ByteLimiter
_count = itertools.count()


class BarrierTimeoutError(Exception):
    """Not all processes have written their parts in time.

    Ways out: look for the process that has ended or is slow, and give more time by `timeout_secs`.
    """


def get_tensorstore_spec(ckpt_path: str | os.PathLike[str], *, ocdbt: bool = False,
                         process_idx: int | None = None, arr: Any = None, driver: str = "zarr"
                         ) -> dict[str, Any]:
    """The spec of an array at a path, by default with files in the form zarr.

    Args:
      ckpt_path: of this machine or of a storage service (`gs://`, `s3://`).
      ocdbt: whether its folder is one database.
      process_idx: of the process that has a database of its own.
      arr: the array that is to be written; its shape and parts are said in the spec then.
      driver: zarr or zarr3, the form of the files.

    >>> get_tensorstore_spec("/data/x")
    {'driver': 'zarr', 'kvstore': {'driver': 'file', 'path': '/data/x'}}
    """
    spec = stores.spec_of_path(os.fspath(ckpt_path), ocdbt, driver, process_idx)
    if arr is not None:
        spec["metadata"] = stores.metadata(arr, driver)
    return spec


def is_remote_storage(tspec: dict[str, Any] | str) -> bool:
    """Whether a spec, or a path, is of a storage service.

    >>> is_remote_storage("gs://bucket/x"), is_remote_storage("/data/x")
    (True, False)
    """
    return stores.is_remote(tspec)


def _run(work: Coroutine[Any, Any, Any]) -> Any:
    """Run it in a thread of its own: this one may be in an event loop already."""
    found: list[Any] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            found.append(asyncio.run(work))
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return found[0]


def run_serialization(arrays: Sequence[Any], tensorstore_specs: Sequence[Any]) -> None:
    """Write arrays and wait until they are written."""
    _run(_write(arrays, tensorstore_specs))


async def _write(arrays: Sequence[Any], tensorstore_specs: Sequence[Any],
                 futures: list[Any] | None = None, transaction: Any = None) -> None:
    await asyncio.gather(*[async_serialize(array, spec, futures, transaction=transaction)
                           for array, spec in zip(arrays, tensorstore_specs, strict=True)])


def run_deserialization(shardings: Sequence[Any], tensorstore_specs: Sequence[Any],
                        global_shapes: Sequence[Any] | None = None,
                        dtypes: Sequence[Any] | None = None, concurrent_gb: int = 32) -> list[Any]:
    """Read arrays.

    Args:
      shardings: of each the sharding, or a Format with one.
      tensorstore_specs: where each is.
      global_shapes: cut them to these shapes, or fill them up with zeros.
      dtypes: by default those in the store.
      concurrent_gb: the memory, in 10^9 bytes, that reading may take at a time.
    """
    n = len(tensorstore_specs)

    async def read() -> list[Any]:
        limiter = ByteLimiter(concurrent_gb * 10 ** 9)
        return await asyncio.gather(*[
            async_deserialize(*described, limiter) for described in
            zip(shardings, tensorstore_specs, global_shapes or [None] * n, dtypes or [None] * n,
                strict=True)])

    return _run(read())  # type: ignore[no-any-return]


class AsyncManager:
    """Waits in a thread until arrays are written, by all processes.

    Args:
      timeout_secs: how long this process waits for the others.
    """

    def __init__(self, timeout_secs: int = 300) -> None:
        self._timeout = timeout_secs
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None
        self._futures: Sequence[Any] = ()

    def check_for_errors(self) -> None:
        """Raise what went wrong in the thread, once."""
        error, self._error = self._error, None
        if error is not None:
            raise error

    def wait_until_finished(self) -> None:
        """Wait until all is written, and raise what went wrong."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self.check_for_errors()

    def _add_futures(self, futures: Sequence[Any]) -> None:
        self._futures = futures

    def _start_async_commit(self, on_commit_callback: Callable[[], None] | None) -> None:
        key = f"array_serialization/{next(_count)}"  # the same in all processes
        self._thread = threading.Thread(target=self._commit, args=(on_commit_callback, key))
        self._thread.start()

    def _commit(self, on_commit_callback: Callable[[], None] | None, key: str) -> None:
        try:
            for future in self._futures:
                future.result()
            if group.client is not None and group.num_processes > 1:
                try:
                    group.client.wait_at_barrier(key, self._timeout * 1000)
                except Exception as error:
                    raise BarrierTimeoutError(f"process {group.process_id} waited {self._timeout} "
                                              f"seconds for the other {group.num_processes - 1} "
                                              f"processes to write their parts: {error}") from error
            if on_commit_callback is not None and group.process_id == 0:
                on_commit_callback()
        except BaseException as error:
            self._error = error


class GlobalAsyncCheckpointManagerBase(ABC):
    """What writes and reads checkpoints in the background: one checkpoint at a time."""

    @abstractmethod
    def check_for_errors(self) -> None:
        """Raise what went wrong in the background."""

    @abstractmethod
    def wait_until_finished(self) -> None:
        """Wait until all is written."""

    @abstractmethod
    def serialize(self, arrays: Sequence[Any], tensorstore_specs: Sequence[Any], *,
                  on_commit_callback: Callable[[], None]) -> None:
        """Write arrays."""

    @abstractmethod
    def deserialize(self, shardings: Sequence[Any], tensorstore_specs: Sequence[Any],
                    global_shapes: Sequence[Any] | None = None,
                    dtypes: Sequence[Any] | None = None) -> list[Any]:
        """Read arrays."""


class GlobalAsyncCheckpointManager(AsyncManager, GlobalAsyncCheckpointManagerBase):
    """Writes arrays by TensorStore: it copies them, and the program goes on while they are written.

    Example::

        manager = GlobalAsyncCheckpointManager()
        manager.serialize_with_paths([weights], ["/data/step_1/weights"])
        ...
        manager.wait_until_finished()
    """

    def serialize(self, arrays: Sequence[Any], tensorstore_specs: Sequence[Any], *,
                  on_commit_callback: Callable[[], None] | None = None, transaction: Any = None
                  ) -> None:
        """Write arrays. It returns when they are copied and may change.

        Args:
          on_commit_callback: called in process 0 when all processes have written their parts.
          transaction: of TensorStore.
        """
        self.wait_until_finished()
        futures: list[Any] = []
        _run(_write(arrays, tensorstore_specs, futures, transaction))
        self._add_futures(futures)
        self._start_async_commit(on_commit_callback)

    def serialize_with_paths(self, arrays: Sequence[Any], paths: Sequence[str], *,
                             on_commit_callback: Callable[[], None] | None = None,
                             transaction: Any = None) -> None:
        """As `serialize`, to paths."""
        self.serialize(arrays, list(map(get_tensorstore_spec, paths)),
                       on_commit_callback=on_commit_callback, transaction=transaction)

    def deserialize(self, shardings: Sequence[Any], tensorstore_specs: Sequence[Any],
                    global_shapes: Sequence[Any] | None = None,
                    dtypes: Sequence[Any] | None = None, concurrent_gb: int = 32) -> list[Any]:
        """Read arrays, after what is being written; see `run_deserialization`."""
        self.wait_until_finished()
        return run_deserialization(shardings, tensorstore_specs, global_shapes, dtypes,
                                   concurrent_gb)

    def deserialize_with_paths(self, shardings: Sequence[Any], paths: Sequence[str],
                               global_shapes: Sequence[Any] | None = None,
                               dtypes: Sequence[Any] | None = None, concurrent_gb: int = 32
                               ) -> list[Any]:
        """As `deserialize`, from paths."""
        return self.deserialize(shardings, list(map(get_tensorstore_spec, paths)), global_shapes,
                                dtypes, concurrent_gb)


__dir__ = directory(__name__, __all__, TS_CONTEXT=stores.shared_context)
