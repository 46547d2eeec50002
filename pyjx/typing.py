"""What annotations of functions of arrays are made of.

>>> from pyjx.typing import ArrayLike
>>> isinstance(1.5, ArrayLike)
True

Libraries that check arguments at run time build their checks from these.

>>> from pyjx.typing import DTypeLike
>>> [isinstance("float32", kind) for kind in DTypeLike.__args__ if isinstance(kind, type)]
[True, False, False]
"""

from pyjx.core.array_type import ArrayLike, DTypeLike

__all__ = ["ArrayLike", "DTypeLike"]
