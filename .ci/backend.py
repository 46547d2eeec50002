"""Builds wheel and sdist by setuptools, and so that the same sources give the same bytes.

Archives hold when files were written, who owns them and what they may do; all that is made the
same everywhere. Times are SOURCE_DATE_EPOCH where it is set, else the first of January 1980, as zip
files know none before.
"""

from __future__ import annotations

import gzip
import io
import os
import tarfile
import time
import zipfile
from pathlib import Path
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403 - the other hooks are setuptools' own

EARLIEST = 315_532_800


def moment() -> int:
    return max(EARLIEST, int(os.environ.get("SOURCE_DATE_EPOCH", EARLIEST)))


def permissions(mode: int) -> int:
    return 0o755 if mode & 0o100 else 0o644


def build_sdist(sdist_directory: str, config_settings: Any = None) -> str:
    name: str = build_meta.build_sdist(sdist_directory, config_settings)
    repack_tar(Path(sdist_directory, name))
    return name


def build_wheel(wheel_directory: str, config_settings: Any = None,
                metadata_directory: str | None = None) -> str:
    name: str = build_meta.build_wheel(wheel_directory, config_settings, metadata_directory)
    repack_zip(Path(wheel_directory, name))
    return name


def repack_tar(path: Path) -> None:
    data = io.BytesIO()
    with tarfile.open(path) as old, tarfile.open(fileobj=data, mode="w",
                                                 format=tarfile.PAX_FORMAT) as new:
        for member in sorted(old.getmembers(), key=lambda m: m.name):
            member.mtime = moment()
            member.uid = member.gid = 0
            member.uname = member.gname = ""
            member.pax_headers = {}
            member.mode = 0o755 if member.isdir() else permissions(member.mode)
            new.addfile(member, old.extractfile(member) if member.isfile() else None)
    with open(path, "wb") as file, gzip.GzipFile("", "wb", 9, file, moment()) as packed:
        packed.write(data.getvalue())


def repack_zip(path: Path) -> None:
    data = io.BytesIO()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as new:
        for member in sorted(old.infolist(), key=lambda m: m.filename):
            info = zipfile.ZipInfo(member.filename, time.gmtime(moment())[:6])
            info.compress_type = zipfile.ZIP_DEFLATED
            info.create_system = 3  # as on Unix, wherever it is built
            info.external_attr = (0o100000 | permissions(member.external_attr >> 16)) << 16
            new.writestr(info, old.read(member), compresslevel=9)
    path.write_bytes(data.getvalue())
