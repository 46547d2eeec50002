"""Dimensions as values: a symbolic dimension is an integer that operations take."""

from __future__ import annotations

from typing import Any, NoReturn

from pyjx.core import dtypes
from pyjx.core.avals import ShapedArray
from pyjx.core.primitive import Primitive, register


def _shape_rule(*, dim: Any, dtype: Any) -> ShapedArray:
    if dtype is None:
        return ShapedArray((), dtypes.python_scalar_dtype(int), True)
    return ShapedArray((), dtype)


def _impl(*, dim: Any, dtype: Any) -> NoReturn:
    raise NotImplementedError(
        "Evaluation rule for 'dim_as_value' is not implemented. It seems that you are using shape "
        f"polymorphism outside jax.export: the dimension {dim} has no value here.")


dim_as_value_p = register(Primitive("dim_as_value", shape_rule=_shape_rule, impl=_impl))


def dim_as_value(dim: Any, dtype: Any = None) -> Any:
    """A dimension as a traced scalar of a dtype, by default a weak integer."""
    return dim_as_value_p.bind(dim=dim, dtype=dtype)
