"""Errors of memory that runs out name what asked for it, and the arrays with their lines."""

import pickle
import re

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import configuration

BIG = jnp.ones((256, 256))
HUNGRY = {
    "product": lambda x: (x @ x).sum(),
    "outer": lambda x: jnp.sort(x.ravel()[:, None] + x[0, :8], 1).sum(),
    "sort": lambda x: jnp.sort(x, axis=0),
    "gradient": jax.grad(lambda x: jnp.tanh(x @ jnp.tanh(x @ x)).sum()),
    "batch": lambda x: jax.vmap(lambda a: x @ jnp.diag(a))(x[:8]).sum(),
    "loop": jax.grad(lambda x: jax.lax.scan(
        lambda c, _: (jnp.sin(c @ x), None), x, None, length=8)[0].sum()),
    "convolution": lambda x: jax.lax.conv(x[None, None], x[None, None, :3, :3], (1, 1), "SAME"),
    "gather": lambda x: x[jnp.arange(512) % 256],
    "sums": lambda x: jnp.cumsum(x, 0),
    "update": lambda x: x.at[3].set(1.0),
}


@pytest.mark.parametrize("name", HUNGRY)
def test_errors_of_memory_name_the_arrays_and_lines(name):
    with configuration.memory_limit(2**18), pytest.raises(jax.errors.JaxRuntimeError) as info:
        jax.jit(HUNGRY[name])(BIG)
    text = str(info.value)
    assert text.startswith("RESOURCE_EXHAUSTED: Out of memory: jit(")
    assert re.search(r"asks for [\d.]+ (bytes|KiB|MiB) beside [\d.]+ \w+ of arrays, of "
                     r"256.0 KiB in all", text)
    assert re.search(r"arrays of the process on \S+ are\n +[\d.]+ \w+  f32\[", text)
    program = text.partition("at its peak are\n")[2]
    assert re.search(r"[\d.]+ [KM]iB +f32\[[\d,]+\] +\w+.*(test_exhaustion.py:\d+)?", program)
    assert "donate_argnums" in text and "memory_budget" in text


def test_arrays_are_known_by_their_lines_while_there_is_a_limit():
    with configuration.memory_limit(2**30):
        kept = jax.jit(lambda x: x * 2.0)(BIG), jax.device_put(np.ones((256, 256), "float32"))
    with configuration.memory_limit(2**18), pytest.raises(jax.errors.JaxRuntimeError) as info:
        jax.jit(lambda x: x @ x)(kept[0])
    lines = re.findall(r"256.0 KiB +f32\[256,256\] +array +\S*test_exhaustion.py:\d+",
                       str(info.value))
    assert len(lines) == 2


LARGE = np.ones((1024, 1024), "float32")
FILE = pickle.dumps(jnp.asarray(LARGE))
FROM_HOST = {
    "asarray": lambda: jnp.asarray(LARGE), "device_put": lambda: jax.device_put(LARGE),
    "ones": lambda: jnp.ones(LARGE.shape), "argument": lambda: jax.jit(jnp.sum)(LARGE),
    "unpickled": lambda: pickle.loads(FILE),
    "callback": lambda: jax.make_array_from_callback(
        LARGE.shape, jax.sharding.SingleDeviceSharding(jax.devices()[0]), lambda index: LARGE),
    "many": lambda: [jnp.asarray(np.ones(4095, "float32")) for _ in range(64)],
}


@pytest.mark.parametrize("name", FROM_HOST)
def test_arrays_of_the_host_that_do_not_fit_are_refused(name):
    held = sum([x.nbytes for x in jax.live_arrays()])
    limit = held + 2**19
    with configuration.memory_limit(limit), pytest.raises(jax.errors.JaxRuntimeError) as info:
        FROM_HOST[name]()
    assert re.match(r"RESOURCE_EXHAUSTED: Out of memory: .* asks for [\d.]+ [KM]iB beside ",
                    str(info.value))
    with configuration.memory_limit(limit):
        assert jnp.asarray(np.ones(1000, "float32")).size == 1000


def test_allocations_that_fail_name_the_arrays():
    fun = jax.jit(lambda x: jnp.zeros((1 << 46,), "float32") + x)
    with pytest.raises(jax.errors.JaxRuntimeError) as info:
        fun(1.0)
    text = str(info.value)
    assert text.startswith("RESOURCE_EXHAUSTED: Out of memory allocating")
    assert re.search(r"at its peak are\n +262144.0 GiB +f32\[70368744177664\] +\w+ +"
                     r"\S*test_exhaustion.py:\d+", text)


def test_errors_of_callbacks_name_the_arrays_once():
    """Those of the program that ran out of memory, which is their cause."""
    def on_host(x):
        return jax.jit(lambda x: jnp.zeros((1 << 46,), "float32") + x)(x)

    with pytest.raises(jax.errors.JaxRuntimeError) as info:
        jax.jit(lambda x: jax.pure_callback(on_host, x, x))(1.0)
    assert str(info.value).count("at its peak are") == 1
    assert str(info.value.__cause__).startswith("RESOURCE_EXHAUSTED")
