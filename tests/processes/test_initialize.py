"""Processes that meet, and what is said where they can't."""

import pytest

import pyjx as jax


@pytest.mark.parametrize(("arguments", "error", "text"), [
    ({}, ValueError, "coordinator_address should be defined"),
    ({"coordinator_address": "a:1"}, ValueError, "Number of processes must be defined"),
    ({"coordinator_address": "a:1", "num_processes": 2}, ValueError,
     "The process id of the current process must be defined"),
    ({"coordinator_address": "a:1", "num_processes": 2, "process_id": 2}, ValueError,
     "with process_id < num_processes. Got process_id=2, num_processes=2"),
    ({"coordinator_address": "a:1", "num_processes": 2, "process_id": "1"}, TypeError,
     "process_id must be a nonnegative int. Got process_id=1 of type"),
    ({"coordinator_address": "localhost", "num_processes": 2, "process_id": 1}, ValueError,
     "coordinator_address must be host:port"),
])
def test_arguments(arguments, error, text, monkeypatch):
    monkeypatch.setattr("pyjx.runtime.backends._clients", {})
    with pytest.raises(error, match=text):
        jax.distributed.initialize(**arguments, cluster_detection_method="deactivate")
    assert not jax.distributed.is_initialized()


def test_it_comes_before_backends():
    jax.devices()
    with pytest.raises(RuntimeError, match=r"must be called before any JAX calls that might init"):
        jax.distributed.initialize("localhost:1234", 1, 0)


def test_a_group(together):
    outs = together("""
        print([d.id for d in jax.devices()], [d.id for d in jax.local_devices()])
        print(jax.process_index(), jax.process_count(), jax.process_indices(),
              jax.device_count(), jax.local_device_count(), len(jax.local_devices(1)))
        try:
            jax.distributed.initialize(ADDRESS, N, ME)
        except RuntimeError as error:
            print("must be called before" in str(error))
        jax.distributed.shutdown()
        print(jax.distributed.is_initialized())
    """, devices=2)
    assert outs == [f"[0, 1, 2048, 2049] {local}\n{i} 2 [0, 1] 4 2 2\nTrue\nFalse"
                    for i, local in enumerate(["[0, 1]", "[2048, 2049]"])]


def test_twice(together):
    outs = together("""
        try:
            jax.distributed.initialize(ADDRESS, N, ME)
        except RuntimeError as error:
            print(error)
    """)
    assert outs == ["distributed.initialize should only be called once."] * 2


def test_one_process_is_a_group(together):
    assert together("print(jax.process_count(), jnp.ones(3).sum())", count=1) == ["1 3.0"]


def test_who_does_not_come_is_named(group):
    ends = group("""
        jax.distributed.initialize(ADDRESS, 3, ME if ME else 0, initialization_timeout=2)
    """, join=False).ends()
    assert [status for status, _, _ in ends] == [1, 1]
    assert "process 0 waited 2 seconds for the other 2 of 3 processes to connect" in ends[0][2]
    assert "process 1 waited 2 seconds for the coordinator at 127.0.0.1" in ends[1][2]


def test_other_numbers_of_processes_are_refused(group):
    ends = group("""
        jax.distributed.initialize(ADDRESS, 2 + ME, ME, initialization_timeout=20,
                                   heartbeat_timeout_seconds=4)
        jax.devices()
    """, join=False).ends()
    assert all(status != 0 for status, _, _ in ends)
    assert "process 1 was told that there are 3 processes, process 0 that there are 2" in ends[1][2]


def test_a_port_in_use(group):
    ends = group("""
        import socket
        with socket.socket() as other:
            other.bind(("", int(ADDRESS.rpartition(":")[2])))
            other.listen()
            jax.distributed.initialize(ADDRESS, 1, 0)
    """, count=1, join=False).ends()
    assert "the coordinator cannot listen on [::]:" in ends[0][2]
    assert "Address already in use. Choose another port." in ends[0][2]


def test_who_was_refused_is_in_no_group(group):
    ends = group("""
        import time
        try:
            jax.distributed.initialize(ADDRESS, 2 + ME, ME, initialization_timeout=20,
                                       heartbeat_timeout_seconds=4)
        except RuntimeError as error:
            print(error, jax.distributed.is_initialized())
        else:
            time.sleep(30)
    """, join=False).processes
    out, err = ends[1].communicate(timeout=25)
    assert ends[1].returncode == 0, err
    assert "must be the same in all. False" in out
