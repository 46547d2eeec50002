# Written by `python -m pyjx.cli.stubs` from the table of pyjx.experimental.compilation_cache.compilation_cache.

from pyjx.runtime.cache import forget_folders as reset_cache
from pyjx.runtime.cache import set_cache_dir as set_cache_dir

__all__ = [
    "reset_cache",
    "set_cache_dir",
]
