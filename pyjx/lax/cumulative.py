"""Cumulative reductions along an axis.

All but the sum are differentiated through a first-order linear recurrence t_i = a_i t_{i-1} + b_i
along the axis: with y the result,

  cumprod       t_i = x_i t_{i-1} + y_{i-1} g_i
  cumlogsumexp  t_i = exp(y_{i-1} - y_i) t_{i-1} + exp(x_i - y_i) g_i
  cummax        t_i = (1 - s_i) t_{i-1} + s_i g_i, with s_i = 1 where x_i > y_{i-1}, 1/2 where equal

The recurrence is linear in b, and its transpose is the recurrence in the other direction.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from pyjx import lax
from pyjx.core import dtypes
from pyjx.core.arithmetic import LAST, TOGETHER, on_results
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.explicit import Entries, agreed, whole_along
from pyjx.core.integers import as_int
from pyjx.core.primitive import Primitive, register
from pyjx.core.scalars import greatest, least, scalar_constant
from pyjx.engine.axes import all_at_front
from pyjx.engine.primitives import cast
from pyjx.engine.tangents import Zero, add_tangents, is_undefined_primal
from pyjx.engine.types import BatchDims, Operand, Rule, Tangent, Tangents, Value, Values
from pyjx.lax.common import operand as _operand


def _check_axis(name: str, x: ShapedArray, axis: int) -> None:
    if axis < 0:
        raise ValueError(f"{name}: XLA operations do not allow negative axes")
    if axis >= x.ndim:
        raise ValueError(f"{name}: axis {axis} is out of bounds for array of shape {x.shape}")


def _cumulative_sharding(out: ShapedArray, *xs: ShapedArray, axis: int, **params: Any) -> Entries:
    for x in xs:
        whole_along(x, axis, "Input should be unsharded over the axis being reduced. Got input "
                    f"type={x.str_short()} and axis={axis}")
    return agreed(xs, f"linear_recurrence got incompatible shardings: {xs}.")


def _cumulative(name: str, kind: Any, kind_name: str, **facts: Any) -> Primitive:
    def shape_rule(x: ShapedArray, *, axis: int, reverse: bool) -> ShapedArray:
        _check_axis(name, x, axis)
        if not dtypes.issubdtype(x.dtype, kind):
            raise TypeError(f"{name} does not accept dtype {dtypes.name(x.dtype)}. Accepted dtypes "
                            f"are subtypes of {kind_name}.")
        return x

    primitive = register(Primitive(name, shape_rule=shape_rule,
                                   sharding_rule=_cumulative_sharding, **facts))

    def batch(operands: Values, dims: BatchDims, *, axis: int, reverse: bool) -> tuple[Value, int]:
        (x,), (d,) = operands, dims
        return primitive.bind(x, axis=axis if axis < d else axis + 1, reverse=reverse), d

    return primitive.define(batch=batch)


cumsum_p = _cumulative("cumsum", np.number, "number")
cumprod_p = _cumulative("cumprod", np.number, "number")
cummax_p = _cumulative("cummax", np.number, "number", keeps_nans=True)
cummin_p = _cumulative("cummin", np.number, "number", keeps_nans=True)


def _logs_of_sums(x: Value, *, axis: int, reverse: bool) -> Array:
    # y = m + log(s), m the greatest so far; s_i = exp(m_{i-1} - m_i) s_{i-1} + exp(x_i - m_i)
    dtype = get_aval(x).dtype
    wide = cast(x, np.dtype(np.float32)) if dtypes.itemsize_bits(dtype) < 32 else x
    is_complex = dtypes.issubdtype(dtype, np.complexfloating)
    top = cummax_p.bind(lax.real(wide) if is_complex else wide, axis=axis, reverse=reverse)
    ends = lax.is_finite(top)  # an infinite sum stays so, whose product with a complex 1 is nan
    level = lax.select(ends, top, lax.full_like(top, 0))
    kept = lax.select(ends, lax.exp(lax.sub(shifted(top, axis, reverse, -np.inf), level)),
                      lax.full_like(top, 1))
    level = cast(level, get_aval(wide).dtype)
    terms = lax.exp(lax.sub(wide, level))
    sums = [linear_recurrence_p.bind(kept, part, axis=axis, reverse=reverse)
            for part in ((lax.real(terms), lax.imag(terms)) if is_complex else (terms,))]
    return cast(lax.add(level, lax.log(lax.complex(*sums) if is_complex else sums[0])), dtype)


cumlogsumexp_p = _cumulative("cumlogsumexp", np.inexact, "inexact", decomposition=_logs_of_sums)

cumsum_p.linear = TOGETHER
cumsum_p.define(transpose=lambda ct, x, *, axis, reverse: (
    cumsum_p.bind(ct, axis=axis, reverse=not reverse),))


# -- the linear recurrence -------------------------------------------------------------------------


def shifted(x: ArrayLike, axis: int, reverse: bool, fill: Any) -> Any:
    """Each element's predecessor along the axis, in the direction of the accumulation."""
    aval = get_aval(x)
    config = [(0, 0, 0)] * aval.ndim
    config[axis] = (-1, 1, 0) if reverse else (1, -1, 0)
    return lax.pad(x, scalar_constant(fill, aval.dtype), config)


def _recurrence_shape(a: ShapedArray, b: ShapedArray, *, axis: int, reverse: bool) -> ShapedArray:
    if a.shape != b.shape or a.dtype != b.dtype:
        raise TypeError("linear_recurrence requires operands of one shape and dtype, "
                        f"got {a} and {b}.")
    _check_axis("linear_recurrence", a, axis)
    return b


def _recurrence_jvp(primals: Values, tangents: Tangents, *, axis: int, reverse: bool
                    ) -> tuple[Value, Tangent]:
    (a, b), (da, db) = primals, tangents
    y = linear_recurrence_p.bind(a, b, axis=axis, reverse=reverse)
    source = db
    if type(da) is not Zero:
        source = add_tangents(lax.mul(da, shifted(y, axis, reverse, 0)), db)
    return y, linear_recurrence_p.bind(a, source, axis=axis, reverse=reverse)


def _recurrence_transpose(ct: Tangent, a: Operand, b: Operand, *, axis: int, reverse: bool) -> Any:
    assert is_undefined_primal(b) and not is_undefined_primal(a)
    following = shifted(a, axis, not reverse, 0)
    return None, linear_recurrence_p.bind(following, ct, axis=axis, reverse=not reverse)


linear_recurrence_p: Primitive = register(Primitive(
    "linear_recurrence", arithmetic=lambda eqn: (2 * on_results(eqn), 0.0), linear=LAST, asked=True,
    shape_rule=_recurrence_shape, sharding_rule=_cumulative_sharding, jvp=_recurrence_jvp,
    transpose=_recurrence_transpose, batch=lambda operands, dims, *, axis, **params: (
        linear_recurrence_p.bind(*all_at_front(operands, dims), axis=axis + 1, **params), 0)))


def _prod_tangent(g: Value, x: Value, y: Value, axis: int, reverse: bool) -> Array:
    before = shifted(y, axis, reverse, 1)
    # The first factor is of no tangent, and infinity times none would be NaN.
    factors = lax.select(_first(x, axis, reverse), lax.full_like(x, 0), x)
    return linear_recurrence_p.bind(factors, lax.mul(before, g), axis=axis, reverse=reverse)


def _first(x: Value, axis: int, reverse: bool) -> Array:
    """Whether an element has no predecessor."""
    shape = get_aval(x).shape
    return lax.eq(lax.broadcasted_iota(np.int32, shape, axis),
                  scalar_constant(shape[axis] - 1 if reverse else 0, np.dtype(np.int32)))


def _logsumexp_tangent(g: Value, x: Value, y: Value, axis: int, reverse: bool) -> Array:
    kept = _share(shifted(y, axis, reverse, -np.inf), y)
    taken = _share(x, y)
    return linear_recurrence_p.bind(kept, lax.mul(taken, g), axis=axis, reverse=reverse)


def _share(part: Value, total: Value) -> Array:
    """exp(part - total), its limits where the total is infinite and the difference is NaN."""
    if dtypes.issubdtype(get_aval(total).dtype, np.complexfloating):
        return lax.exp(lax.sub(part, total))
    infinity = lax.full_like(total, np.inf)
    at_top = lax.select(lax.eq(part, infinity), lax.full_like(total, 0), lax.neg(infinity))
    finite = lax.select(lax.is_finite(total), total, lax.full_like(total, 0))
    return lax.exp(lax.select(lax.eq(total, infinity), at_top, lax.sub(part, finite)))


def _choice_tangent(worst: Any, better: Any, g: Value, x: Any, y: Any, axis: int, reverse: bool
                    ) -> Array:
    before = shifted(y, axis, reverse, worst(get_aval(x).dtype))
    half = lax.full_like(x, 0.5)
    tied = lax.select(lax.eq(x, before), half, lax.full_like(x, 0))
    share = lax.select(better(x, before), lax.full_like(x, 1), tied)
    # The first element has no predecessor to share with, whatever its value.
    share = lax.select(_first(x, axis, reverse), lax.full_like(x, 1), share)
    return linear_recurrence_p.bind(lax.sub(lax.full_like(x, 1), share), lax.mul(share, g),
                                    axis=axis, reverse=reverse)


def _with_tangent(primitive: Primitive, rule: Rule) -> None:
    def jvp(primals: Values, tangents: Tangents, *, axis: int, reverse: bool
            ) -> tuple[Value, Tangent]:
        (x,), (g,) = primals, tangents
        ndim = get_aval(x).ndim
        if -ndim <= axis < 0:  # as JAX does, which refuses these without a derivative
            axis += ndim
        dtype = get_aval(x).dtype
        y = cast(primitive.bind(x, axis=axis, reverse=reverse), dtype)
        return y, cast(rule(g, x, y, axis, reverse), dtype)

    primitive.define(jvp=jvp)


_with_tangent(cumprod_p, _prod_tangent)
_with_tangent(cumlogsumexp_p, _logsumexp_tangent)
_with_tangent(cummax_p, partial(_choice_tangent, least, lax.gt))
_with_tangent(cummin_p, partial(_choice_tangent, greatest, lax.lt))


# -- public functions ------------------------------------------------------------------------------


def _apply(primitive: Primitive, operand: Value, axis: int, reverse: bool) -> Array:
    name = primitive.name
    return primitive.bind(_operand(name, operand), axis=as_int(name, "axis", axis),
                          reverse=bool(reverse))


def cumsum(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """The sum of all elements up to each one along `axis`; from the end with `reverse`.

    Args:
      operand: an array.
      axis: an int, which is not negative.
      reverse: whether each place has what is from it to the end.

    Raises:
      ValueError: the axis is negative or out of range.
      TypeError: the operand is boolean.

    >>> import pyjx as jax
    >>> jax.lax.cumsum(jax.numpy.array([1, 2, 3])).tolist()
    [1, 3, 6]
    """
    return _apply(cumsum_p, operand, axis, reverse)


def cumprod(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """The product of all elements up to each one along `axis`; from the end with `reverse`.

    Args:
      operand: an array.
      axis: an int, which is not negative.
      reverse: whether each place has what is from it to the end.

    Raises:
      ValueError: the axis is negative or out of range.
      TypeError: the operand is boolean.

    >>> import pyjx as jax
    >>> jax.lax.cumprod(jax.numpy.array([1, 2, 3]), reverse=True).tolist()
    [6, 6, 3]
    """
    return _apply(cumprod_p, operand, axis, reverse)


def cummax(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """The maximum of all elements up to each one along `axis`; from the end with `reverse`.

    Args:
      operand: an array.
      axis: an int, which is not negative.
      reverse: whether each place has what is from it to the end.

    Raises:
      ValueError: the axis is negative or out of range.
      TypeError: the operand is boolean.

    >>> import pyjx as jax
    >>> jax.lax.cummax(jax.numpy.array([2, 1, 3])).tolist()
    [2, 2, 3]
    """
    return _apply(cummax_p, operand, axis, reverse)


def cummin(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """The minimum of all elements up to each one along `axis`; from the end with `reverse`.

    Args:
      operand: an array.
      axis: an int, which is not negative.
      reverse: whether each place has what is from it to the end.

    Raises:
      ValueError: the axis is negative or out of range.
      TypeError: the operand is boolean.

    >>> import pyjx as jax
    >>> jax.lax.cummin(jax.numpy.array([2, 1, 3])).tolist()
    [2, 1, 1]
    """
    return _apply(cummin_p, operand, axis, reverse)


def cumlogsumexp(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """log(sum(exp(x))) of all elements up to each one along `axis`; from the end with `reverse`.

    Computed as x ⊕ y = max(x, y) + log1p(exp(-|x - y|)), so it does not overflow.

    Args:
      operand: an array.
      axis: an int, which is not negative.
      reverse: whether each place has what is from it to the end.

    Raises:
      ValueError: the axis is negative or out of range.
      TypeError: the operand is neither floating nor complex.

    >>> import pyjx as jax
    >>> jax.lax.cumlogsumexp(jax.numpy.zeros(2)).tolist()
    [0.0, 0.6931471824645996]
    """
    return _apply(cumlogsumexp_p, operand, axis, reverse)
