"""`jax._src.export.shape_poly`: shapes with variables in them."""

from __future__ import annotations

from typing import Any

from pyjx.core.symbolic.expressions import DimExpr as _DimExpr
from pyjx.core.symbolic.expressions import is_symbolic_dim
from pyjx.core.symbolic.scopes import SymbolicScope
from pyjx.core.symbolic.solving import UnexpectedDimVar, variables_in
from pyjx.core.symbolic.values import dim_as_value_p
from pyjx.errors import InconclusiveDimensionOperation
from pyjx.export import symbolic_args_specs, symbolic_dim_bounds, symbolic_shape

__all__ = [
    "InconclusiveDimensionOperation", "SymbolicScope", "UnexpectedDimVar", "_DimExpr",
    "all_dim_vars", "dim_as_value_p", "is_symbolic_dim", "symbolic_args_specs",
    "symbolic_dim_bounds", "symbolic_shape",
]

DimSize = int | Any


def all_dim_vars(args_avals: Any) -> list[str]:
    """The names of the variables in the shapes of types, in order.

    >>> import pyjx as jax
    >>> all_dim_vars([jax.ShapeDtypeStruct(symbolic_shape("b, 2*a"), "float32")])
    ['a', 'b']
    """
    return sorted(variables_in(args_avals))
