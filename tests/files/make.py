"""What jax writes, into an archive: `python tests/files/make.py FOLDER` with jax and flatbuffers.

The archive is called like the version of jax, and holds bytes by their names.
"""

import importlib.util
import io
import json
import os
import pickle
import pickletools
import pkgutil
import re
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
    yield "names", json.dumps(dict(public_names())).encode()
    with tempfile.TemporaryDirectory() as folder:
        for kind in [k for k, m in libraries.KINDS.items() if importlib.util.find_spec(m)]:
            getattr(libraries, f"write_{kind}")(f"{folder}/{kind}")
        for path in sorted(p for p in Path(folder).rglob("*") if p.is_file()):
            yield f"file.{path.relative_to(folder)}", path.read_bytes()


def public_names():
    """Each public function and class, and the module and the name that its pickle holds."""
    found = [m.name for m in pkgutil.walk_packages(jax.__path__, "jax.", lambda name: None)]
    others = re.compile(r"\._|\.(tools|mlir|mosaic\w*)\b")
    for name in ["jax", *[n for n in found if not others.search(n)]]:
        try:
            module = importlib.import_module(name)
        except (ImportError, AttributeError):  # it needs a library that is not here
            continue
        for public in [n for n in getattr(module, "__all__", dir(module)) if n[0] != "_"]:
            try:
                ops = list(pickletools.genops(pickle.dumps(getattr(module, public), 4)))
            except Exception:  # it is not pickled
                continue
            texts = [argument for _, argument, _ in ops if isinstance(argument, str)]
            if [op.name for op, _, _ in ops].count("STACK_GLOBAL") == 1 and len(texts) == 2 and (
                    texts[0].partition(".")[0] == "jax"):
                yield f"{name}:{public}", ":".join(texts)


if __name__ == "__main__":
    with tarfile.open(f"{sys.argv[1]}/{jax.__version__}.tar.xz", "w:xz") as archive:
        for name, data in made():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
