# Written by `python -m pyjx.cli.stubs` from the table of pyjx.experimental.array_serialization.

from pyjx.experimental.array_serialization import pytree_serialization_utils as pytree_serialization_utils
from pyjx.experimental.array_serialization import pytree_serialization as pytree_serialization
from pyjx.experimental.array_serialization import serialization as serialization
from pyjx.experimental.array_serialization import tensorstore_impl as tensorstore_impl

__all__ = [
    "pytree_serialization_utils",
    "pytree_serialization",
    "serialization",
    "tensorstore_impl",
]
