"""What samplers draw, for every dtype, shape and kind of key, beside another implementation."""

import os
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from tests.oracle.processes import VARIABLE

ROOT = Path(__file__).parents[2]
pytestmark = [
    pytest.mark.oracle,
    pytest.mark.skipif(not os.environ.get(VARIABLE), reason=f"{VARIABLE} names no Python"),
]
# What passes through a library's transcendental functions, or a loop that rejects, may differ in
# the last digits; everything else is bits.
ROUNDED = 16


def draws(python, package, folder):
    file = folder / f"{package}.npz"
    subprocess.run([python, str(ROOT / "tests/sweeps/draws.py"), package, str(file)], check=True,
                   cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT), "XLA_FLAGS": ""})
    return dict(np.load(file))


def test_draws_are_those_of_the_oracle(tmp_path):
    ours = draws(sys.executable, "pyjx", tmp_path)
    theirs = draws(os.environ[VARIABLE], "jax", tmp_path)
    differ = sorted(set(ours) ^ set(theirs))
    for name in set(ours) & set(theirs):
        x, y = ours[name], theirs[name]
        if x.dtype != y.dtype or x.shape != y.shape:
            differ.append(f"{name}: {x.dtype}{x.shape} {y.dtype}{y.shape}")
        elif x.dtype.kind == "f":
            eps = float(ml_dtypes.finfo(name.rpartition("/")[2]).eps)
            if not np.allclose(x, y, rtol=ROUNDED * eps, atol=ROUNDED * eps, equal_nan=True):
                differ.append(f"{name}: {x.ravel()[:4]} {y.ravel()[:4]}")
        elif (x != y).any():
            differ.append(f"{name}: {x.ravel()[:4]} {y.ravel()[:4]}")
    assert not differ, "\n".join(differ[:60])
