"""Makers of rules: the shapes that most derivatives and batching rules have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from pyjx.core.arithmetic import APART
from pyjx.core.avals import get_aval
from pyjx.core.primitive import Primitive
from pyjx.core.scalars import is_scalar_constant
from pyjx.engine.axes import broadcast_axis, moveaxis
from pyjx.engine.tangents import Zero, add_tangents, instantiate, is_written_zero
from pyjx.engine.types import Dims, Rule, Tangent, Tangents, Value, Values


def refused(message: str) -> Callable[..., NoReturn]:
    """A rule that raises ValueError."""
    def rule(*args: Any, **params: Any) -> NoReturn:
        raise ValueError(message)

    return rule


def done_again(primitive: Primitive) -> Primitive:
    """The operation, which has no results: it is done for primals, and once for a batch, unless it
    has a batching rule."""
    def rule(operands: Values, _: Any, **params: Any) -> Any:
        return primitive.bind(*operands, **params), []

    primitive.define(jvp=rule)
    if primitive.batch is None and primitive.batch_axis is None:
        primitive.define(batch=rule)
    return primitive


def jvp_by_operand(primitive: Primitive, *rules: Rule | None) -> Rule:
    """Forward rule from one rule an operand, `(g, *primals, **params) -> tangent`.

    The tangent is the sum of what the rules give; None stands for an operand without derivative.
    A product with a tangent that a recorded program writes as zeros is zeros, whatever the other
    factor is: XLA would make sums over that, and more would wait for them. So zeros times infinity
    are 0 there, where the product is NaN.
    """
    return _jvp_of_rules(primitive, rules, False)


def jvp_bilinear(primitive: Primitive, others: int = 0) -> Rule:
    """Forward rule of what is linear in each of its first two operands, and has no derivative in
    the others, of which there are so many."""
    return jvp_by_operand(
        primitive, lambda g, x, y, *more, **params: primitive.bind(g, y, *more, **params),
        lambda g, x, y, *more, **params: primitive.bind(x, g, *more, **params),
        *[None] * others)


def jvp_by_result(primitive: Primitive, *rules: Rule | None) -> Rule:
    """As `jvp_by_operand`, for rules that read the result: `(g, ans, *primals, **params)`."""
    return _jvp_of_rules(primitive, rules, True)


def _jvp_of_rules(primitive: Primitive, rules: Sequence[Rule | None], read_result: bool) -> Rule:
    def jvp(primals: Values, tangents: Tangents, **params: Any) -> tuple[Value, Tangent]:
        out = primitive.bind(*primals, **params)
        given = (out, *primals) if read_result else primals
        total: Any = None
        zero: Callable[[Value], Tangent] = Zero.of_primal
        for rule, g in zip(rules, tangents, strict=True):
            if rule is None or type(g) is Zero:
                continue
            if primitive.contracts and is_written_zero(g):
                zero = _written_zero
                continue
            t = rule(g, *given, **params)
            total = t if total is None else add_tangents(total, t)
        return out, zero(out) if total is None else total

    return jvp


def _written_zero(x: Value) -> Tangent:
    return instantiate(Zero.of_primal(x))


def _each(zero: Callable[[Value], Tangent], primitive: Primitive, out: Any) -> Any:
    """Such a zero for the result, or for each of several."""
    return list(map(zero, out)) if primitive.multiple_results else zero(out)


def jvp_zero(primitive: Primitive) -> Rule:
    """Forward rule of an operation that is constant almost everywhere, or has no tangents."""

    def jvp(primals: Values, tangents: Tangents, **params: Any) -> tuple[Any, Any]:
        out = primitive.bind(*primals, **params)
        return out, _each(Zero.of_primal, primitive, out)

    return jvp


def jvp_linear(primitive: Primitive) -> Rule:
    """Forward rule of an operation that is linear in some operands together. What only moves zeros
    that are written gives such, for the products behind it (`jvp_by_operand`)."""
    group = primitive.linear[-1]

    def jvp(primals: Values, tangents: Tangents, **params: Any) -> tuple[Any, Any]:
        out = primitive.bind(*primals, **params)
        moving = tangents[group]
        if all([type(t) is Zero for t in moving]):
            return out, _each(Zero.of_primal, primitive, out)
        if primitive.moves and all([type(t) is Zero or is_written_zero(t) for t in moving]):
            return out, _each(_written_zero, primitive, out)
        operands = list(primals)
        operands[group] = map(instantiate, moving)
        return out, primitive.bind(*operands, **params)

    return jvp


def forward_rule(primitive: Primitive) -> Rule | None:
    """The rule `jvp` of an operation. What is linear and has none is given the one that follows."""
    if primitive.jvp is None and len(primitive.linear) == 1 and primitive.linear is not APART:
        primitive.jvp = jvp_linear(primitive)  # in each thread that comes here at once
    return primitive.jvp


def elementwise_batch(primitive: Primitive) -> Rule:
    """Batching rule of an elementwise operation of any number of operands."""

    def batch(operands: Values, dims: Dims, **params: Any) -> tuple[Value, int | None]:
        if len(operands) == 1:
            return primitive.bind(*operands, **params), dims[0]
        if len(operands) == 2:
            (x, y), (dx, dy) = operands, dims
            if dx == dy and get_aval(x).ndim == get_aval(y).ndim:
                return primitive.bind(x, y, **params), dx
            if dy is None and is_scalar_constant(y):
                return primitive.bind(x, y, **params), dx
            if dx is None and is_scalar_constant(x):
                return primitive.bind(x, y, **params), dy
        shape = dim = None
        for x, d in zip(operands, dims, strict=True):
            if d is not None:
                x_shape = get_aval(x).shape
                if shape is None or len(x_shape) > len(shape):
                    shape, dim = x_shape, d
        assert shape is not None and dim is not None
        aligned = [_align(x, d, shape, dim) for x, d in zip(operands, dims, strict=True)]
        return primitive.bind(*aligned, **params), dim

    return batch


def _align(x: Value, d: int | None, shape: tuple[int, ...], dim: int) -> Any:
    if d is None:
        return x if is_scalar_constant(x) else broadcast_axis(x, shape[dim], dim)
    return moveaxis(x, d, dim)


def unbatched_dims(d: int, dims: Sequence[int]) -> tuple[int, ...]:
    """Axis numbers of one example as axis numbers of the batch whose batch axis is `d`."""
    return tuple([i if i < d else i + 1 for i in dims])
