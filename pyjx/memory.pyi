# Written by `python -m pyjx.cli.stubs` from the table of pyjx.memory.

from pyjx.core.places import Space as Space

__all__ = [
    "Space",
]
