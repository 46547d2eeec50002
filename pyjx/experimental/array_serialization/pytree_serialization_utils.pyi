# Written by `python -m pyjx.cli.stubs` from the table of pyjx.experimental.array_serialization.pytree_serialization_utils.

from pyjx.experimental.array_serialization.pytree_serialization import deserialize_pytreedef as deserialize_pytreedef
from pyjx.experimental.array_serialization.pytree_serialization import serialize_pytreedef as serialize_pytreedef
from pyjx.export.trees import register_pytree_node_serialization as register_pytree_node_serialization

__all__ = [
    "deserialize_pytreedef",
    "serialize_pytreedef",
    "register_pytree_node_serialization",
]
