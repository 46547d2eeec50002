# Written by `python -m pyjx.cli.stubs` from the table of pyjx.viewer.

from pyjx.viewer.document import dot as dot
from pyjx.viewer.document import page as page
from pyjx.viewer.document import show as show

__all__ = [
    "dot",
    "page",
    "show",
]
