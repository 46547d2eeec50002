"""Every operation on operands that are cut along one of their axes, against one device.

Every fourth sample is run, cut along the first axis that can be; with PYJX_SWEEPS=1 each sample,
cut along each of its axes.
"""

import os

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx.sharding import NamedSharding
from pyjx.sharding import PartitionSpec as P
from tests.op_table import all_samples

DEVICES = 8


def cuts(sample):
    """Which argument is cut along which of its axes, into as many parts as it has elements."""
    return [(i, axis) for i, a in enumerate(sample.args) if isinstance(a, np.ndarray)
            for axis, size in enumerate(a.shape) if 2 <= size <= DEVICES]


def cases():
    seen = {}
    every = "PYJX_SWEEPS" in os.environ
    for sample in all_samples()[::1 if every else 4]:
        name = f"{sample.primitive}-{sample.id}" if sample.id else sample.primitive
        seen[name] = seen.get(name, 0) + 1
        found = cuts(sample)
        for i, axis in found if every else found[:1]:
            yield pytest.param(sample, i, axis, id=f"{name}-{seen[name]}-{i}.{axis}")


def sharded(x, axis):
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:x.shape[axis]]), ("d",))
    return jax.device_put(x, NamedSharding(mesh, P(*[None] * axis, "d")))


def assert_equal(got, want, sample):
    for g, w in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        assert g.dtype == w.dtype and g.shape == w.shape
        if jnp.issubdtype(g.dtype, jax.dtypes.prng_key):
            g, w = jax.random.key_data(g), jax.random.key_data(w)
        g, w = np.asarray(g), np.asarray(w)
        if g.dtype.kind in "biu":
            np.testing.assert_array_equal(g, w)
        else:
            kind = np.complex128 if g.dtype.kind == "c" else np.float64
            rtol = max(sample.rtol or 0, 2e-2 if g.dtype.itemsize == 2 else 2e-5)
            np.testing.assert_allclose(g.astype(kind), w.astype(kind), rtol=rtol,
                                       atol=max(sample.atol or 0, 1e-5))


@pytest.mark.parametrize(("sample", "position", "axis"), list(cases()))
def test_operation(sample, position, axis):
    args = list(sample.args)
    args[position] = sharded(args[position], axis)
    fun = jax.jit(sample.fun)
    got = fun(*args)
    for leaf in jax.tree.leaves(got):
        assert len(leaf.sharding.device_set) == sample.args[position].shape[axis]
    assert_equal(got, fun(*sample.args), sample)
    x = sample.args[position]
    if not sample.diff or x.dtype.kind not in "fcV" or (
            isinstance(sample.diff, tuple) and position not in sample.diff):
        return

    def total(x):
        outs = jax.tree.leaves(sample.fun(*args[:position], x, *args[position + 1:]))
        return sum(jnp.sum(jnp.real(jnp.sin(o))) for o in outs
                   if jnp.issubdtype(o.dtype, jnp.inexact))

    if not any(jnp.issubdtype(o.dtype, jnp.inexact) for o in jax.tree.leaves(got)):
        return
    gradient = jax.jit(jax.grad(total))
    assert_equal(gradient(args[position]), gradient(jnp.asarray(x)), sample)
