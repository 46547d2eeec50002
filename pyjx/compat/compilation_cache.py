"""`jax._src.compilation_cache`: where compiled programs are kept on disk."""

from __future__ import annotations

from pyjx.experimental.compilation_cache.compilation_cache import reset_cache, set_cache_dir
from pyjx.runtime import cache

__all__ = ["is_persistent_cache_enabled", "reset_cache", "set_cache_dir"]


def is_persistent_cache_enabled() -> bool:
    """Whether compiled programs are kept in a folder, and found there.

    >>> from pyjx import configuration
    >>> with configuration.enable_compilation_cache(False):
    ...     is_persistent_cache_enabled()
    False
    """
    return cache.folder() is not None
