# Written by `python -m pyjx.cli.stubs` from the table of pyjx.example_libraries.

from pyjx.example_libraries import optimizers as optimizers
from pyjx.example_libraries import stax as stax

__all__ = [
    "optimizers",
    "stax",
]
