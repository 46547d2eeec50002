"""`jax._src.basearray`: the class of arrays, and what functions take for one."""

from __future__ import annotations

from pyjx import Array
from pyjx.typing import ArrayLike

__all__ = ["Array", "ArrayLike"]
