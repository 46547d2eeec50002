"""What jax writes, into an archive: `python tests/files/make.py FOLDER` with jax and flatbuffers.

The archive is called like the version of jax, and holds bytes by their names.
"""

import importlib.util
import io
import os
import pickle
import sys
import tarfile
import tempfile
from pathlib import Path

os.environ.update(XLA_FLAGS="--xla_force_host_platform_device_count=4", FILES_BY="jax")
sys.path.insert(0, os.getcwd())

import jax

jax.config.update("jax_traceback_in_locations_limit", 0)

from tests.files import cases, libraries, objects  # noqa: E402


def made():
    """The bytes by their names."""
    cases.register()
    for name, (_, _, more) in cases.CASES.items():
        exported = cases.exported(name)
        yield f"export.{name}", exported.serialize(vjp_order=more.get("order", 0))
    for name, make in objects.MAKERS.items():
        for protocol in (2, 4):  # between them the ways to make an object differ
            try:
                yield f"pickle{protocol}.{name}", pickle.dumps(make(), protocol)
            except (AttributeError, TypeError, pickle.PicklingError) as error:
                print(f"{jax.__version__} does not pickle {name}: {error}")
    with tempfile.TemporaryDirectory() as folder:
        for kind in [k for k, m in libraries.KINDS.items() if importlib.util.find_spec(m)]:
            getattr(libraries, f"write_{kind}")(f"{folder}/{kind}")
        for path in sorted(p for p in Path(folder).rglob("*") if p.is_file()):
            yield f"file.{path.relative_to(folder)}", path.read_bytes()


if __name__ == "__main__":
    with tarfile.open(f"{sys.argv[1]}/{jax.__version__}.tar.xz", "w:xz") as archive:
        for name, data in made():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
