"""Arrays of extended dtypes, which are those of random keys."""

from __future__ import annotations

from typing import Any

from pyjx.core import dtypes
from pyjx.lazy import directory
from pyjx.random.keys import PRNGKeyArray

__all__ = ["EArray"]
__dir__ = directory(__name__, __all__)


class _OfExtendedDtype(type(PRNGKeyArray)):  # type: ignore[misc]
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, PRNGKeyArray)


class EArray(PRNGKeyArray, metaclass=_OfExtendedDtype):
    """An array of an extended dtype over one of its data: of random keys.

    Args:
      aval: its type.
      data: the array of its data, with the axes of a key behind its own.

    Raises:
      NotImplementedError: the dtype is none of random keys.
      ValueError: the data has another shape than the type says.

    >>> import pyjx as jax
    >>> from pyjx.experimental import EArray
    >>> keys = jax.random.split(jax.random.key(0), 3)
    >>> EArray(jax.typeof(keys), jax.random.key_data(keys)).shape, isinstance(keys, EArray)
    ((3,), True)
    """

    def __new__(cls, aval: Any, data: Any) -> Any:
        if not dtypes.is_extended(aval.dtype) or not hasattr(aval.dtype, "_impl"):
            raise NotImplementedError(f"EArray: there are no arrays of type {aval}; extended "
                                      "dtypes are those of random keys")
        made = PRNGKeyArray(aval.dtype._impl, data)
        if made.shape != aval.shape:
            raise ValueError(f"EArray: the data of an array of type {aval} has another shape, got "
                             f"{data.shape}")
        return made
