# Written by `python -m pyjx.cli.stubs` from the table of pyjx.experimental.shard_alike.

from pyjx.experimental.array_placement import shard_alike as shard_alike

__all__ = [
    "shard_alike",
]
