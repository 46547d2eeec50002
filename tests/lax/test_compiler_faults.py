"""Programs that some version of XLA's CPU compiler got wrong, or could not compile: what pyjx gives
it for them has NumPy's values."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx import lax

X = np.random.default_rng(0).standard_normal((12, 12)).astype(np.float32)

# -- updates in place by another view of the same buffer -------------------------------------------

VIEWS: dict[str, Callable[[Any], Any]] = {
    "the same": lambda x: x, "turned": lambda x: x[::-1], "mirrored": lambda x: x[:, ::-1],
    "transposed": lambda x: x.T, "shifted": lambda x: x[np.arange(1, 13) % 12],
    "in other rows": lambda x: x.reshape(6, 24).T.reshape(12, 12),
    "scaled": lambda x: x[::-1] * 2 + x.T, "summed": lambda x: x + x.sum(0),
}
# Where a part of the view goes to.
PARTS: dict[str, Callable[[Any], Any]] = {
    "the first rows": lambda v: (v[:6], 0, 0), "later rows": lambda v: (v[2:7], 5, 0),
    "columns": lambda v: (v[:, 3:8], 0, 5), "a corner": lambda v: (v[4:9, 1:6], 1, 3),
    "one row": lambda v: (v[3:4], 7, 0),
}


def updated(x: Any, view: str, part: str) -> Any:
    piece, row, column = PARTS[part](VIEWS[view](x))
    if isinstance(x, np.ndarray):
        out = x.copy()
        out[row:row + piece.shape[0], column:column + piece.shape[1]] = piece
        return out
    return lax.dynamic_update_slice(x, piece, (row, column))


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("view", VIEWS)
def test_updates_by_views_of_what_they_update(view: str, part: str) -> None:
    want = updated(X, view, part)
    twice = updated(np.tanh(want), view, part)
    donated = jax.jit(lambda x: updated(x, view, part), donate_argnums=0)(jnp.array(X))
    np.testing.assert_allclose(donated, want, rtol=1e-6)
    for rows in (0, X.shape[0]):  # other operations in the loop decide which kernel has the update
        def step(_: Any, x: Any, rows: int = rows) -> Any:
            x = updated(jnp.tanh(x), view, part)
            return x if rows == 0 else x.at[:0].set(x[:0])

        x = jax.jit(lambda x: lax.fori_loop(0, 1, step, updated(x, view, part)))(X)
        np.testing.assert_allclose(x, twice, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shift", [1, 3])
def test_rows_that_move_through_their_table(shift: int) -> None:
    """A window is written over the one that it was read from, in each iteration."""
    def moved(n: Any, x: Any) -> Any:
        window = lax.dynamic_slice(x, (n, 0), (4, 12))
        return lax.dynamic_update_slice(x, window[::-1] * 0.5, (n + shift, 0)), window

    def swapped(n: Any, x: Any) -> Any:
        a, b = (lax.dynamic_slice(x, (m, 0), (1, 12)) for m in (n, n + shift))
        x = lax.dynamic_update_slice(x, b, (n, 0))
        return lax.dynamic_update_slice(x, a, (n + shift, 0)), b

    x, y = X.copy(), X.copy()
    for n in range(5):
        x[n + shift:n + shift + 4] = x[n:n + 4][::-1] * 0.5
        y[[n, n + shift]] = y[[n + shift, n]]
    for f, want in ((moved, x), (swapped, y)):
        got = jax.jit(lambda x, f=f: lax.scan(lambda x, n: f(n, x), x, jnp.arange(5)))(X)[0]
        np.testing.assert_array_equal(got, want)


# -- reductions that a library may compute ---------------------------------------------------------

SHAPES = [((7, 33), (1,)), ((33, 7), (0,)), ((5, 6, 17), (1, 2)), ((5, 6, 17), (0, 2)),
          ((4, 1, 9), (1,)), ((3, 129), (0, 1)), ((2, 3, 4, 5), (1, 3)), ((0, 5), (0,)),
          ((5, 0), (0,)), ((1000,), (0,))]


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16", "int32", "int8"])
def test_reductions(dtype: str) -> None:
    rng = np.random.default_rng(1)
    with jax.enable_x64(True):
        for shape, axes in SHAPES:
            x = np.asarray(rng.standard_normal(shape) * 8, jnp.dtype(dtype))
            wide = x.astype(np.float64)
            exact = jnp.issubdtype(dtype, np.integer)
            sums = (lambda x, axes=axes: jnp.sum(x * 2 + 1, axes), (wide * 2 + 1).sum(axes))
            extrema = (lambda x, axes=axes: jnp.max(-x, axes, initial=-60), (-wide).max(
                axes, initial=-60))
            for f, want in (extrema,) if exact else (sums, extrema):
                eps = 0 if exact else float(jnp.finfo(dtype).eps)
                np.testing.assert_allclose(np.asarray(jax.jit(f)(x), np.float64), want,
                                           rtol=4 * eps, atol=16 * eps * max(1, x.size))


@pytest.mark.parametrize("n", [1, 7, 64, 300])
def test_gradients_through_reductions(n: int) -> None:
    x = np.linspace(-1, 1, 6 * n).reshape(6, n)

    def f(x: Any, lib: Any) -> Any:
        y = x - lib.max(x, axis=1, keepdims=True)
        return lib.sum(lib.log(lib.sum(lib.exp(y), axis=1)) * lib.mean(x * x, axis=1))

    with jax.enable_x64(True):
        slope = np.asarray(jax.jit(jax.grad(lambda x: f(x, jnp)))(x))
    step = 1e-6 * np.cos(np.arange(x.size)).reshape(x.shape)
    change = f(x + step, np) - f(x - step, np)
    np.testing.assert_allclose(np.sum(slope * step * 2), change, rtol=1e-6)


def test_nan_and_infinity_in_reductions() -> None:
    x = np.ones((64, 40), np.float32)
    x[3, 17], x[5, 2], x[7, 0], x[7, 39] = np.nan, np.inf, np.inf, -np.inf
    total, most = jax.jit(lambda x: (x.sum(1), x.max(1)))(x)
    assert np.isnan(total).nonzero()[0].tolist() == [3, 7] and np.isinf(total[5])
    assert np.isnan(most).nonzero()[0].tolist() == [3] and np.isinf(most[np.array([5, 7])]).all()


# -- many dimensions -------------------------------------------------------------------------------


_MANY_DIMENSIONS = """
import re
import numpy as np
import pyjx as jax
import pyjx.numpy as jnp

def peak():  # of this program alone, which `getrusage` is not where another one started it
    return int(re.search(r"VmHWM:\\s*(\\d+) kB", open("/proc/self/status").read())[1])

rank = {rank}
x = np.arange(2.0 ** rank, dtype=np.float32).reshape((2,) * rank)
jax.jit(lambda x: x + 1)(x)
before = peak()
order = [*range(1, rank), 0]

def f(x, lib):
    y = lib.transpose(x, order) + lib.flip(x, (0, rank - 1))
    return lib.transpose(y * 2 - lib.sum(x, axis=rank // 2, keepdims=True), order[::-1])

np.testing.assert_allclose(jax.jit(lambda x: f(x, jnp))(x), f(x, np), rtol=1e-6)
np.testing.assert_allclose(jax.jit(jax.grad(lambda x: jnp.sum(f(x, jnp) ** 2)))(x).sum(),
                           2 * (f(x, np) * f(np.ones_like(x), np)).sum(), rtol=1e-3)
print(peak() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is counted in kilobytes there")
@pytest.mark.parametrize("rank", [9, 12, 16])
def test_arrays_of_many_dimensions_compile_in_little_memory(rank: int) -> None:
    done = subprocess.run([sys.executable, "-c", _MANY_DIMENSIONS.format(rank=rank)], check=True,
                          capture_output=True, text=True, env={**os.environ, "PYJX_CACHE": "0"})
    assert 0 < int(done.stdout) < 600_000
