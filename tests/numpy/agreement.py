"""Comparison of a function with NumPy's of the same name, run at once and compiled."""

from __future__ import annotations

from typing import Any

import numpy as np

import pyjx as jax
import pyjx.numpy as jnp

rng = np.random.RandomState(0)


def floats(*shape: int) -> np.ndarray:
    return np.asarray(rng.randn(*shape), np.float32)


def ints(*shape: int) -> np.ndarray:
    return rng.randint(-5, 9, shape).astype(np.int32)


def bools(*shape: int) -> np.ndarray:
    return rng.rand(*shape) > 0.5


def complexes(*shape: int) -> np.ndarray:
    return (rng.randn(*shape) + 1j * rng.randn(*shape)).astype(np.complex64)


def leaves(x: Any) -> list[Any]:
    return [y for part in x for y in leaves(part)] if isinstance(x, (list, tuple)) else [x]


def agrees(name: str, *args: Any, tol: float = 1e-5, reference: Any = None, **kwargs: Any) -> None:
    """Assert that `jnp.name` gives what `np.name` gives, and that jit does not change it.

    Arrays among the positional arguments are traced under jit; others are constants.
    """
    expected = leaves((reference or getattr(np, name))(*args, **kwargs))
    function = getattr(jnp, name)
    places = [i for i, x in enumerate(args) if isinstance(x, np.ndarray)]

    def call(*arrays: Any) -> Any:
        full = list(args)
        for i, x in zip(places, arrays, strict=True):
            full[i] = x
        return function(*full, **kwargs)

    arrays = [jnp.asarray(args[i]) for i in places]
    for got in (call(*arrays), jax.jit(call)(*arrays)):
        found = leaves(got)
        assert len(found) == len(expected)
        for x, y in zip(found, expected, strict=True):
            assert np.shape(x) == np.shape(y)
            np.testing.assert_allclose(np.asarray(x), y, rtol=tol, atol=tol)
