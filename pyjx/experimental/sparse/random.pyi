# Written by `python -m pyjx.cli.stubs` from the table of pyjx.experimental.sparse.random.

from pyjx.experimental.sparse.creation import random_bcoo as random_bcoo

__all__ = [
    "random_bcoo",
]
