# Written by `python -m pyjx.cli.stubs` from the table of pyjx.viewer.

from pyjx.viewer.document import page as page
from pyjx.viewer.graphviz import dot as dot
from pyjx.viewer.notebook import show as show

__all__ = [
    "page",
    "dot",
    "show",
]
