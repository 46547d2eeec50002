"""Floats of 6 bits, at which XLA's compiler for CPU ends the process."""

import subprocess
import sys

import pyjx as jax
from pyjx import jaxlib_api

PROGRAM = """
import pyjx as jax, pyjx.numpy as jnp
jax.config.update("jax_platforms", "cpu")
x = jnp.ones(3)
if {held}:
    x = x.astype("float6_e2m3fn")
    assert x[::-1].reshape(3, 1).tolist() == [[1.0]] * 3
    assert jax.lax.optimization_barrier(x.at[1].set(x[0])).tolist() == [1.0] * 3
    assert jax.jit(lambda x: jnp.unstack(x)[2])(x).tolist() == 1.0
    assert jax.checkpoint(lambda x: x[::-1])(x).tolist() == [1.0] * 3
calls = [lambda x: x // x, lambda x: x + x, jnp.sort, jnp.cumsum, lambda x: x.sum(), jnp.argmax,
         lambda x: jnp.concatenate([x, x]), lambda x: jnp.pad(x, 1), lambda x: x.astype("float32"),
         lambda x: jax.lax.scan(lambda c, y: (c, y), 0, x)[1],
         lambda x: jax.lax.fori_loop(0, 2, lambda i, y: y[::-1], x)]
for call in calls:
    for function in (call, jax.jit(call)):
        try:
            function(x.astype("float6_e2m3fn"))
        except TypeError as error:
            assert "is not supported on CPU: jaxlib" in str(error)
        else:
            raise AssertionError(call)
"""


def test_what_cannot_be_compiled_is_refused():
    program = PROGRAM.format(held=jaxlib_api.CPU_MOVES_6_BITS)
    subprocess.run([sys.executable, "-c", program], check=True)
    text = jax.jit(lambda x: x + x).lower(jax.ShapeDtypeStruct((3,), "float6_e2m3fn")).as_text()
    assert "f6E2M3FN" in text
