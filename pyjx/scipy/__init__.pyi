# Written by `python -m pyjx.cli.stubs` from the table of pyjx.scipy.

from pyjx.scipy import special as special

__all__ = [
    "special",
]
