"""The group of processes that run one program together, as this one knows it."""

from __future__ import annotations

from typing import Any

from pyjx import jaxlib_api


class Group:
    """Who coordinates the group, and which process of it this one is; a group of one, without a
    client, where `pyjx.distributed.initialize` was not called.

    Attributes:
      process_id, num_processes: this process, and how many there are.
      coordinator_address: where the coordinator listens.
      service: the coordinator itself, in process 0.
      client: the coordinator's client: a store of keys and values, and barriers.
      preemption_sync_manager: what agrees on a step to stop at when a process is to go.
      partition_index: the slice of the devices that those of this process belong to, if known.
      shutdown_timeout: seconds for which a process that ends waits for the others.
    """

    __slots__ = ("client", "coordinator_address", "num_processes", "partition_index",
                 "preemption_sync_manager", "process_id", "service", "shutdown_timeout")

    def __init__(self) -> None:
        self.process_id = 0
        self.num_processes = 1
        self.coordinator_address: str | None = None
        self.service: Any = None
        self.client: Any = None
        self.preemption_sync_manager: Any = None
        self.partition_index: int | None = None
        self.shutdown_timeout = 300

    def join(self, *, client: Any, **fields: Any) -> None:
        """Be a process of the group that `client` is connected to; `fields` are the others of this
        record. Other threads see a client last, with all the rest."""
        for name, value in fields.items():
            setattr(self, name, value)
        self.client = client

    def shutdown(self) -> None:
        """Wait until all processes are about to leave the group, then leave it.

        What synchronizes preemptions uses the client, and clients the service.

        Raises:
          RuntimeError: not all of them came in time. This one has left nevertheless.
        """
        manager, self.preemption_sync_manager = self.preemption_sync_manager, None
        client, self.client = self.client, None
        service, self.service = self.service, None
        late = self._meet(client) if client is not None and self.num_processes > 1 else None
        for part in (manager, client, service):
            if part is not None:
                part.shutdown()
        if late is not None:
            raise RuntimeError(
                f"distributed.shutdown: process {self.process_id} waited {self.shutdown_timeout} "
                f"seconds for the other {self.num_processes - 1} of {self.num_processes} processes "
                f"to end: {late}")

    def _meet(self, client: Any) -> Exception | None:
        """Wait for all; why it failed, if it did."""
        try:
            client.wait_at_barrier("pyjx/distributed/shutdown", 1000 * self.shutdown_timeout)
        except jaxlib_api.JaxRuntimeError as error:
            return error
        return None


group = Group()
