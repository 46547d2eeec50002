"""The library's own functions under eager transformations."""

import numpy as np

import pyjx as jax
import pyjx.numpy as jnp
from pyjx.core.trace import Tracer
from pyjx.runtime.operations import op_jit


def test_each_signature_is_called_as_a_whole_if_its_program_is_long():
    """Whatever the first call was."""
    traced = []

    @op_jit
    def f(x):
        traced.append(isinstance(x, Tracer) and x.ndim)
        if x.ndim == 1:
            return x * 2
        for _ in range(20):
            x = jnp.sin(x)
        return x

    def runs(shape):
        """How often the Python function runs in two eager derivatives."""
        traced.clear()
        for _ in range(2):
            jax.jvp(f, (np.ones(shape, np.float32),), (np.ones(shape, np.float32),))
        return len(traced)

    assert runs((3,)) == 3  # traced to see that it is short, then run each time
    assert runs((3, 3)) == 1  # traced, and called as a whole
    assert runs((3,)) == 2
    assert runs((3, 3)) == 0


def test_lists_as_static_arguments_under_transformations():
    x = np.arange(6.0, dtype=np.float32).reshape(1, 2, 3)
    for _ in range(2):
        got = jax.vmap(lambda a: jnp.sum(a, axis=[0, 1]))(x)
        assert got.tolist() == [15.0]
