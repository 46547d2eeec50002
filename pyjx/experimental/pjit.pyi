# Written by `python -m pyjx.cli.stubs` from the table of pyjx.experimental.pjit.

from pyjx.experimental.older_calls import pjit as pjit

__all__ = [
    "pjit",
]
