# Written by `python -m pyjx.cli.stubs` from the table of pyjx.experimental.layout.

from pyjx.core.layouts import Format as Format
from pyjx.core.layouts import Layout as Layout
from pyjx.experimental.array_placement import explicit_layout as explicit_layout
from pyjx.experimental.array_placement import with_layout_constraint as with_layout_constraint

__all__ = [
    "Format",
    "Layout",
    "explicit_layout",
    "with_layout_constraint",
]
