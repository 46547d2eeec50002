# Written by `python -m pyjx.cli.stubs` from the table of pyjx.experimental.compilation_cache.

from pyjx.experimental.compilation_cache import compilation_cache as compilation_cache

__all__ = [
    "compilation_cache",
]
