"""What the shell says that tests are not to depend on, taken back before pyjx is imported.

Flags and devices are those of a user who set none, in processes that tests start as well.
`XLA_FLAGS` keeps what it says besides the number of devices, and `JAX_PLATFORMS` stays where there
is a plugin, which it may be to leave alone.
"""

import os
import sys
import tempfile
from collections.abc import MutableMapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

_COUNT = "--xla_force_host_platform_device_count"
# How products are computed on accelerators, which says how near their numbers are.
_KEPT = {"JAX_DEFAULT_MATMUL_PRECISION"}
# What tests are told by who runs them.
_OF_TESTS = {"PYJX_BROWSER", "PYJX_CACHE_DIR", "PYJX_ORACLE_PYTHON", "PYJX_OTHER_ORACLES",
             "PYJX_OTHER_PYTHON", "PYJX_SWEEPS"}


def take_back(environ: MutableMapping[str, str]) -> None:
    """Take flags of pyjx and the number of devices out of an environment."""
    kept = _KEPT | ({"JAX_PLATFORMS"} if find_spec("jax_plugins") else set())
    for name in list(environ):
        if name.startswith("JAX_") and name not in kept:
            del environ[name]
        if name.startswith("PYJX_") and name not in _OF_TESTS:
            del environ[name]
    environ.pop("PYTHONDONTWRITEBYTECODE", None)
    flags = environ.get("XLA_FLAGS", "").split()
    if "EIGHT_DEVICES" not in environ and any(flag.startswith(_COUNT) for flag in flags):
        flags = [flag for flag in flags if not flag.startswith(_COUNT)]
        environ["XLA_FLAGS"] = " ".join(flags)
        if not flags:  # nothing else was asked for
            del environ["XLA_FLAGS"]


def writable_folder(root: Path, name: str) -> Path:
    """A folder for what tests keep: in the checkout, or where it is another user's elsewhere."""
    folder = root / ".pytest_cache" / name
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    if os.access(folder, os.W_OK):
        return folder
    return Path(tempfile.mkdtemp(prefix="pyjx-tests-"))


take_back(os.environ)
sys.dont_write_bytecode = False
