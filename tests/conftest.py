"""What holds for all tests.

Nine tenths of their time is XLA's, of which most is LLVM's, to make small programs fast that run
once. So it is told not to, in processes that tests start as well, unless XLA_FLAGS is set: to the
empty string, say, for XLA as users have it. Tests of what it does by itself have the marker
`optimized` (`tests/test_optimized.py`).

Tests trace functions for many signatures on purpose, and on slow machines that takes long: the
warning that tells users so is off, but where it is tested.
"""

import os  # noqa: I001 -- tests.shell comes before pyjx, which reads the environment
import signal
import zlib
from pathlib import Path

import pytest

from tests import shell
from pyjx import configuration, jaxlib_api
from pyjx.runtime import backends

CHEAP = ["--xla_backend_optimization_level=0", "--xla_llvm_disable_expensive_passes=true",
         "--xla_cpu_parallel_codegen_split_count=1"]
if jaxlib_api.HAS_OLDER_CPU_EMITTERS:  # others do not know the flag, and end the process
    CHEAP.append("--xla_cpu_use_fusion_emitters=false")

os.environ.setdefault("XLA_FLAGS", " ".join(CHEAP))
if "PYJX_CACHE_DIR" not in os.environ:  # the programs of tests are not to drive out the user's
    programs = str(shell.writable_folder(Path(__file__).parents[1], "programs"))
    os.environ["PYJX_CACHE_DIR"] = programs
    configuration.cache_dir.update(programs)
configuration.retraces_warn_count.update(-1)


def pytest_addoption(parser):
    parser.addoption("--tenth", action="store_true",
                     help="every tenth test, by its name: the same ones each time")


def pytest_collection_modifyitems(config, items):
    """Leave out what `--tenth` does, and skip the checks on a GPU, if asked for, where there is
    none: no CPU is to pass for one. Names with addresses are others in each process, and pytest
    refuses to share tests among several."""
    if named := [item.nodeid for item in items if " at 0x" in item.nodeid]:
        raise pytest.UsageError(f"give these ids without addresses: {named}")
    if config.option.tenth:
        items[:] = [item for item in items if zlib.crc32(item.nodeid.encode()) % 10 == 0]
    if config.option.markexpr == "gpu" and not has_gpu():
        reason = "no NVIDIA GPU found, or no plugin for it (pip install '.[cuda13]')"
        for item in items:
            item.add_marker(pytest.mark.skip(reason=reason))


def has_gpu():
    try:
        return bool(backends.devices("cuda"))
    except RuntimeError:
        return False


@pytest.fixture
def alarm():
    """Signals a timeout, of whose handler an error comes that looks like one of the disk."""
    def stop(number, frame):
        raise TimeoutError("too slow")

    before = signal.signal(signal.SIGALRM, stop)
    yield lambda *args: signal.raise_signal(signal.SIGALRM)
    signal.signal(signal.SIGALRM, before)
