# Written by `python -m pyjx.cli.stubs` from the table of pyjx.experimental.shard_map.

from pyjx.experimental.older_calls import shard_map as shard_map

__all__ = [
    "shard_map",
]
