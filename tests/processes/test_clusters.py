"""What launchers tell their processes, as JAX reads it."""

import os

import pytest

from pyjx.runtime import backends, clusters

pytestmark = pytest.mark.smoke

NOTHING = dict.fromkeys(("coordinator_address", "num_processes", "process_id", "local_device_ids"))


@pytest.fixture
def found(monkeypatch):
    """What is found out in an environment."""
    for name in list(os.environ):
        if name.startswith(("SLURM", "OMPI", "KUBERNETES", "TPU_", "MEGASCALE", "JAX_COORD")):
            monkeypatch.delenv(name)
    monkeypatch.setattr(clusters, "_wait_for_name", lambda host, timeout: None)

    def found(method=None, **environment):
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        return tuple(clusters.completed(NOTHING, method, 5).values())

    return found


SLURM = {"SLURM_JOB_ID": "123456", "SLURM_NTASKS": "8", "SLURM_PROCID": "3", "SLURM_LOCALID": "1"}


@pytest.mark.parametrize(("nodes", "first"), [
    ("node001", "node001"), ("node001,host2", "node001"), ("node[001-0015],host2", "node001"),
    ("node[001,007-015],host2", "node001"), ("a-b[3-4]", "a-b3")])
def test_slurm(found, nodes, first):
    assert found(**SLURM, SLURM_STEP_NODELIST=nodes) == (f"{first}:62016", 8, 3, [1])


def test_the_port_may_be_given(found):
    assert found(**SLURM, SLURM_STEP_NODELIST="n", JAX_COORDINATOR_PORT="77")[0] == "n:77"


def test_given_arguments_stay(found, monkeypatch):
    found(**SLURM, SLURM_STEP_NODELIST="n")
    given = {**NOTHING, "coordinator_address": "a:1", "process_id": 5, "local_device_ids": [0]}
    assert tuple(clusters.completed(given, None, 5).values()) == ("a:1", 8, 5, [0])


@pytest.mark.parametrize(("uri", "host", "port"), [
    ("1531576320.0;tcp://10.96.0.1,10.148.0.1,10.108.0.1:34911", "10.96.0.1", 62624),
    ("1314521088.0;tcp6://[fe80::b9b:ac5d:9cf0:b858,2620:10d::2]:43370",
     "fe80::b9b:ac5d:9cf0:b858", 62880)])
def test_open_mpi(found, uri, host, port):
    ranks = {"OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": "2",
             "OMPI_COMM_WORLD_LOCAL_RANK": "0"}
    assert found(**ranks, OMPI_MCA_orte_hnp_uri=uri) == (f"{host}:{port}", 4, 2, [0])


def test_open_mpi_5_asks_mpi4py(found, monkeypatch):
    monkeypatch.setattr(clusters, "_has_mpi4py", lambda: False)
    with pytest.raises(RuntimeError, match="Open MPI 5 or newer requires mpi4py"):
        found(OMPI_COMM_WORLD_SIZE="4", OMPI_COMM_WORLD_RANK="2", OMPI_COMM_WORLD_LOCAL_RANK="0",
              OMPI_VERSION="5.0.3")


def test_cloud_tpu(found, monkeypatch, tmp_path):
    monkeypatch.setattr(clusters, "_on_cloud_tpu", lambda: True)
    monkeypatch.setenv("TPU_SKIP_MDS_QUERY", "1")
    assert found(TPU_WORKER_ID="1", TPU_WORKER_HOSTNAMES="h0,h1") == ("h0:8482", 2, 1, None)
    slices = {"MEGASCALE_NUM_SLICES": "3", "MEGASCALE_SLICE_ID": "2",
              "MEGASCALE_COORDINATOR_ADDRESS": "boss:99"}
    assert found(**slices) == ("boss:8482", 6, 5, None)
    addresses = tmp_path / "addresses"
    addresses.write_text("a0,a1,a2\n")
    assert found(TPU_PROCESS_ADDRESSES_PATH=str(addresses))[1] == 9


def test_kubernetes_without_its_package_is_told(found, monkeypatch):
    with pytest.warns(UserWarning, match="Kubernetes environment detected, but the `kubernetes`"):
        assert found(KUBERNETES_SERVICE_HOST="10.0.0.1") == (None,) * 4


def test_methods(found):
    assert found("k9s", **SLURM, SLURM_STEP_NODELIST="n") == (None,) * 4
    assert found("slurm")[1] == 8
    assert backends.process_count() == 1
