"""What jax writes, into an archive: `python tests/files/make.py FOLDER` with jax and flatbuffers.

The archive is called like the version of jax, and holds bytes by their names.
"""

import os
import sys

os.environ.update(XLA_FLAGS="--xla_force_host_platform_device_count=4", FILES_BY="jax")
sys.path.insert(0, os.getcwd())

import jax
import numpy as np

jax.config.update("jax_traceback_in_locations_limit", 0)

from tests.files import cases  # noqa: E402


def made():
    """The bytes by their names."""
    cases.register()
    for name, (_, _, more) in cases.CASES.items():
        exported = cases.exported(name)
        yield f"export.{name}", exported.serialize(vjp_order=more.get("order", 0))


if __name__ == "__main__":
    np.savez_compressed(f"{sys.argv[1]}/{jax.__version__}.npz", **{
        name: np.frombuffer(data, np.uint8) for name, data in made()})
