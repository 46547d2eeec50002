"""The stages of a jitted function: traced, lowered, compiled."""

from __future__ import annotations

from collections.abc import Mapping as _Mapping

from pyjx.jaxlib_api import PjitFunction as Wrapped
from pyjx.lazy import directory
from pyjx.runtime.stages import ArgInfo, Compiled, Lowered, Traced

CompilerOptions = _Mapping[str, str | bool | int | float]

__all__ = ["ArgInfo", "Compiled", "CompilerOptions", "Lowered", "Traced", "Wrapped"]
__dir__ = directory(__name__, __all__)
