# Written by `python -m pyjx.cli.stubs` from the table of pyjx.scipy.sparse.

from pyjx.scipy.sparse import linalg as linalg

__all__ = [
    "linalg",
]
