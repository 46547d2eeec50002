"""Tests of the runtime keep their compiled programs in a folder of their own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pyjx import configuration as config

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def cache_folder(tmp_path):
    """The (empty) cache folder of one test."""
    folder = tmp_path / "cache"
    old = config.cache_dir.value
    config.cache_dir.update(str(folder))
    yield folder
    config.cache_dir.update(old)


@pytest.fixture
def start_python(tmp_path):
    """Starts `python -c code` in a process of its own; `environment` is added to ours."""

    def start(code, *, python=sys.executable, **environment):
        env = {**os.environ, "PYTHONPATH": str(ROOT), "PYJX_CACHE_DIR": str(tmp_path / "cache"),
               **environment}
        return subprocess.Popen([python, "-W", "error", "-c", code], env=env, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    return start


@pytest.fixture
def run_python(start_python):
    """Runs `python -c code` and gives what it printed."""

    def run(code, **environment):
        process = start_python(code, **environment)
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        return out

    return run
