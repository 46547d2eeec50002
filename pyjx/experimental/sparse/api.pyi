# Written by `python -m pyjx.cli.stubs` from the table of pyjx.experimental.sparse.api.

from pyjx.experimental.sparse.creation import empty as empty
from pyjx.experimental.sparse.creation import eye as eye
from pyjx.experimental.sparse.creation import todense as todense
from pyjx.experimental.sparse.creation import todense_p as todense_p

__all__ = [
    "empty",
    "eye",
    "todense",
    "todense_p",
]
