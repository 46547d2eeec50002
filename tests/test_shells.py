"""The suite passes whatever the shell says (`shell.py`): smoke tests in other shells."""

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from tests.shell import take_back

TESTS = Path(__file__).parent
EIGHT = "--xla_force_host_platform_device_count=8"
UNUSUAL = {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": EIGHT, "PYTHONDONTWRITEBYTECODE": "1", "LANG": "C",
           "LC_ALL": "C", "HOME": "/proc/nowhere", "JAX_NUM_CPU_DEVICES": "8",
           "JAX_ENABLE_X64": "1"}
NOBODY = 65534


def run_tests(*which, environment, start=None, **options):
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", "-n", "0",
         *which], env={**os.environ, **environment}, capture_output=True, text=True, timeout=1800,
        cwd=TESTS.parent, preexec_fn=start, **options)
    assert run.returncode == 0, run.stdout[-5000:] + run.stderr[-1000:]


def test_what_is_taken_back():
    environ = {**UNUSUAL, "PYJX_STRICT_INDICES": "1", "PYJX_ORACLE_PYTHON": "python", "PATH": "/"}
    take_back(environ)
    assert not environ.keys() & {"XLA_FLAGS", "JAX_NUM_CPU_DEVICES", "JAX_ENABLE_X64",
                                 "PYTHONDONTWRITEBYTECODE", "PYJX_STRICT_INDICES"}
    assert environ["PYJX_ORACLE_PYTHON"] == "python" and environ["PATH"] == "/"
    for flags, left in [("", ""), (f"--xla_dump_to=x {EIGHT}", "--xla_dump_to=x")]:
        environ = {"XLA_FLAGS": flags}
        take_back(environ)
        assert environ["XLA_FLAGS"] == left
    within = {"XLA_FLAGS": EIGHT, "EIGHT_DEVICES": "1"}
    take_back(within)
    assert within["XLA_FLAGS"] == EIGHT


def test_devices_and_flags_in_an_unusual_shell():
    run_tests("tests/runtime/test_backends.py", "tests/runtime/test_donation.py",
              environment=UNUSUAL)


@pytest.mark.slow
@pytest.mark.parametrize("name", UNUSUAL)
def test_smoke_in_other_shells(name):
    run_tests("-m", "smoke", environment={name: UNUSUAL[name]})


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="is no root")
@pytest.mark.skipif(not os.stat(os.path.realpath(sys.executable)).st_mode & 1
                    or os.path.realpath(sys.executable).startswith("/root"),
                    reason="this Python is root's own")
def test_smoke_as_another_user():
    run_tests("-m", "smoke", environment=UNUSUAL, user=NOBODY, group=NOBODY, extra_groups=[])


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="processors can't be chosen")
def test_smoke_on_one_processor():
    one = {min(os.sched_getaffinity(0))}
    run_tests("-m", "smoke", environment={}, start=partial(os.sched_setaffinity, 0, one))
