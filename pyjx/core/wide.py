"""NumPy scalars of 64 bits that stay what they are where 64-bit types are off.

There a user's NumPy scalar is narrowed. But arrays that were made while 64-bit types were on keep
their type, and the constants beside them, which the library makes, must have it too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pyjx import configuration
from pyjx.core.avals import ShapedArray, aval_makers


class WideInt(np.int64):
    """An int64 that is not narrowed."""


class WideUint(np.uint64):
    """A uint64 that is not narrowed."""


class WideFloat(np.float64):
    """A float64 that is not narrowed."""


class WideComplex(np.complex128):
    """A complex128 that is not narrowed."""


_wide: dict[Any, Any] = {np.dtype(kind.__base__): kind
                         for kind in (WideInt, WideUint, WideFloat, WideComplex)}
for _kind in _wide.values():
    aval_makers[_kind] = lambda x: ShapedArray((), x.dtype)


def unnarrowed(scalar: Any) -> Any:
    """A NumPy scalar as one that has its own dtype everywhere.

    >>> type(unnarrowed(np.float64(1))).__name__, type(unnarrowed(np.float32(1))).__name__
    ('WideFloat', 'float32')
    """
    if configuration.enable_x64.value:
        return scalar
    kind = _wide.get(scalar.dtype)
    return scalar if kind is None else kind(scalar)
