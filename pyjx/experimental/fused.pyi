# Written by `python -m pyjx.cli.stubs` from the table of pyjx.experimental.fused.

from pyjx.experimental.annotated_calls import fused as fused
from pyjx.experimental.annotated_calls import fused_p as fused_p

__all__ = [
    "fused",
    "fused_p",
]
