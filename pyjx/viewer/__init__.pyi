# Written by `python -m pyjx.cli.stubs` from the table of pyjx.viewer.

from pyjx.viewer.document import page as page
from pyjx.viewer.document import show as show
from pyjx.viewer.graphs import dot as dot

__all__ = [
    "page",
    "show",
    "dot",
]
