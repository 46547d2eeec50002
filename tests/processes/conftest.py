"""Groups of processes for tests. They never outlive the test that started them."""

import os
import socket
import subprocess
import sys
import textwrap
from contextlib import ExitStack
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# The library of collectives writes its reports to descriptor 1 itself, in parts that fall among the
# lines of Python; so Python gets a descriptor of its own, and theirs go with the errors.
START = """
import os, sys
sys.stdout = open(os.dup(1), "w", buffering=1)
os.dup2(2, 1)
import numpy as np
import pyjx as jax
import pyjx.numpy as jnp
from pyjx.sharding import Mesh, NamedSharding, PartitionSpec as P
ME, N, ADDRESS = int(os.environ["ME"]), int(os.environ["N"]), os.environ["ADDRESS"]
"""
JOIN = """
jax.distributed.initialize(ADDRESS, N, ME, initialization_timeout=60, heartbeat_timeout_seconds=10)
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Group:
    """Processes that run the same script. `ME` is the number of each."""

    def __init__(self, script, count, devices):
        env = {k: v for k, v in os.environ.items() if k != "EIGHT_DEVICES"}
        env.update(ADDRESS=f"127.0.0.1:{free_port()}", N=str(count), PYTHONPATH=str(ROOT),
                   JAX_NUM_CPU_DEVICES=str(devices))
        self.processes = [
            subprocess.Popen([sys.executable, "-W", "error", "-u", "-c", script],
                             env={**env, "ME": str(i)}, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True) for i in range(count)]

    def ends(self, timeout=60):
        """(exit status, stdout, stderr) of each."""
        found = []
        for p in self.processes:
            out, err = p.communicate(timeout=timeout)
            found.append((p.returncode, out.removesuffix("\n"), err))
        return found

    def kill(self):
        for p in self.processes:
            if p.poll() is None:
                p.kill()
            p.wait()
            p.stdout.close()
            p.stderr.close()


@pytest.fixture
def group():
    """`group(script, count)` starts processes that run the script."""
    with ExitStack() as stack:
        def group(script, count=2, devices=1, join=True):
            body = START + JOIN * join + textwrap.dedent(script)
            started = Group(body, count, devices)
            stack.callback(started.kill)
            return started

        yield group


@pytest.fixture
def together(group):
    """What each process of a group prints; all must end well."""
    def together(script, **options):
        ends = group(script, **options).ends()
        assert all(status == 0 for status, _, _ in ends), "\n".join(e[2][-2000:] for e in ends)
        return [out for _, out, _ in ends]

    return together
