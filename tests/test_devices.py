"""The tests of several devices, each file in a process of its own that has eight."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "devices"
EIGHT = "--xla_force_host_platform_device_count=8"


@pytest.mark.skipif("EIGHT_DEVICES" in os.environ, reason="this is that process")
@pytest.mark.parametrize("file", sorted(p.name for p in FOLDER.glob("test_*.py")))
def test_with_eight_devices(file):
    env = {**os.environ, "XLA_FLAGS": f"{EIGHT} {os.environ['XLA_FLAGS']}", "EIGHT_DEVICES": "1"}
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", "-n", "0",
         str(FOLDER / file)], env=env, capture_output=True, text=True, timeout=900)
    assert run.returncode == 0, run.stdout[-5000:] + run.stderr[-1000:]
