"""What launchers of processes tell them: who coordinates, how many there are, and which is this.

Open MPI, Slurm, mpi4py, Cloud TPU on GKE and GCE, and Kubernetes. Ports are computed from what all
processes of a job know, so that jobs which share a machine have different ones.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from pyjx.core import logs
from pyjx.core.frames import warn
from pyjx.core.records import Record
from pyjx.lazy import deferred
from pyjx.runtime import backends

mpi = deferred("mpi4py.MPI")  # of users who have MPI
k8s = deferred("kubernetes")  # of users who have a cluster

_PORTS = 1 << 12  # the last ports are what jobs share


class Cluster(Record):
    """A kind of launcher.

    Attributes:
      name: what `cluster_detection_method` calls it.
      is_present: whether it launched this process.
      address: (seconds to wait for it) -> where process 0 coordinates the others: host:port.
      num_processes, process_id: how many processes there are, and which this one is.
      local_process_id: which one it is on its host, where each has a device of its own; else None.
      on_request: it is used only where it is asked for.
    """

    name: str
    is_present: Callable[[], bool]
    address: Callable[[int], str]
    num_processes: Callable[[], int]
    process_id: Callable[[], int]
    local_process_id: Callable[[], int | None] = lambda: None
    on_request: bool = False


def detect(method: str | None) -> Cluster | None:
    """The launcher of this process: the one of this name, or the first that is present."""
    if method is None:
        return next((c for c in CLUSTERS if not c.on_request and c.is_present()), None)
    found = next((c for c in CLUSTERS if c.name == method), None)
    names = ", ".join(c.name for c in CLUSTERS)
    if found is None:
        logs.log(__name__, logs.WARNING, f"cluster_detection_method={method!r} is not one of "
                                         f"{names} and 'deactivate'.")
    elif not found.is_present():
        logs.log(__name__, logs.WARNING, f"cluster_detection_method={method!r}: this process was "
                                         "not launched so, or a package for it is missing.")
    return found


def _address(host: Callable[[int], str], port: Callable[[], int]) -> Callable[[int], str]:
    """Of the host and the port, which users may choose."""
    return lambda timeout: f"{host(timeout)}:{os.environ.get('JAX_COORDINATOR_PORT') or port()}"


def _hashed_port(number: int) -> int:
    return 65536 - _PORTS + number % _PORTS


def _has(*variables: str) -> bool:
    return all(v in os.environ for v in variables)


def _integer(variable: str) -> Callable[[], int]:
    return lambda: int(os.environ[variable])


# ---- Slurm --------------------------------------------------------------------------------


def _slurm_coordinator(timeout: int) -> str:
    """The first of `node1,node2`, `node[001-004,007],other`."""
    nodes = os.environ["SLURM_STEP_NODELIST"]
    found = re.match(r"([^,\[]*)(?:\[([^-,\]]*))?", nodes)
    assert found is not None  # every part of the pattern may be empty
    return found[1] + (found[2] or "")


# ---- Open MPI -----------------------------------------------------------------------------

_ORTE = "OMPI_MCA_orte_hnp_uri"  # 1531576320.0;tcp://10.96.0.1,10.148.0.1:34911, before version 5


def _is_open_mpi_5() -> bool:
    if not _has("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK"):
        return False
    major = os.environ.get("OMPI_VERSION", "").partition(".")[0]
    return int(major) >= 5 if major.isdigit() else _ORTE not in os.environ


def _open_mpi(before_5: Callable[..., Any], by_mpi4py: Callable[..., Any]) -> Callable[..., Any]:
    """Version 5 tells no address, so its processes ask MPI."""

    def ask(*args: Any) -> Any:
        if not _is_open_mpi_5():
            return before_5(*args)
        if not _has_mpi4py():
            raise RuntimeError("Open MPI 5 or newer requires mpi4py for distributed "
                               "initialization. Install it, or give initialize its arguments.")
        return by_mpi4py(*args)

    return ask


def _orte_coordinator(timeout: int) -> str:
    uri = os.environ[_ORTE]
    found = re.search(r"tcp://([^,:]+)|tcp6://\[([^,\]]+)", uri)
    if found is None:
        raise RuntimeError("Could not parse coordinator IP address from Open MPI environment: "
                           f"{_ORTE}={uri}.")
    return found[1] or found[2]


def _orte_port() -> int:
    """By the number of the job, which is in the upper bits."""
    return _hashed_port(int(os.environ[_ORTE].partition(".")[0]) // _PORTS)


# ---- mpi4py -------------------------------------------------------------------------------


def _has_mpi4py() -> bool:
    return importlib.util.find_spec("mpi4py") is not None


def _mpi_coordinator(timeout: int) -> str:
    return str(mpi.COMM_WORLD.bcast(socket.gethostname(), root=0))


def _mpi_port() -> int:
    name = _mpi_coordinator(0)
    return _hashed_port(sum(ord(c) * 31 ** i for i, c in enumerate(name)))


def _mpi_local_index() -> int:
    return int(mpi.COMM_WORLD.Split_type(mpi.COMM_TYPE_SHARED).Get_rank())


# ---- Cloud TPU ----------------------------------------------------------------------------


def _on_cloud_tpu() -> bool:
    """Whether this machine has TPUs, and what they are used with."""
    return backends.plugin_library("tpu") is not None and backends.has_hardware("tpu")


@lru_cache(maxsize=16)
def _metadata(key: str) -> str | None:
    """An attribute of this virtual machine, as Google's metadata server has it."""
    host = os.environ.get("GCE_METADATA_IP", "metadata.google.internal")
    request = urllib.request.Request(f"http://{host}/computeMetadata/v1/instance/attributes/{key}",
                                     headers={"Metadata-Flavor": "Google"})
    for attempt in range(6):
        try:
            with urllib.request.urlopen(request, timeout=60) as reply:
                return str(reply.read().decode())
        except (urllib.error.URLError, OSError):
            time.sleep(0.5 * (attempt < 5))
    return None


def _tpu_value(key: str) -> str | None:
    """A variable of the environment, or a line `KEY: 'value'` of the metadata."""
    if key in os.environ:
        return os.environ[key]
    if "TPU_SKIP_MDS_QUERY" in os.environ:
        return None
    for line in (_metadata("tpu-env") or "").splitlines():
        name, colon, value = line.partition(":")
        if colon and name.strip() == key:
            return value.strip().strip("'")
    return None


def _gke_hosts() -> str | None:
    path = os.environ.get("TPU_PROCESS_ADDRESSES_PATH")
    if path:
        try:
            with open(path, encoding="utf-8") as f:
                content = f.read().strip()
        except OSError as error:
            raise RuntimeError(
                f"Failed to read TPU process addresses file {path}: {error}") from error
        if not content:
            raise ValueError(f"TPU process addresses file is empty: {path}")
        return content
    return os.environ.get("TPU_PROCESS_ADDRESSES", os.environ.get("TPU_WORKER_HOSTNAMES"))


def _gke_workers() -> list[str]:
    return (_gke_hosts() or "").split(",")


def _is_gce() -> bool:
    return (_on_cloud_tpu() and "TPU_SKIP_MDS_QUERY" not in os.environ
            and _metadata("agent-worker-number") is not None)


def _gce_workers() -> list[str]:
    """Of host names, or of `name:number:address`."""
    workers = []
    for endpoint in (_metadata("worker-network-endpoints") or "").split(","):
        parts = endpoint.split(":")
        if len(parts) not in (1, 3):
            raise ValueError(f"unsupported worker-network-endpoints format: {endpoint}")
        workers.append(parts[-1])
    return workers


def _tpu(name: str, is_present: Callable[[], bool], workers: Callable[[], Sequence[str]],
         index_in_slice: Callable[[], int]) -> Cluster:
    """TPU hosts: those of one slice, or of several that Megascale connects."""

    def coordinator(timeout: int) -> str:
        address = _tpu_value("MEGASCALE_COORDINATOR_ADDRESS") or workers()[0]
        host = address.partition(":")[0]
        _wait_for_name(host, timeout)
        return host

    return Cluster(
        name, is_present, _address(coordinator, lambda: 8482),
        num_processes=lambda: len(workers()) * int(_tpu_value("MEGASCALE_NUM_SLICES") or 1),
        process_id=lambda: (index_in_slice()
                            + len(workers()) * int(_tpu_value("MEGASCALE_SLICE_ID") or 0)))


def _wait_for_name(host: str, timeout: int) -> None:
    """Wait until the name of a host is known: its process may start later."""
    end = time.monotonic() + timeout
    while True:
        try:
            socket.gethostbyname(host)
            return
        except OSError as error:
            if time.monotonic() >= end:
                raise RuntimeError(f"Failed to recognize coordinator address {host} in {timeout} "
                                   f"seconds: {error}") from None
            time.sleep(min(1.0, max(0.0, end - time.monotonic())))


# ---- Kubernetes ---------------------------------------------------------------------------

_NAMESPACE = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
_JOB_SET = "jobset.sigs.k8s.io/jobset-name"


def _is_kubernetes() -> bool:
    if "KUBERNETES_SERVICE_HOST" not in os.environ:
        return False
    if importlib.util.find_spec("kubernetes") is None:
        warn(
            "Kubernetes environment detected, but the `kubernetes` package is not installed to "
            "enable automatic bootstrapping in this environment. Install it, or give "
            "distributed.initialize its arguments.")
        return False
    return True


@lru_cache(maxsize=1)
def _pod_and_job() -> tuple[Any, Any]:
    k8s.config.load_incluster_config()
    with open(_NAMESPACE, encoding="utf-8") as f:
        namespace = f.read().strip()
    address = socket.gethostbyname(os.environ.get("HOSTNAME", socket.gethostname()))
    try:
        (pod,) = k8s.client.CoreV1Api().list_namespaced_pod(
            namespace, field_selector=f"status.podIP={address}").items
        owner = next((o for o in pod.metadata.owner_references or () if o.controller), None)
        if owner is None or owner.kind != "Job":
            raise RuntimeError("In K8s, cluster automatic bootstrap only supports Job/JobSet, but "
                               f"pod {pod.metadata.name} is of {owner and owner.kind}.")
        return pod, k8s.client.BatchV1Api().read_namespaced_job(owner.name, namespace)
    except k8s.client.exceptions.ApiException as error:
        raise RuntimeError("distributed.initialize may not ask Kubernetes about this pod and its "
                           f"job: {error.reason}. Give its service account the right to get and "
                           "list pods and jobs.") from error


def _k8s_coordinator(timeout: int) -> str:
    """The first pod of the job, as a headless service or the job set names it."""
    pod, job = _pod_and_job()
    subdomain = (job.metadata.labels or {}).get(_JOB_SET) or pod.spec.subdomain
    if subdomain is None:
        raise RuntimeError(
            "Pods within a job need a headless service in order to communicate with each other. "
            "Make a Service with `clusterIP: None` and `publishNotReadyAddresses: true` that "
            f"selects `job-name: {job.metadata.name}`, and name it as `subdomain` in the job's "
            "pod template.")
    host = f"{job.metadata.name}-0.{subdomain}"
    if timeout:
        _wait_for_name(host, timeout)
    return host


def _k8s_index() -> int:
    if "JOB_COMPLETION_INDEX" not in os.environ:
        raise RuntimeError("To enable automatic bootstrap in a K8s cluster, jobs must be indexed "
                           'by setting `completionMode: "Indexed"`.')
    return int(os.environ["JOB_COMPLETION_INDEX"])


# ---- all ----------------------------------------------------------------------------------

_MPI4PY = Cluster(
    "mpi4py", _has_mpi4py, _address(_mpi_coordinator, _mpi_port),
    lambda: int(mpi.COMM_WORLD.Get_size()), lambda: int(mpi.COMM_WORLD.Get_rank()),
    _mpi_local_index, on_request=True)

CLUSTERS: tuple[Cluster, ...] = (
    Cluster(
        "ompi", lambda: _ORTE in os.environ or _is_open_mpi_5(),
        _open_mpi(_address(_orte_coordinator, _orte_port), _MPI4PY.address),
        _open_mpi(_integer("OMPI_COMM_WORLD_SIZE"), _MPI4PY.num_processes),
        _open_mpi(_integer("OMPI_COMM_WORLD_RANK"), _MPI4PY.process_id),
        _open_mpi(_integer("OMPI_COMM_WORLD_LOCAL_RANK"), _mpi_local_index)),
    Cluster(
        "slurm", lambda: _has("SLURM_JOB_ID", "SLURM_STEP_NODELIST", "SLURM_NTASKS",
                              "SLURM_PROCID", "SLURM_LOCALID"),
        _address(_slurm_coordinator, lambda: _hashed_port(int(os.environ["SLURM_JOB_ID"]))),
        _integer("SLURM_NTASKS"), _integer("SLURM_PROCID"), _integer("SLURM_LOCALID")),
    _MPI4PY,
    _tpu("gketpu", lambda: _on_cloud_tpu() and _gke_hosts() is not None, _gke_workers,
         _integer("TPU_WORKER_ID")),
    _tpu("gcetpu", _is_gce, _gce_workers, lambda: int(_metadata("agent-worker-number") or 0)),
    Cluster("k8s", _is_kubernetes, _address(_k8s_coordinator, lambda: 55527),
            lambda: int(_pod_and_job()[1].spec.parallelism), _k8s_index),
)


def completed(given: Mapping[str, Any], method: str | None, timeout: int) -> dict[str, Any]:
    """The arguments of `initialize` with those that are None found out, where they can be."""
    found = dict(given)
    cluster = detect(method)
    if cluster is None:
        return found
    if found["coordinator_address"] is None:
        found["coordinator_address"] = cluster.address(timeout)
    if found["num_processes"] is None:
        found["num_processes"] = cluster.num_processes()
    if found["process_id"] is None:
        found["process_id"] = cluster.process_id()
    # TPUs are divided among processes by their own variables.
    if found["local_device_ids"] is None and not _on_cloud_tpu():
        local = cluster.local_process_id()
        found["local_device_ids"] = None if local is None else [local]
    return found
