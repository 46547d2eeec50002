# Written by `python -m pyjx.cli.stubs` from the table of pyjx.experimental.sparse.test_util.

from pyjx.experimental.sparse.creation import rand_sparse as rand_sparse

__all__ = [
    "rand_sparse",
]
