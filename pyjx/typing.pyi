# Written by `python -m pyjx.cli.stubs` from the table of pyjx.typing.

from pyjx.core.array_type import ArrayLike as ArrayLike
from pyjx.core.array_type import DTypeLike as DTypeLike

__all__ = [
    "ArrayLike",
    "DTypeLike",
]
