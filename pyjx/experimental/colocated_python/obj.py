"""Objects beside devices, which are those of this process."""

from __future__ import annotations

from pyjx.experimental.colocated_python.func import colocated_python_class
from pyjx.lazy import directory

__all__ = ["colocated_python_class"]
__dir__ = directory(__name__, __all__)
