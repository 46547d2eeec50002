"""Handwritten digits on several processes.

    python examples/data_parallel.py

starts four processes, which train the multilayer perceptron of `digits.py` together: each has a
quarter of every batch, all have the parameters, and XLA sums the gradients over the processes. Then
one process does the same alone, and both must agree. On several hosts each process is started
there, by Slurm for example, and `jax.distributed.initialize()` needs no arguments.
"""

import argparse
import os
import socket
import subprocess
import sys
import tempfile
import time

import numpy as np
from sklearn.datasets import load_digits

import pyjx as jax
import pyjx.numpy as jnp
from pyjx.sharding import AxisType, NamedSharding, PartitionSpec

BATCH = 128
LAYERS = (64, 128, 10)
LEARNING_RATE = 0.2


def init(key):
    """He initialisation: variance 2 / inputs keeps the scale through relu."""
    return [
        {"weights": jax.random.normal(k, (n, m)) * (2 / n) ** 0.5, "bias": jnp.zeros(m)}
        for k, n, m in zip(jax.random.split(key, len(LAYERS) - 1), LAYERS[:-1], LAYERS[1:],
                           strict=True)]


def logits(params, images):
    for layer in params[:-1]:
        images = jax.nn.relu(images @ layer["weights"] + layer["bias"])
    return images @ params[-1]["weights"] + params[-1]["bias"]


def loss(params, images, labels):
    """Mean cross entropy of the whole batch, whichever process has which part."""
    log_probabilities = jax.nn.log_softmax(logits(params, images))
    return -jnp.mean(jnp.take_along_axis(log_probabilities, labels[:, None], axis=1))


@jax.jit
def step(params, images, labels):
    value, grads = jax.value_and_grad(loss)(params, images, labels)
    return jax.tree.map(lambda p, g: p - LEARNING_RATE * g, params, grads), value


def train(epochs):
    """Train on all devices of all processes; the parameters and the losses of the epochs."""
    mesh = jax.make_mesh((jax.device_count(),), ("data",), axis_types=(AxisType.Auto,))
    rows, everywhere = (NamedSharding(mesh, PartitionSpec(*spec)) for spec in (("data",), ()))
    digits = load_digits()
    pixels, labels = (digits.data / 16).astype("f4"), digits.target.astype("i4")
    params = jax.device_put(init(jax.random.key(0)), everywhere)
    order = np.random.default_rng(0)  # the same in all processes
    me, processes = jax.process_index(), jax.process_count()
    losses = []
    for _ in range(epochs):
        shuffled = order.permutation(len(labels))
        for start in range(0, len(labels) - BATCH + 1, BATCH):
            batch = shuffled[start:start + BATCH]
            mine = np.split(batch, processes)[me]  # only this part is loaded here
            images, targets = (jax.make_array_from_process_local_data(rows, data[mine])
                               for data in (pixels, labels))
            params, value = step(params, images, targets)
        losses.append(float(value))
    return params, losses


def work(arguments):
    """One of the processes."""
    if arguments.processes > 1:
        jax.distributed.initialize(arguments.coordinator, arguments.processes, arguments.index)
    started = time.perf_counter()
    params, losses = train(arguments.epochs)
    if jax.process_index() == 0:
        print(f"{jax.process_count()} processes, {jax.device_count()} devices: loss "
              f"{losses[0]:.4f} -> {losses[-1]:.4f} in {time.perf_counter() - started:.1f} s")
        np.savez(arguments.result, losses, *map(np.asarray, jax.tree.leaves(params)))


def launch(processes, epochs, result):
    """Run processes on this host; all are gone when it returns."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        coordinator = f"127.0.0.1:{free.getsockname()[1]}"
    env = {**os.environ, "JAX_PLATFORMS": "cpu"}
    started = [
        subprocess.Popen([sys.executable, __file__, "--processes", str(processes), "--index",
                          str(i), "--coordinator", coordinator, "--epochs", str(epochs),
                          "--result", result], env=env) for i in range(processes)]
    try:
        failed = [i for i, p in enumerate(started) if p.wait()]
    finally:
        for p in started:
            p.kill()
    if failed:
        sys.exit(f"processes {failed} failed")
    with np.load(result) as saved:
        return list(saved.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--processes", type=int, default=4, help="a divisor of 128")
    parser.add_argument("--epochs", type=int, default=10)
    for hidden in ("--index", "--coordinator", "--result"):
        parser.add_argument(hidden, type=int if hidden == "--index" else str,
                            help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.index is not None:
        work(arguments)
        return
    with tempfile.TemporaryDirectory() as folder:
        together = launch(arguments.processes, arguments.epochs, os.path.join(folder, "all.npz"))
        alone = launch(1, arguments.epochs, os.path.join(folder, "one.npz"))
    for a, b in zip(together, alone, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
    difference = max(np.abs(a - b).max() for a, b in zip(together, alone, strict=True))
    print(f"one process gives the same: the largest difference is {difference:.1e}")


if __name__ == "__main__":
    main()
