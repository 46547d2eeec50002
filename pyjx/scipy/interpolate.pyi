# Written by `python -m pyjx.cli.stubs` from the table of pyjx.scipy.interpolate.

from pyjx.scipy.interpolation import RegularGridInterpolator as RegularGridInterpolator

__all__ = [
    "RegularGridInterpolator",
]
