"""Functions promote neither ranks nor dtypes inside: suites forbid it by flags."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pyjx as jax
import pyjx.numpy as jnp
from pyjx.experimental import rnn
from pyjx.scipy.spatial.transform import Rotation

MATRIX = np.arange(16, dtype="int32").reshape(4, 4) + 9 * np.eye(4, dtype="int32")
SPECTRA = np.arange(40.0).reshape(8, 5).astype("complex64") * (1 + 2j)


def lstm(apply: Callable[..., Any]) -> Any:
    x, state, lengths = np.ones((2, 5, 3), "f"), np.ones((2, 2, 4), "f"), np.array([5, 4], "int32")
    weights = rnn.init_lstm_weight(jax.random.key(0), 3, 4, 1, True)
    return apply(x, state, state, weights, lengths, 3, 4, 1, 0.0, True)


@pytest.mark.parametrize("call", [
    lambda: lstm(rnn.lstm),
    lambda: jax.image.resize(np.ones((6, 6), "f"), (9, 4), "area"),
    lambda: jax.image.resize(np.ones((6, 6), "f"), (9, 4), "cubic"),
    lambda: jax.scipy.special.bessel_jn(np.ones((2, 3), "f"), v=2),
    lambda: jax.scipy.stats.poisson.entropy(np.array([0.5, 3.0, 100.0], "f")),
    lambda: jax.scipy.signal.stft(np.ones(0, "f"), nperseg=4),
    lambda: jax.scipy.signal.istft(SPECTRA, nperseg=8, noverlap=4, input_onesided=False),
    lambda: jax.scipy.signal.istft(SPECTRA, nperseg=14),
    lambda: jax.scipy.optimize.minimize(
        lambda z: jnp.real(jnp.dot(jnp.conj(z - 1j), z - 1j)), np.ones(2, "complex64"),
        method="l-bfgs-experimental-do-not-rely-on-this").x,
    lambda: jax.jit(lambda x, i: jnp.delete(x, i, assume_unique_indices=True))(
        np.arange(5.0, dtype="f"), np.array([1, 3], "int32")),
    lambda: jnp.polyval(np.ones((4, 4), "f"), np.ones((4, 4), "f")),
    lambda: jnp.polyval(np.ones((4, 4), "f"), np.ones((2, 4), "f")),
    lambda: jnp.polyfit(np.arange(4), np.arange(4), 1),
    lambda: jax.scipy.sparse.linalg.cg(MATRIX @ MATRIX.T, np.ones(4, "int32"))[0],
    lambda: jax.scipy.sparse.linalg.gmres(MATRIX, np.ones(4, "int32"), np.zeros(4, "int32"))[0],
    lambda: jax.scipy.sparse.linalg.bicgstab(MATRIX, np.ones(4, "int32"))[0],
    lambda: jax.scipy.signal.csd(np.ones((2, 0), "f"), np.ones((2, 0), "f")),
    lambda: Rotation.from_quat(np.arange(20.0, dtype="f").reshape(5, 4)).inv().as_quat(),
])
def test_flags_that_forbid_promotion_let_inner_operations_pass(call: Callable[[], Any]) -> None:
    expected = call()
    with jax.numpy_rank_promotion("raise"), jax.numpy_dtype_promotion("strict"):
        found = call()
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-6), expected, found)
