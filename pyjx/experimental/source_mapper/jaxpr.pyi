# Written by `python -m pyjx.cli.stubs` from the table of pyjx.experimental.source_mapper.jaxpr.

from pyjx.experimental.source_maps import canonicalize_filename as canonicalize_filename

__all__ = [
    "canonicalize_filename",
]
