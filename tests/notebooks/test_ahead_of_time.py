"""All programs of the notebooks and examples, compiled for accelerators that are not here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pyjx.jaxlib_api import JAXLIB_VERSION
from pyjx.runtime import backends
from tests.installed import skip_without

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
NAMES = sorted(path.stem for path in (EXAMPLES / "notebooks").glob("*.ipynb"))
NAMES += ["data_parallel", "parallel_transformer"]
ONE = ("tpu:v5e:2x2", "tpu:v6e:2x2", "cuda:h100", "cuda:h200")
EIGHT = ("tpu:v5e:2x4", "cuda:h100")
# Those whose programs are for as many devices as there are.
SPREAD = ("data_parallel", "parallel_transformer", "transformer")
NEEDS = {
    "convolutions": ("matplotlib", "sklearn"), "data_parallel": ("sklearn",),
    "digits": ("sklearn",), "flax_and_optax": ("flax", "optax", "sklearn", "tqdm"),
    "quickstart": ("tqdm",), "tensors": ("skimage",), "transformer": ("tqdm",),
}


def compiled(name: str, devices: int, targets: tuple[str, ...], folder: Path
             ) -> dict[str, dict[str, object]]:
    skip_without(*NEEDS.get(name, ()))
    here = [t for t in targets if backends.plugin_library(t.partition(":")[0])]
    if name == "convolutions" and JAXLIB_VERSION < (0, 8):
        here = [t for t in here if not t.startswith("tpu")]  # docs/platforms.md: too long
    if not here:
        pytest.skip("no plugin is installed")
    script = Path(__file__).with_name("compile_programs.py")
    done = subprocess.run(
        [sys.executable, str(script), str(EXAMPLES / f"{name}.py"), str(devices), *here],
        cwd=folder, capture_output=True, text=True, env={
            **os.environ, "PYTHONPATH": str(ROOT), "XLA_FLAGS": "", "TF_CPP_MIN_LOG_LEVEL": "3"})
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, dict[str, object]] = json.loads(done.stdout)
    return found


@pytest.mark.aot
@pytest.mark.parametrize("name", NAMES)
def test_for_one_device(name: str, tmp_path: Path) -> None:
    for target, found in compiled(name, 1, ONE, tmp_path).items():
        assert found["programs"], target
        assert found["refused"] == [], target


@pytest.mark.aot
@pytest.mark.parametrize("name", SPREAD)
def test_for_eight_devices(name: str, tmp_path: Path) -> None:
    for target, found in compiled(name, 8, EIGHT, tmp_path).items():
        assert found["programs"], target
        assert found["refused"] == [], target


def test_what_runs_on_several_devices_is_known() -> None:
    """No program of the other examples makes a mesh of all devices."""
    spread = [n for n in NAMES if "make_mesh(" in (text := (EXAMPLES / f"{n}.py").read_text(
        encoding="utf-8")) or "Mesh(" in text]
    assert sorted(spread) == sorted(SPREAD)
