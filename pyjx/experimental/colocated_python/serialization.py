"""What goes between processes: nothing, as functions run in the process that calls them."""

from __future__ import annotations

from pyjx.jaxlib_api import DeviceList
from pyjx.lazy import directory

__all__ = ["DeviceList"]
__dir__ = directory(__name__, __all__)
