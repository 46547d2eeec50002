"""Several processes that run one program on the devices of all of them."""

from __future__ import annotations

import atexit
import errno
import os
import socket
import sys
import threading
from collections.abc import Sequence
from typing import Any

from pyjx import configuration as config
from pyjx import jaxlib_groups
from pyjx.core import logs
from pyjx.core.frames import warn
from pyjx.lazy import directory
from pyjx.runtime import backends, clusters
from pyjx.runtime.processes import group

__all__ = ["initialize", "is_initialized", "shutdown"]

_ONCE = "distributed.initialize should only be called once."
_WORLD_SIZE = "pyjx/distributed/num_processes"
_FOREVER = 10**6  # seconds: C++ is to wait longer than Python, because it aborts the process


def initialize(coordinator_address: str | None = None, num_processes: int | None = None,
               process_id: int | None = None, local_device_ids: int | Sequence[int] | None = None,
               cluster_detection_method: str | None = None, initialization_timeout: int = 300,
               heartbeat_timeout_seconds: int = 100, shutdown_timeout_seconds: int = 300,
               coordinator_bind_address: str | None = None, slice_index: int | None = None,
               partition_index: int | None = None, mtls_cert_file: str | None = None,
               mtls_key_file: str | None = None, mtls_ca_file: str | None = None,
               mtls_peer_uri_prefix: str | None = None,
               verify_secure_credentials: bool | None = None) -> None:
    """Make this process one of a group, each of which sees the devices of all.

    Every process calls it, before anything that starts a backend, and waits in it for the others.
    From then on `jax.devices()` are those of all processes, and all of them run the same programs
    in the same order. When one of them dies the others are ended, with a message.

    What Slurm, Open MPI, Kubernetes and Cloud TPU tell their processes need not be given.

    Args:
      coordinator_address: `host:port` of process 0, which coordinates; the port is any free one.
      num_processes: how many processes there are.
      process_id: which one this is, from 0.
      local_device_ids: the accelerators of its host that this process uses; by default all, and
        one for each process where Slurm or MPI started several.
      cluster_detection_method: "slurm", "ompi", "mpi4py", "gketpu", "gcetpu" or "k8s" instead of
        the first that is found; "deactivate" for none.
      initialization_timeout: seconds to wait for the other processes.
      heartbeat_timeout_seconds: seconds of silence after which a process counts as dead.
      shutdown_timeout_seconds: seconds for which a process that ends waits for the others.
      coordinator_bind_address: where process 0 listens; by default on all its interfaces.
      slice_index: the former name of `partition_index`.
      partition_index: which slice of the devices those of this process belong to.
      mtls_cert_file, mtls_key_file, mtls_ca_file, mtls_peer_uri_prefix: for mutual TLS between the
        processes; by default the flags of these names. Needs jaxlib 0.11.
      verify_secure_credentials: refuse to go without TLS.

    Raises:
      RuntimeError: a backend has started, it was called before, the others did not come in time,
        or disagree about the number of processes.
      ValueError, TypeError: an argument is missing or makes no sense.

    >>> import pyjx as jax
    >>> jax.distributed.initialize("10.0.0.1:1234", num_processes=2,
    ...                            process_id=0)  # doctest: +SKIP
    """
    backends.check_not_started()
    if slice_index is not None and partition_index is None:
        warn("`slice_index` has been deprecated. Please use `partition_index` instead.",
             DeprecationWarning)
        partition_index = slice_index
    address, count, index, local = _arguments(
        coordinator_address, num_processes, process_id, local_device_ids,
        cluster_detection_method, initialization_timeout)
    if group.client is not None:
        raise RuntimeError(_ONCE)
    _use_accelerators(local)
    _warn_of_proxies()
    security = _security(mtls_cert_file, mtls_key_file, mtls_ca_file, mtls_peer_uri_prefix,
                         verify_secure_credentials)
    recoverable = config.enable_recoverability.value
    service = None
    if index == 0:
        bind = (coordinator_bind_address or os.environ.get("JAX_COORDINATOR_BIND_ADDRESS")
                or f"[::]:{address.rpartition(':')[2]}")
        _check_is_free(bind)
        service = jaxlib_groups.make_coordinator(
            bind, count, heartbeat_timeout_seconds, shutdown_timeout_seconds, recoverable, security)
    client = jaxlib_groups.make_coordination_client(
        address, index, _FOREVER, heartbeat_timeout_seconds, recoverable, security)
    _connect(client, service, address, index, count, initialization_timeout)
    manager = None
    try:
        _check_world_size(client, index, count, initialization_timeout)
        if config.enable_preemption_service.value:
            manager = jaxlib_groups.create_preemption_sync_manager()
            manager.initialize(client)
    except BaseException:
        for part in (client, service):
            if part is not None:
                part.shutdown()
        raise
    group.join(client=client, service=service, preemption_sync_manager=manager, process_id=index,
               num_processes=count, coordinator_address=address,
               partition_index=_partition_index(partition_index),
               shutdown_timeout=shutdown_timeout_seconds)
    atexit.register(_leave)


def is_initialized() -> bool:
    """Whether this process is one of a group.

    >>> import pyjx as jax
    >>> jax.distributed.is_initialized()
    False
    """
    return group.client is not None


def shutdown() -> None:
    """Leave the group, when all others do; nothing where there is none. Programs that end without
    an error do it by themselves.

    >>> import pyjx as jax
    >>> jax.distributed.shutdown()
    """
    group.shutdown()


# ---- arguments ----------------------------------------------------------------------------


def _arguments(address: str | None, count: int | None, index: int | None,
               local: int | Sequence[int] | None, method: str | None, timeout: int
               ) -> tuple[str, int, int, Sequence[int] | None]:
    """The arguments as they were given, or as the environment says."""
    env = os.environ
    given: dict[str, Any] = {
        "coordinator_address": address or env.get("JAX_COORDINATOR_ADDRESS"),
        "num_processes": count, "process_id": index,
        "local_device_ids": [local] if isinstance(local, int) else local}
    if local is None and env.get("JAX_LOCAL_DEVICE_IDS"):
        given["local_device_ids"] = [int(i) for i in env["JAX_LOCAL_DEVICE_IDS"].split(",")]
    if method != "deactivate" and None in given.values():
        given = clusters.completed(given, method, timeout)
    address, count, index, local = given.values()
    if address is None:
        raise ValueError("coordinator_address should be defined.")
    if count is None:
        raise ValueError("Number of processes must be defined.")
    if index is None:
        raise ValueError("The process id of the current process must be defined.")
    for name, what, value in (("process_id", "a nonnegative", index),
                              ("num_processes", "a positive", count)):
        if not isinstance(value, int):
            raise TypeError(f"{name} must be {what} int. Got {name}={value} of type {type(value)}.")
    if not 0 <= index < count:
        raise ValueError("process_id and num_processes must be nonnegative, with process_id < "
                         f"num_processes. Got process_id={index}, num_processes={count}.")
    if not address.rpartition(":")[2].isdigit() or ":" not in address:
        raise ValueError("coordinator_address must be host:port, such as '10.0.0.1:1234', got "
                         f"{address!r}.")
    assert local is None or not isinstance(local, int)
    return address, count, index, local


def _security(cert: str | None, key: str | None, ca: str | None, prefix: str | None,
              verify: bool | None) -> dict[str, Any]:
    """The options of mutual TLS: the arguments, or the flags."""
    given = {"mtls_cert_file": (cert, config.mtls_cert_file),
             "mtls_key_file": (key, config.mtls_key_file),
             "mtls_ca_file": (ca, config.mtls_ca_file),
             "mtls_peer_uri_prefix": (prefix, config.mtls_peer_uri_prefix),
             "verify_secure_credentials": (verify, config.distributed_verify_secure_credentials)}
    return {name: flag.value if value is None else value for name, (value, flag) in given.items()}


def _partition_index(given: int | None) -> int | None:
    if given is not None:
        return given
    if "JAX_PARTITION_INDEX" in os.environ:
        return int(os.environ["JAX_PARTITION_INDEX"])
    if "JAX_SLICE_INDEX" in os.environ:
        warn("JAX_SLICE_INDEX has been deprecated. Please use JAX_PARTITION_INDEX instead.",
             DeprecationWarning)
        return int(os.environ["JAX_SLICE_INDEX"])
    return None


def _warn_of_proxies() -> None:
    found = [name for name in os.environ if "_proxy" in name.lower()]
    if found and config.check_proxy_envs.value:
        logs.log(__name__, logs.WARNING,
                 f"JAX detected proxy variable(s) in the environment as distributed setup: "
                 f"{' '.join(found)}. On some systems, this may cause a hang of "
                 "distributed.initialize and you may need to unset these ENV variable(s)")


def _use_accelerators(local: Sequence[int] | None) -> None:
    """Show this process these accelerators of its host alone."""
    if local:
        visible = ",".join(map(str, local))
        for flag in ("jax_cuda_visible_devices", "jax_rocm_visible_devices",
                     "jax_oneapi_visible_devices"):
            config.config.update(flag, visible)


# ---- meeting ------------------------------------------------------------------------------


def _check_is_free(bind: str) -> None:
    """The coordinator shares its port with any other that listens there, in silence."""
    host, _, port = bind.rpartition(":")
    host = host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, int(port)))
    except OSError as error:
        if error.errno == errno.EAFNOSUPPORT:  # no IPv6 here: C++ will try IPv4
            return
        raise RuntimeError(f"distributed.initialize: the coordinator cannot listen on {bind}: "
                           f"{error.strerror or error}. Choose another port.") from None


def _connect(client: Any, service: Any, address: str, index: int, count: int, timeout: int) -> None:
    """Wait until all processes have come. C++ would end this process where one does not."""
    errors: list[BaseException] = []

    def connect() -> None:
        try:
            client.connect()
        except BaseException as error:
            errors.append(error)

    waiting = threading.Thread(target=connect, name="distributed.initialize", daemon=True)
    waiting.start()
    waiting.join(timeout)
    if waiting.is_alive():
        _abandoned.append((client, service))
        whom = f"the other {count - 1} of {count} processes to connect to {address}" if index == 0 \
            else f"the coordinator at {address} and all other processes of {count}"
        raise RuntimeError(
            f"DEADLINE_EXCEEDED: distributed.initialize: process {index} waited {timeout} seconds "
            f"for {whom}. Are all of them running, with the same coordinator_address and "
            "num_processes? initialization_timeout= gives them more time.")
    if errors:
        raise errors[0]


_abandoned: list[Any] = []  # clients that another thread still connects: they may not be freed


def _check_world_size(client: Any, index: int, count: int, timeout: int) -> None:
    """All processes were told the same number of processes."""
    if index == 0:
        client.key_value_set(_WORLD_SIZE, str(count), allow_overwrite=True)
        return
    known = int(client.blocking_key_value_get(_WORLD_SIZE, timeout * 1000))
    if known != count:
        raise RuntimeError(
            f"distributed.initialize: process {index} was told that there are {count} processes, "
            f"process 0 that there are {known}. num_processes must be the same in all.")


def _leave() -> None:
    """At exit: meet the others, unless this process ends by an error, of which they shall know."""
    failed = getattr(sys, "last_value", None) is not None and not hasattr(sys, "ps1")
    if group.client is None or failed:
        return
    group.shutdown()


__dir__ = directory(__name__, __all__)
