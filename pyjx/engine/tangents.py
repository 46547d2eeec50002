"""Tangents and cotangents as the engines hold them: symbolic zeros, linear variables, sums."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn, final

import numpy as np

from pyjx.core import dtypes
from pyjx.core.arithmetic import TOGETHER
from pyjx.core.avals import AbstractValue, ShapedArray, cotangent_aval, get_aval
from pyjx.core.bounded import BoundedDict
from pyjx.core.jaxpr import Literal
from pyjx.core.places import HERE, UNIFORM
from pyjx.core.primitive import CHEAP, Primitive, cast_like, register
from pyjx.core.scalars import literal_types, scalar_of
from pyjx.core.trace import DynamicJaxprTrace, DynamicJaxprTracer, state
from pyjx.engine.axes import at_front, broadcast_in_dim, broadcast_in_dim_p
from pyjx.engine.moves import moved
from pyjx.engine.types import Value, Values
from pyjx.tree_util import register_pytree_node

TO_BE_LINEAR = ("What is transposed must be linear: the function of jax.linear_transpose, the "
                "operator of a solver such as cg, and a rule of jax.custom_jvp in the tangents.")


@final
class Zero:
    """A tangent or cotangent that is known to be zero."""

    __slots__ = ("aval",)

    def __init__(self, aval: Any) -> None:
        self.aval = aval

    @staticmethod
    def of_primal(x: Any) -> Zero:
        """The zero tangent at `x`."""
        return zero_tangent(get_aval(x))

    @staticmethod
    def cotangent_of(aval: AbstractValue) -> Zero:
        """The zero cotangent of values of a type."""
        return Zero(cotangent_aval(aval))

    def instantiate(self) -> Any:
        """It as an array."""
        return instantiate(self)

    def __repr__(self) -> str:
        return f"Zero({self.aval})"


_zero_tangents = BoundedDict(8192, "types of tangents")  # by aval


def zero_tangent(aval: AbstractValue) -> Zero:
    """The zero tangent at a value of the given aval."""
    zero = _zero_tangents.get(aval)
    if zero is None:
        zero = _zero_tangents[aval] = Zero(aval.to_tangent_aval())
    return zero  # type: ignore[no-any-return]


class UndefinedPrimal:
    """A linear operand, for transpose rules: a variable of a linear program."""

    __slots__ = ("aval",)

    def __init__(self, aval: Any) -> None:
        self.aval = aval

    def __repr__(self) -> str:
        return f"UndefinedPrimal({self.aval})"

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError("The function is not linear: an operand whose value is asked for depends "
                        f"on the arguments. {TO_BE_LINEAR}")


# Pytrees without leaves, so that functions under any transformation may take and return them.
register_pytree_node(Zero, lambda z: ((), z.aval), lambda aval, _: Zero(aval))
register_pytree_node(UndefinedPrimal, lambda x: ((), x.aval), lambda aval, _: UndefinedPrimal(aval))


def is_written_zero(x: Any) -> bool:
    """Whether a tangent is an array of zeros that the program being recorded makes."""
    eqn = x._eqn if type(x) is DynamicJaxprTracer else None
    return eqn is not None and eqn.primitive is broadcast_in_dim_p and (
        type(zero := eqn.invars[0]) is Literal and not zero.val)


def is_undefined_primal(x: Any) -> bool:
    """Whether a transpose rule is given no value for an operand, because it is linear in it."""
    return type(x) is UndefinedPrimal


def first_is_linear(name: str, x: Any, y: Any) -> bool:
    """Whether the first factor of a product is the linear one, for its transpose rule.

    Raises:
      TypeError: both are, so that their product is not.
    """
    if type(x) is not UndefinedPrimal:
        return False
    if type(y) is UndefinedPrimal:
        raise TypeError(f"The function is not linear: both operands of '{name}' depend on the "
                        f"arguments. {TO_BE_LINEAR}")
    return True


def full_aval(aval: Any, value: Any) -> Any:
    """An array of the given aval, filled with one value; of a library's type the value zero."""
    if aval.is_high:
        return aval.vspace_zero()
    if aval.dtype == dtypes.float0:
        if all([type(d) is int for d in aval.shape]):
            return np.zeros(aval.shape, dtypes.float0)
        return broadcast_in_dim(np.zeros((), dtypes.float0), aval.shape, ())
    if dtypes.is_extended(aval.dtype):
        rules = aval.dtype._rules
        if rules is None:  # keys
            return aval.dtype.filled(aval.shape, value)
        scalar = rules.zero(aval.dtype) if value == 0 else aval.dtype.filled((), value)
    else:
        scalar = scalar_of(aval, value)
    full, place = scalar, aval.place
    if place.sharding is not None:
        full = broadcast_in_dim_p.bind(scalar, shape=aval.shape, broadcast_dimensions=(),
                                       sharding=place.sharding)
    elif aval.shape:
        full = broadcast_in_dim(scalar, aval.shape, ())
    if place is HERE:  # as nearly all are
        return full
    if place.memory_kind is not None:
        full = moved(full, place.space)
    return full if place.mat is UNIFORM else cast_like(full, aval)


def instantiate(x: Any) -> Any:
    """`x`, with a symbolic zero made an array."""
    return full_aval(x.aval, 0) if type(x) is Zero else x


def zeros_like(x: Any) -> Any:
    return full_aval(get_aval(x), 0)


def _add_any_shape(x: ShapedArray, y: ShapedArray) -> ShapedArray:
    if x.shape != y.shape or x.dtype != y.dtype:
        raise TypeError(f"add_any: expected equal shapes and dtypes, got {x} and {y}")
    return x  # of weak type where the first is, as in JAX


def _add_any_batch(operands: Values, dims: Any) -> tuple[Value, int]:
    (x, y), (dx, dy) = operands, dims
    size = get_aval(x).shape[dx] if dx is not None else get_aval(y).shape[dy]
    return add_any_p.bind(at_front(x, dx, size), at_front(y, dy, size)), 0


add_any_p: Primitive = register(Primitive(
    "add_any", shape_rule=_add_any_shape, batch=_add_any_batch, linear=TOGETHER, cost=CHEAP,
    jvp=lambda primals, tangents: (add_any_p.bind(*primals), add_tangents(*tangents)),
    transpose=lambda ct, x, y: (ct, ct),
))


def add_tangents(x: Any, y: Any) -> Any:
    """x + y, where either may be a symbolic zero."""
    if type(x) is Zero:
        return y
    if type(y) is Zero:
        return x
    aval: Any = get_aval(x)
    if aval.is_high:
        return aval.vspace_add(x, y)
    if aval.dtype == dtypes.float0:
        return x
    return add_any_p.bind(x, y)


def as_given(outs: Iterable[Any], given: Iterable[Any]) -> list[Any]:
    """Tangents that are given to the user: the user's own scalars as they came, else arrays."""
    scalars = {id(x) for x in given if type(x) in literal_types}
    return [x if id(x) in scalars else materialized(x) for x in outs]


def materialized(x: Any) -> Any:
    """A tangent or cotangent that is given to the user: an array, or a tracer of one."""
    if type(x) is Zero:
        x = full_aval(x.aval, 0)
    if type(x) not in literal_types:
        return x
    trace = state.dynamic
    if isinstance(trace, DynamicJaxprTrace):
        return DynamicJaxprTracer(trace, Literal(x, get_aval(x)), None)  # type: ignore[arg-type]
    return broadcast_in_dim_p.bind(x, shape=(), broadcast_dimensions=(), sharding=None)
