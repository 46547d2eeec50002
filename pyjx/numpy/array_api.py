"""What the Python array API standard asks a namespace to say of itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pyjx.core import dtypes
from pyjx.numpy.types import isdtype
from pyjx.runtime import backends

if TYPE_CHECKING:
    from pyjx.core.layouts import DeviceLike

__array_api_version__ = "2025.12"

_KINDS = ("bool", "signed integer", "unsigned integer", "real floating", "complex floating")


class ArrayNamespaceInfo:
    """What this namespace can do: devices, dtypes, and features that the standard leaves open."""

    def capabilities(self) -> dict[str, Any]:
        """Which features there are in traced functions too."""
        return {"boolean indexing": False, "data-dependent shapes": False, "max dimensions": 64}

    def default_device(self) -> None:
        """The device of new arrays: None, as arrays that are committed to none follow others."""
        return

    def devices(self) -> tuple[Any, ...]:
        """The devices that `device=` may name, and None."""
        return None, *backends.devices()

    def default_dtypes(self, *, device: DeviceLike = None) -> dict[str, Any]:
        """The dtypes of new arrays, by kind. They are the same on each device."""
        integer = dtypes.default_int_dtype()
        return {"real floating": dtypes.default_float_dtype(),
                "complex floating": dtypes.to_complex_dtype(dtypes.default_float_dtype()),
                "integral": integer, "indexing": integer}

    def dtypes(self, *, device: DeviceLike = None, kind: str | tuple[str, ...] | None = None
               ) -> dict[str, Any]:
        """The dtypes of the standard by name; of a kind of `isdtype`, or of several.

        Raises:
          ValueError: there is no such kind.
        """
        names = ["bool", *[f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)],
                 "float32", "float64", "complex64", "complex128"]
        every = [np.dtype(name) for name in names]
        return {d.name: d for d in every if dtypes.canonicalize_dtype(d) == d
                and isdtype(d, _KINDS if kind is None else kind)}


def __array_namespace_info__() -> ArrayNamespaceInfo:
    """What this namespace can do, by the Python array API standard.

    Returns:
      An object whose methods say what there is: dtypes, devices, default dtypes, capabilities.

    >>> import pyjx as jax
    >>> jax.numpy.__array_namespace_info__().default_dtypes()["integral"]
    dtype('int32')
    """
    return ArrayNamespaceInfo()
