# Written by `python -m pyjx.cli.stubs` from the table of pyjx.experimental.

from pyjx.experimental import jet as jet

__all__ = [
    "jet",
]
