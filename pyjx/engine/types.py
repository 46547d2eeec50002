"""What engines and rules pass around, by name."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias, TypeVar

from pyjx.core.array_type import ArrayLike
from pyjx.core.avals import ShapedArray
from pyjx.core.primitive import Rule as Rule  # a function that a primitive is given
from pyjx.jaxlib_pytrees import PyTreeDef

if TYPE_CHECKING:
    from pyjx.engine.tangents import Zero

# An array, a tracer of one, or a NumPy or Python scalar.
Value: TypeAlias = ArrayLike
# A value that is a tangent or a cotangent, or the symbolic `Zero`.
Tangent: TypeAlias = "Value | Zero"
# An operand of a transpose rule: a value, or `UndefinedPrimal` where it is linear.
Operand: TypeAlias = Any

Values: TypeAlias = Sequence[Value]
Tangents: TypeAlias = Sequence[Tangent]
# What transpose rules give: None for operands that are not linear.
Cotangents: TypeAlias = "Sequence[Tangent | None]"

# The types of values.
Avals: TypeAlias = Sequence[ShapedArray]

# Where the batch axis of each value is; None where it has none.
Dims: TypeAlias = Sequence[int | None]
# The same where each value has one, as the only operand of an operation does.
BatchDims: TypeAlias = Sequence[int]
# The name of an axis that is mapped, or a tuple of such names.
AxisName: TypeAlias = Hashable | Sequence[Hashable]
# Which values are differentiated, linear, batched or used.
Flags: TypeAlias = tuple[bool, ...]
# The parameters of an equation.
Params: TypeAlias = dict[str, Any]

# The structure of a pytree.
TreeDef: TypeAlias = PyTreeDef
# A function of leaves that gives leaves.
FlatFunction: TypeAlias = Callable[..., Values]

# A user's function and its result, in signatures of transformations.
P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")
