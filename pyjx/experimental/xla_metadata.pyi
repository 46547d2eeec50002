# Written by `python -m pyjx.cli.stubs` from the table of pyjx.experimental.xla_metadata.

from pyjx.experimental.annotated_calls import fuse_limit as fuse_limit
from pyjx.experimental.annotated_calls import must_fuse_call as must_fuse_call
from pyjx.experimental.annotated_calls import set_xla_metadata as set_xla_metadata
from pyjx.experimental.annotated_calls import xla_metadata_call as xla_metadata_call
from pyjx.experimental.annotated_calls import xla_metadata_call2 as xla_metadata_call2

__all__ = [
    "fuse_limit",
    "must_fuse_call",
    "set_xla_metadata",
    "xla_metadata_call",
    "xla_metadata_call2",
]
