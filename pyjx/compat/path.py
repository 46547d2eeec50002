"""`jax._src.path`: files and folders."""

from __future__ import annotations

from pathlib import Path

__all__ = ["Path", "epath_installed"]

epath_installed = False  # paths are those of the standard library
