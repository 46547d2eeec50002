"""Where compiled programs are kept on disk."""

from __future__ import annotations

import os

from pyjx import configuration
from pyjx.lazy import directory
from pyjx.runtime import cache

__all__ = ["reset_cache", "set_cache_dir"]
__dir__ = directory(__name__, __all__)


def set_cache_dir(path: str | os.PathLike[str]) -> None:
    """Keep compiled programs in this folder, from now on: the flag `jax_compilation_cache_dir`.

    Who may write to the folder may run code in processes that read it.

    >>> import pyjx as jax
    >>> from pyjx.experimental.compilation_cache import compilation_cache
    >>> before = jax.config.jax_compilation_cache_dir
    >>> compilation_cache.set_cache_dir("/tmp/programs")
    >>> jax.config.jax_compilation_cache_dir
    '/tmp/programs'
    >>> jax.config.update("jax_compilation_cache_dir", before)
    """
    configuration.config.update("jax_compilation_cache_dir", os.fspath(path))


def reset_cache() -> None:
    """Look at the folder that the flags name as if for the first time. What is in it stays."""
    cache.forget_folders()
