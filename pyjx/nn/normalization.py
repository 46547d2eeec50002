"""Logarithms of sums of exponentials without overflow, softmax and standardization.

The derivative of `log_softmax` is that of its parts; softmax has a rule by its result."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pyjx import lax
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import get_aval
from pyjx.core.scalars import scalar_constant
from pyjx.engine.axes import reduce_sum_p, stretched_along
from pyjx.engine.types import Value, Values
from pyjx.lax.common import broadcast_shapes
from pyjx.lax.elementwise import stretch
from pyjx.numpy import reductions, ufuncs
from pyjx.numpy.operands import axes_and_names, beside_constants, dtype_of, numpy_function
from pyjx.numpy.promotion import (
    check_promotion,
    convert,
    literal,
    operands,
    promote_args_as_floats,
    promote_dtypes,
    promote_inexact,
    strong,
)
from pyjx.numpy.reductions import check_where, count_of, is_wide, largest, masked
from pyjx.runtime.operations import body_of
from pyjx.transforms.custom_jvp import custom_jvp

Axis = int | str | Sequence[int | str] | None

_sum = body_of(reductions.sum)


def shifted(x: Value, axes: tuple[int, ...], names: tuple[str, ...], where: ArrayLike | None
           ) -> Array:
    """x less its largest element over the axes, so that exponentials do not overflow."""
    shape = get_aval(x).shape
    if where is not None:
        x = masked(where, x, -math.inf)
    top = largest(lax.stop_gradient(x), axes, names)
    return lax.sub_p.bind(x, stretched_along(top, shape, axes))


def beside_mask(name: str, x: ArrayLike, where: ArrayLike | None) -> Any:
    """`x` in a floating dtype; with a mask that which an integer has in common with -inf, and in
    the shape that both have."""
    if where is not None:
        x, _ = promote_dtypes(*operands(name, x), -math.inf)
        x = stretch(x, broadcast_shapes(get_aval(where).shape, get_aval(x).shape))
    return promote_inexact(name, x)


def total_of(x: Value, axes: tuple[int, ...], names: tuple[str, ...]) -> Array:
    return (reduce_sum_p.bind(x, axes=axes, out_sharding=None) if is_wide(x) and not names
            else convert(_sum(x, (*names, *axes)), get_aval(x).dtype, get_aval(x).weak_type))


@numpy_function(static_argnames=("axis",))
def log_softmax(x: ArrayLike, axis: Axis = -1, where: ArrayLike | None = None) -> Array:
    """The logarithm of `softmax`; -inf where the mask is false. Arguments as for `softmax`.

    Returns:
      An array of the shape that the argument and the mask have together. Integers and booleans
      become the default float dtype; other dtypes stay.

    >>> import pyjx as jax
    >>> jax.numpy.exp(jax.nn.log_softmax(jax.numpy.array([1.0, 1.0]))).tolist()
    [0.5, 0.5]

    The cross entropy of logits and labels; `softmax` and then `log` would lose small probabilities.

    >>> logits, labels = jax.numpy.array([[2.0, 0.0], [0.0, 0.0]]), jax.numpy.array([0, 1])
    >>> chosen = jax.numpy.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=1)
    >>> round(float(-chosen.mean()), 3)
    0.41
    """
    where = check_where("log_softmax", where)
    x = strong(beside_mask("log_softmax", x, where))
    shape = get_aval(x).shape
    axes, names = axes_and_names(axis, len(shape))
    x = shifted(x, axes, names, where)
    weights = lax.exp(x)
    if where is not None:
        weights = masked(where, weights, 0)
    out = lax.sub(x, stretched_along(lax.log(total_of(weights, axes, names)), shape, axes))
    return out if where is None else masked(where, out, -math.inf)


def log_sum_exp(name: str, a: Any, axis: Axis, b: Any, keepdims: bool, return_sign: bool,
                where: ArrayLike | None) -> Any:
    """log(sum(b * exp(a))), and with `return_sign` the sign of the sum, whose size it then is."""
    where = check_where(name, where)
    if where is not None and dtype_of(a) == np.bool_:
        a = convert(a, dtypes.default_float_dtype(), True)  # as -inf beside truth values
    if b is None:
        (x,), weights = promote_args_as_floats(name, a), None
    else:
        a, b = operands(name, a, b)
        shape = broadcast_shapes(get_aval(a).shape, get_aval(b).shape)
        x, weights = promote_args_as_floats(name, a, b)
        x, weights = stretch(x, shape), stretch(weights, shape)
    if where is not None:
        x = masked(where, x, -math.inf)
    shape, dtype = get_aval(x).shape, get_aval(x).dtype
    axes, names = axes_and_names(axis, len(shape))
    is_complex = dtype in dtypes.complex_dtypes
    counts = None if weights is None else lax.ne(weights, lax.full_like(weights, 0))
    fixed = lax.stop_gradient(x if counts is None else masked(counts, x, -math.inf))
    top = largest(lax.real(fixed) if is_complex else fixed, axes, names)
    finite = lax.is_finite(top)
    top = masked(finite, top, 0.0)
    shift = convert(top, dtype)
    powers = lax.sub(x, stretched_along(shift, shape, axes))
    if counts is not None:  # a term without weight adds nothing, but has a slope by its weight
        most = math.log(dtypes.finfo(dtype).max) - 1  # whose exponential is finite, if rounded up
        small = lax.lt(lax.real(powers) if is_complex else powers,
                       literal(most, get_aval(top).dtype))
        powers = masked(lax.bitwise_or(counts, small), powers, most)
        # where no term has a weight, none has a slope by its power, though that of log is infinite
        powers = lax.select(lax.bitwise_or(counts, stretched_along(finite, shape, axes)), powers,
                            lax.stop_gradient(powers))
    exps = lax.exp(powers)
    total = total_of(exps if weights is None else lax.mul(exps, weights), axes, names)
    sign = None
    if return_sign:
        sign = lax.sign(total)
        total = lax.abs(total)
        shift = top
    elif not is_complex:
        # The sum is negative only if b is; its logarithm is then nan.
        sign = lax.sign(total) if b is not None else None
        total = lax.abs(total) if b is not None else total
    out = lax.add(lax.log(total), shift)
    if sign is not None and not return_sign:
        negative = lax.lt(sign, literal(0.0, get_aval(sign).dtype))
        out = ufuncs.where(negative, literal(math.nan, get_aval(out).dtype), out)
    if keepdims:
        out = reductions.restore_axes(out, axes, len(shape))
        if return_sign and sign is not None:
            sign = reductions.restore_axes(sign, axes, len(shape))
    return (out, sign) if return_sign else out


@numpy_function(static_argnames=("axis", "keepdims", "return_sign"))
def logsumexp(a: Value, axis: Axis = None, b: Value | None = None, keepdims: bool = False,
              return_sign: bool = False, where: Any = None) -> Any:
    """log(sum(b * exp(a))) over the given axes, without overflow.

    Args:
      a: array.
      axis: int or sequence of ints; all axes by default.
      b: factors, broadcast against `a`.
      keepdims: whether the axes stay, with size 1.
      return_sign: whether to return (log(abs(sum)), sign(sum)); else a negative sum gives nan.
      where: boolean mask, broadcast against `a`, of the elements to include.

    >>> import pyjx as jax
    >>> float(jax.nn.logsumexp(jax.numpy.array([1000.0, -1000.0])))
    1000.0
    """
    return log_sum_exp("logsumexp", a, axis, b, keepdims, return_sign, where)


@numpy_function(static_argnames=("axis", "keepdims"))
def logmeanexp(x: Any, axis: Axis = None, where: Any = None, keepdims: bool = False) -> Array:
    """log(mean(exp(x))) over the given axes, without overflow; arguments as for `logsumexp`.

    >>> import pyjx as jax
    >>> float(jax.nn.logmeanexp(jax.numpy.array([1000.0, 1000.0])))
    1000.0
    """
    x = promote_inexact("logmeanexp", x)
    aval = get_aval(x)
    total = log_sum_exp("logmeanexp", x, axis, None, keepdims, False, where)
    if where is None:
        count: Any = scalar_constant(
            count_of(aval, *axes_and_names(axis, aval.ndim)), aval.dtype, True)
    else:
        count = _sum(stretch(where, aval.shape), axis, dtype=aval.dtype, keepdims=keepdims)
    return lax.sub(total, stretch(lax.log(count), get_aval(total).shape))


@numpy_function(static_argnames=("axis",))
def softmax(x: ArrayLike, axis: Axis = -1, where: ArrayLike | None = None) -> Array:
    """exp(x) divided by its sum over the given axes.

    Args:
      x: array.
      axis: int, sequence of ints, or None for all axes. Names of mapped axes may be among them.
      where: boolean mask of the elements to include; others give 0. It and `x` broadcast.

    Returns:
      An array of the shape that the argument and the mask have together. Integers and booleans
      become the default float dtype; other dtypes stay.

    >>> import pyjx as jax
    >>> jax.nn.softmax(jax.numpy.array([1.0, 1.0])).tolist()
    [0.5, 0.5]

    Rows of probabilities, one for each example:

    >>> jax.nn.softmax(jax.numpy.zeros((2, 4)), axis=-1).sum(axis=-1).tolist()
    [1.0, 1.0]
    """
    where = check_where("softmax", where)
    x = strong(beside_mask("softmax", x, where))
    return _softmax_by_result(x, axis, where)


def _softmax(x: Value, axis: Axis, where: ArrayLike | None) -> Array:
    shape = get_aval(x).shape
    axes, names = axes_and_names(axis, len(shape))
    weights = lax.exp_p.bind(shifted(x, axes, names, where), accuracy=None)
    summed = weights if where is None else masked(where, weights, 0)
    out = lax.div_p.bind(weights, stretched_along(total_of(summed, axes, names), shape, axes))
    return out if where is None else masked(where, out, 0)


_softmax_by_result = custom_jvp(_softmax, nondiff_argnums=(1,))


# dy = y (dx - sum(y dx)), which cancels where y is rounded to 1. It is the same for dx less any
# number: less that of the result above 1/2, only small terms are left, in the transpose too.
@_softmax_by_result.defjvp
def _softmax_jvp(axis: Axis, primals: Values, tangents: Values) -> tuple[Array, Array]:
    (x, where), dx = primals, tangents[0]
    y = _softmax_by_result(x, axis, where)
    shape = get_aval(x).shape
    axes, names = axes_and_names(axis, len(shape))

    def summed(x: Value) -> Array:
        return stretched_along(total_of(x, axes, names), shape, axes)

    dx = lax.sub(dx, summed(masked(lax.gt(y, lax.full_like(y, 0.5)), dx, 0)))
    return y, lax.mul(y, lax.sub(dx, summed(lax.mul(y, dx))))


@numpy_function(static_argnames=("axis", "algorithm"))
def standardize(x: Any, axis: Axis = -1, mean: Any = None, variance: Any = None,
                epsilon: ArrayLike = 1e-5, where: Any = None, *, algorithm: str = "fast") -> Array:
    """(x - mean) / sqrt(variance + epsilon) over the given axes.

    Args:
      x: array.
      axis: int, sequence of ints, or None for all axes.
      mean, variance: with size 1 along the axes; computed from `x` by default.
      epsilon: added to the variance.
      where: boolean mask of the elements that mean and variance are computed from.
      algorithm: "fast" takes the variance as mean(x**2) - mean(x)**2; "stable" (slower, more
        precise) as mean((x - mean(x))**2).

    Returns:
      An array of the argument's shape. Integers and booleans become the default float dtype; other
      dtypes stay.

    >>> import pyjx as jax
    >>> jax.nn.standardize(jax.numpy.array([-1.0, 1.0]), epsilon=0.0).tolist()
    [-1.0, 1.0]
    """
    check_promotion(*operands("standardize", x, *[
        v for v in (mean, variance, epsilon) if v is not None]))
    if mean is None or variance is None:
        x = beside_constants(promote_inexact("standardize", x))
    else:
        (x,) = operands("standardize", x)
    where = check_where("standardize", where)
    if algorithm not in ("fast", "stable"):
        raise ValueError(f"standardize: algorithm must be 'fast' or 'stable', got {algorithm!r}")
    if mean is None:
        mean = reductions.mean_of(x, axis, None, True, where)
    if variance is None:
        if algorithm == "fast":
            square = reductions.mean_of(lax.square(x), axis, None, True, where)
            variance = ufuncs.subtract(square, ufuncs.square(mean))
            variance = lax.max(variance, literal(0.0, get_aval(variance).dtype))
        else:
            gap = ufuncs.subtract(x, mean)
            variance = reductions.mean_of(lax.square(gap), axis, None, True, where)
    scale = lax.rsqrt(promote_inexact("standardize", ufuncs.add(variance, epsilon)))
    return ufuncs.multiply(ufuncs.subtract(x, mean), scale)
