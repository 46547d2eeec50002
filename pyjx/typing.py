"""What annotations of functions of arrays are made of.

>>> from pyjx.typing import ArrayLike
>>> isinstance(1.5, ArrayLike)
True
"""

from pyjx.core.array_type import ArrayLike, DTypeLike

__all__ = ["ArrayLike", "DTypeLike"]
