"""Examples, models of the benchmarks and the disk cache on a GPU or TPU, where there is one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pyjx as jax
from pyjx.inspect.running import arguments
from tests.example_functions import FUNCTIONS, ROOT
from tests.installed import skip_without
from tests.runtime.test_accelerator import accelerators

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not accelerators(), reason="no accelerator here"),
]
NOTEBOOKS = sorted(path.stem for path in (ROOT / "examples" / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_agree_with_the_cpu(name: str) -> None:
    fun, args = FUNCTIONS[name]()
    given = jax.tree.unflatten(jax.tree.structure(args), arguments(jax.make_jaxpr(fun)(*args)))
    program = jax.jit(fun)
    with jax.default_matmul_precision("highest"):
        there, here = (jax.tree.leaves(program(*jax.device_put(given, device)))
                       for device in (accelerators()[0], jax.devices("cpu")[0]))
    for a, b in zip(there, here, strict=True):
        np.testing.assert_allclose(np.asarray(a, "complex64"), np.asarray(b, "complex64"),
                                   rtol=5e-3, atol=5e-3 * max(1.0, float(np.abs(b).max())))


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebooks_run(name: str, tmp_path: Path) -> None:
    own = ("flax", "optax") if name == "flax_and_optax" else ()
    skip_without("matplotlib", "sklearn", "skimage", "tqdm", *own)
    done = subprocess.run(
        [sys.executable, str(ROOT / "tests" / "notebooks" / "run_cells.py"),
         str(ROOT / "examples" / f"{name}.py")],
        cwd=tmp_path, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.returncode == 0, done.stderr[-3000:]
    assert any(json.loads(done.stdout))


_CACHED = """
import json, sys
import numpy as np
import pyjx as jax, pyjx.numpy as jnp

x = jax.device_put(np.arange(64, dtype="float32").reshape(8, 8), jax.devices()[0])
program = jax.jit(lambda x: jnp.tanh(x @ x.T) + jnp.linalg.inv(x + 9 * jnp.eye(8)))
compiled = program.lower(x).compile()
json.dump([np.asarray(compiled(x)).tolist(), compiled._executable.from_disk is not None],
          sys.stdout)
"""


def test_programs_come_back_from_the_disk(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT), "JAX_COMPILATION_CACHE_DIR": str(tmp_path),
           "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    first, second = (_run(env) for _ in range(2))
    assert (first[1], second[1]) == (False, True)
    np.testing.assert_array_equal(first[0], second[0])


def _run(env: dict[str, str]) -> Any:
    done = subprocess.run([sys.executable, "-c", _CACHED], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)
