# Written by `python -m pyjx.cli.stubs` from the table of pyjx.scipy.interpolate.

from pyjx.scipy.interpolate.regular_grids import RegularGridInterpolator as RegularGridInterpolator

__all__ = [
    "RegularGridInterpolator",
]
