"""Files that cross from jax to pyjx and back; `made/` has what jax wrote, an archive a version."""

import tarfile
from pathlib import Path

ARCHIVES = {path.name.removesuffix(".tar.xz"): path
            for path in sorted((Path(__file__).parent / "made").iterdir())}


def contents(version):
    """What a version of jax wrote, as bytes by their names."""
    with tarfile.open(ARCHIVES[version]) as archive:
        return {info.name: archive.extractfile(info).read() for info in archive}
