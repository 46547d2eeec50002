# Written by `python -m pyjx.cli.stubs` from the table of pyjx.ops.

from pyjx.ops.segments import segment_max as segment_max
from pyjx.ops.segments import segment_min as segment_min
from pyjx.ops.segments import segment_prod as segment_prod
from pyjx.ops.segments import segment_sum as segment_sum

__all__ = [
    "segment_max",
    "segment_min",
    "segment_prod",
    "segment_sum",
]
