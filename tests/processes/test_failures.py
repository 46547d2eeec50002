"""The death of a process ends the others, with a message; nothing hangs."""

import os
import subprocess
import sys

import pytest

SCRIPT = """
import signal, threading
VICTIM, WHEN = {victim}, {when!r}
def die(now):
    if (ME, WHEN) == (VICTIM, now):
        os.kill(os.getpid(), signal.SIGKILL)
jax.distributed.initialize(ADDRESS, N, ME, heartbeat_timeout_seconds=4,
                           shutdown_timeout_seconds=30)
die("start")
x = jax.device_put(np.ones(16), NamedSharding(Mesh(np.array(jax.devices()), "x"), P("x")))
f = jax.jit(lambda a: a.sum())
f(x).block_until_ready()
if WHEN == "collective":
    if ME == VICTIM:
        threading.Timer(0.3, lambda: die("collective")).start()
    while True:
        f(x).block_until_ready()
if WHEN == "error":
    if ME == VICTIM:
        raise ValueError("a mistake of the user's")
    while True:
        f(x).block_until_ready()
import atexit
atexit.register(die, "exit")
"""
EVERY = [(when, victim) for when in ("start", "collective", "exit", "error")
         for victim in range(4)]
QUICK = [("error", 1)]


@pytest.mark.parametrize(("when", "victim"), [
    pytest.param(*case, marks=() if case in QUICK else pytest.mark.slow) for case in EVERY])
def test_a_death_ends_all(group, when, victim):
    ends = group(SCRIPT.format(when=when, victim=victim), count=4, join=False).ends(120)
    for i, (status, _, err) in enumerate(ends):
        assert status != 0 or when == "exit", (i, err)
        if i != victim:
            assert "died" in err or "Traceback" in err, (i, status, err)


@pytest.mark.slow
@pytest.mark.parametrize("count", ["JAX_NUM_CPU_DEVICES=8",
                                   "XLA_FLAGS=--xla_force_host_platform_device_count=8"])
def test_launches_run_ahead(count):
    """Programs that exchange parts, queued without waiting: XLA's threads must not starve."""
    name, _, number = count.partition("=")
    script = """
import numpy as np
import pyjx as jax
from pyjx.sharding import Mesh, NamedSharding, PartitionSpec as P
mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ("x", "y"))
x = jax.device_put(np.ones((16, 16), "f4"), NamedSharding(mesh, P("x", "y")))
step = jax.jit(lambda a: a / a.sum() + jax.lax.with_sharding_constraint(a.T, x.sharding),
               out_shardings=x.sharding)
total = jax.jit(lambda a: a.sum())
for _ in range(5000):
    x = step(x)
    s = total(x)
print(float(s))
"""
    run = subprocess.run([sys.executable, "-c", script], env={**os.environ, name: number},
                         capture_output=True, text=True, timeout=300)
    assert run.stdout == "5256.0\n", run.stderr[-2000:]
