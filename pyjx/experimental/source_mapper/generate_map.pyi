# Written by `python -m pyjx.cli.stubs` from the table of pyjx.experimental.source_mapper.generate_map.

from pyjx.experimental.source_maps import generate_sourcemaps as generate_sourcemaps

__all__ = [
    "generate_sourcemaps",
]
