"""Iterating over arrays."""

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx.numpy import iteration


@pytest.mark.parametrize(
    "shape", [(0,), (1,), (5,), (128,), (129,), (300,), (0, 3), (3, 0), (150, 2, 3)])
@pytest.mark.parametrize("dtype", ["float32", "int8", "bfloat16", "bool", "complex64"])
@pytest.mark.parametrize("many", [0, 1 << 30])
def test_rows(monkeypatch, shape, dtype, many):
    monkeypatch.setattr(iteration, "_MANY", many)
    host = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    x = jnp.asarray(host)
    rows = list(x)
    assert len(rows) == len(host)
    for row, expected in zip(rows, host, strict=True):
        assert type(row) is type(x)
        assert row.dtype == x.dtype and row.shape == shape[1:] and not row.committed
        np.testing.assert_array_equal(row, expected)


@pytest.mark.parametrize("many", [0, 1 << 30])
def test_rows_are_committed_and_weak_as_the_array_is(monkeypatch, many):
    monkeypatch.setattr(iteration, "_MANY", many)
    x = jax.device_put(jnp.full(150, 2.0), jax.devices()[0])
    assert x.weak_type
    assert all(row.committed and row.weak_type for row in x)


def test_the_program_takes_over_after_many_rows(monkeypatch):
    monkeypatch.setattr(iteration, "_MANY", 200)
    calls = []
    program = iteration._chunk
    monkeypatch.setattr(iteration, "_chunk", lambda *args: calls.append(1) or program(*args))
    x = jnp.arange(150)
    for passes in range(1, 4):
        assert [int(row) for row in x] == list(range(150))
        assert len(calls) == (2 if passes == 3 else 0)


def test_short_arrays_have_a_program_too(monkeypatch):
    monkeypatch.setattr(iteration, "_MANY", 6)
    calls = []
    program = iteration._unstacked
    monkeypatch.setattr(iteration, "_unstacked", lambda x: calls.append(1) or program(x))
    x = jnp.arange(6.0)
    for passes in range(1, 4):
        assert [float(row) for row in x] == [0, 1, 2, 3, 4, 5]
        assert len(calls) == passes - 1


def test_errors():
    with pytest.raises(TypeError, match="iteration over a 0-d array"):
        iter(jnp.float32(1))
    x = jnp.arange(3)
    x.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        list(x)
