"""Exported functions run in other processes, and in other environments.

PYJX_OTHER_PYTHON names the Python of another environment, such as one with another jaxlib.
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pyjx as jax
from pyjx import export
from tests.export.functions import CONSTRAINTS, FORMS, functions, matrices

ROOT = Path(jax.__file__).parents[1]
OTHERS = [sys.executable, *filter(None, [os.environ.get("PYJX_OTHER_PYTHON")])]
NAMES = ("nn.gelu", "attention", "grad-scan", "conv-same", "normal", "take_along_axis", "eigvalsh")

READ = """
import sys
import numpy as np
from pyjx import export
folder = sys.argv[1]
x, y = np.load(f"{folder}/x.npy"), np.load(f"{folder}/y.npy")
for name in sys.argv[2:]:
    with open(f"{folder}/{name}", "rb") as file:
        out = export.deserialize(file.read()).call(x, y)
    np.save(f"{folder}/{name}.npy", np.asarray(out))
"""


@pytest.mark.parametrize("python", OTHERS)
def test_they_run_elsewhere(python, tmp_path):
    spec, shapes = FORMS["both"]
    x, y = matrices(shapes[0])
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", y)
    dims = export.symbolic_shape(spec, constraints=CONSTRAINTS["both"])
    struct = jax.ShapeDtypeStruct(dims, np.float32)
    wanted = {}
    for name in NAMES:
        fun = jax.jit(functions()[name])
        (tmp_path / name).write_bytes(export.export(fun)(struct, struct).serialize())
        wanted[name] = np.asarray(fun(x, y))
    subprocess.run([python, "-c", READ, str(tmp_path), *NAMES], cwd=ROOT, check=True,
                   env={**os.environ, "XLA_FLAGS": ""})
    for name in NAMES:
        np.testing.assert_allclose(np.load(tmp_path / f"{name}.npy"), wanted[name], rtol=3e-5,
                                   atol=3e-6)
