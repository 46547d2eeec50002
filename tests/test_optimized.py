"""The tests of programs as users have them compiled, in a process of their own (`conftest.py`)."""

import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parent


def test_with_all_optimisations():
    files = sorted(str(path) for path in TESTS.rglob("test_*.py")
                   if "mark.optimized" in path.read_text(encoding="utf-8"))
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", "-n", "0",
         "-m", "optimized", *files],
        env={**os.environ, "XLA_FLAGS": ""}, capture_output=True, text=True, timeout=900)
    assert run.returncode == 0, run.stdout[-5000:] + run.stderr[-1000:]
