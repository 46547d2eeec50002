"""jaxlib's services by which several processes coordinate themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jaxlib import _jax

from pyjx.jaxlib_api import JAXLIB_RELEASE, JAXLIB_VERSION

# Whether the coordinator is told, and not its clients (until 0.9.0), that deaths are no end.
_IS_RECOVERABLE = "recoverable" in (_jax.get_distributed_runtime_service.__doc__ or "")


def make_coordinator(address: str, num_processes: int, heartbeat_timeout: int,
                     shutdown_timeout: int, recoverable: bool, security: Mapping[str, Any]) -> Any:
    """Start the service that a group of processes coordinates itself by.

    Args:
      address: where it listens, such as `[::]:1234`.
      num_processes: how many processes there are.
      heartbeat_timeout, shutdown_timeout: seconds after which a process counts as dead, and that
        one which ends waits for the others.
      recoverable: the death of one does not end the others.
      security: the options of mutual TLS, empty for none.
    """
    options = _security(security)
    if recoverable and _IS_RECOVERABLE:
        options["recoverable"] = True
    return _jax.get_distributed_runtime_service(
        address, num_processes, heartbeat_timeout=heartbeat_timeout,
        shutdown_timeout=shutdown_timeout, **options)


def make_coordination_client(address: str, process_id: int, init_timeout: int,
                             heartbeat_timeout: int, recoverable: bool,
                             security: Mapping[str, Any]) -> Any:
    """A process's client of the coordinator; not yet connected.

    There is no callback for missed heartbeats: C++ cannot call a Python one and aborts.
    """
    options = _security(security)
    if recoverable and not _IS_RECOVERABLE:
        options["recoverable"] = True
    return _jax.get_distributed_runtime_client(
        address, process_id, init_timeout=init_timeout, heartbeat_timeout=heartbeat_timeout,
        shutdown_on_destruction=False, use_compression=True, **options)


def _security(options: Mapping[str, Any]) -> dict[str, Any]:
    wanted = {k: v for k, v in options.items() if v}
    if wanted and JAXLIB_VERSION < (0, 11):
        raise NotImplementedError(f"jaxlib {JAXLIB_RELEASE} does not encrypt what processes tell "
                                  f"each other; 0.11 and later do. Got {', '.join(wanted)}.")
    return wanted


create_preemption_sync_manager = _jax.create_preemption_sync_manager
