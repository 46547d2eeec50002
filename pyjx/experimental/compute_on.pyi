# Written by `python -m pyjx.cli.stubs` from the table of pyjx.experimental.compute_on.

from pyjx.experimental.annotated_calls import compute_on as compute_on
from pyjx.experimental.annotated_calls import compute_on2 as compute_on2

__all__ = [
    "compute_on",
    "compute_on2",
]
