# Written by `python -m pyjx.cli.stubs` from the table of pyjx.scipy.ndimage.

from pyjx.scipy.interpolation import map_coordinates as map_coordinates

__all__ = [
    "map_coordinates",
]
