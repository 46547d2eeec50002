"""Each module of sparse arrays may be the first one that a program imports."""

import subprocess
import sys

import pytest

from tests.sources import modules

NAMES = [name for name in modules() if name.startswith("pyjx.experimental.sparse.")]

# Each in a child, which has nothing but this package.
FIRST = """
import importlib, os, sys
import pyjx
for name in sys.argv[1:]:
    child = os.fork()
    if not child:
        try:
            module = importlib.import_module(name)
            [getattr(module, public) for public in getattr(module, "__all__", ())]
        except BaseException as error:
            print(name, error, flush=True)
        os._exit(0)
    os.waitpid(child, 0)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="it forks")
def test_each_may_come_first() -> None:
    assert len(NAMES) > 10
    found = subprocess.run([sys.executable, "-W", "ignore", "-c", FIRST, *NAMES],
                           capture_output=True, text=True, timeout=300)
    assert found.returncode == 0 and not found.stdout, found.stdout + found.stderr
