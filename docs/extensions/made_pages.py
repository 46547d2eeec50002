"""Pages that are made while the site is built."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def write(folder: Path, wanted: Mapping[str, str], suffix: str) -> None:
    """Let a folder hold these pages, by file name, and no others of the suffix; files that are as
    they should be stay untouched, so that they are not built again."""
    folder.mkdir(exist_ok=True)
    for path in folder.glob(f"*{suffix}"):
        if path.name not in wanted:
            path.unlink()
    for name, text in wanted.items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
