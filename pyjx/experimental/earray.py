"""Arrays of extended dtypes: of random keys, and of those that libraries bring."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from pyjx.core import dtypes
from pyjx.core.avals import ShapedArray
from pyjx.core.records import Alike
from pyjx.lazy import directory
from pyjx.random.keys import PRNGKeyArray
from pyjx.runtime.array import ExtendedArray

__all__ = ["EArray", "primal_tangent_dtype"]


class _OfExtendedDtype(type(PRNGKeyArray)):  # type: ignore[misc]
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, (PRNGKeyArray, ExtendedArray))


class EArray(PRNGKeyArray, metaclass=_OfExtendedDtype):
    """An array of an extended dtype over one of its data.

    Args:
      aval: its type.
      data: the array of its data; of random keys with the axes of a key behind its own.

    Raises:
      NotImplementedError: the dtype is no extended one.
      ValueError: the data has another shape or dtype than the type says.

    >>> import pyjx as jax
    >>> from pyjx.experimental import EArray
    >>> keys = jax.random.split(jax.random.key(0), 3)
    >>> EArray(jax.typeof(keys), jax.random.key_data(keys)).shape, isinstance(keys, EArray)
    ((3,), True)
    """

    def __new__(cls, aval: Any, data: Any) -> Any:
        if not dtypes.is_extended(aval.dtype):
            raise NotImplementedError(f"EArray: there are no arrays of type {aval}; extended "
                                      "dtypes are those of random keys and of libraries")
        if not hasattr(aval.dtype, "_impl"):
            return ExtendedArray(aval, data)
        made = PRNGKeyArray(aval.dtype._impl, data)
        if made.shape != aval.shape:
            raise ValueError(f"EArray: the data of an array of type {aval} has another shape, got "
                             f"{data.shape}")
        return made


# -- numbers whose tangents have a dtype of their own ----------------------------------------------


class _OfTwoDtypes(dtypes.extended):
    """The scalar class of these dtypes."""


class PrimalTangentDType(Alike, dtypes.ExtendedDType):
    """A dtype of numbers whose tangents have another one."""

    __slots__ = ("name", "primal_dtype", "tangents")

    type = _OfTwoDtypes

    def __init__(self, primal_dtype: Any, tangents: Any, name: str) -> None:
        self.primal_dtype = primal_dtype
        self.tangents = tangents
        self.name = name

    @property
    def _rules(self) -> Any:  # type: ignore[override]
        return SimpleNamespace(
            physical_element_aval=lambda dtype: ShapedArray((), self.primal_dtype),
            tangent_dtype=lambda dtype: self.tangents, allow_conversion=True)


def primal_tangent_dtype(primal_dtype: Any, tangent_dtype: Any, name: str | None = None
                         ) -> dtypes.ExtendedDType:
    """A dtype of numbers of one dtype, whose tangents and cotangents have another one.

    Arrays of it are made by `jax.lax.convert_element_type` from arrays of `primal_dtype`, and
    become such ones again in the same way. What is computed with them, custom derivatives say.

    Args:
      name: what jaxprs print.

    >>> import pyjx as jax
    >>> from pyjx.experimental import primal_tangent_dtype
    >>> quantized = primal_tangent_dtype("int8", "bfloat16")
    >>> x = jax.lax.convert_element_type(jax.numpy.int8(3), quantized)
    >>> x.dtype, jax.typeof(x).to_tangent_aval()
    (PrimalTangentDType{i8/bf16}, ShapedArray(bfloat16[]))
    """
    primal, tangent = [dtypes.check_and_canonicalize_user_dtype(d, "primal_tangent_dtype")
                       for d in (primal_dtype, tangent_dtype)]
    short = [dtypes.short_dtype_name(d) for d in (primal, tangent)]
    return PrimalTangentDType(primal, tangent,
                              name or f"PrimalTangentDType{{{short[0]}/{short[1]}}}")


__dir__ = directory(__name__, __all__)
