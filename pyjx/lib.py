"""The version of jaxlib."""

from __future__ import annotations

from pyjx.jaxlib_api import JAXLIB_RELEASE, JAXLIB_VERSION
from pyjx.lazy import directory

__version__: str = JAXLIB_RELEASE
__version_info__: tuple[int, ...] = JAXLIB_VERSION
__all__ = ["__version__", "__version_info__"]
__dir__ = directory(__name__, __all__)
