"""Processes with eight devices: tests that need one, and runs of tests in one."""

import os
import subprocess
import sys

import pytest

EIGHT = "--xla_force_host_platform_device_count=8"
needs_eight = pytest.mark.skipif(EIGHT not in os.environ.get("XLA_FLAGS", ""),
                                 reason="runs in a process with eight devices")
elsewhere = pytest.mark.skipif("EIGHT_DEVICES" in os.environ, reason="this is that process")


def run_with_eight(file, *options, timeout=300):
    """The tests of a file pass in a process of their own that has eight devices."""
    env = {**os.environ, "XLA_FLAGS": f"{EIGHT} {os.environ['XLA_FLAGS']}", "EIGHT_DEVICES": "1"}
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", "-n", "0",
         *options, str(file)], env=env, capture_output=True, text=True, timeout=timeout)
    assert run.returncode == 0, run.stdout[-5000:] + run.stderr[-1000:]
