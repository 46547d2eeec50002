# Written by `python -m pyjx.cli.stubs` from the table of pyjx.scipy.spatial.

from pyjx.scipy.spatial import transform as transform

__all__ = [
    "transform",
]
