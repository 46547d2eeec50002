"""Functions that scale along axes: softmax and standardize.

`log_softmax` is among the logarithms of sums of exponentials: its derivative is that of its parts.
Softmax has a rule of its own, by its result, for which the custom derivatives are loaded.
"""

from __future__ import annotations

from typing import Any

from pyjx import lax
from pyjx.core.array_type import Array
from pyjx.core.avals import get_aval
from pyjx.engine.types import Value, Values
from pyjx.nn.exponentials import Axis, along, beside_mask, shifted, total_of
from pyjx.numpy import reductions, ufuncs
from pyjx.numpy.axes import axes_and_names
from pyjx.numpy.dispatch import numpy_function
from pyjx.numpy.operands import beside_constants
from pyjx.numpy.promotion import check_promotion, literal, operands, promote_inexact, strong
from pyjx.numpy.reductions import check_where, masked
from pyjx.transforms.custom_jvp import custom_jvp

__all__ = ["softmax", "standardize"]


@numpy_function(static_argnames=("axis",))
def softmax(x: Any, axis: Axis = -1, where: Any = None) -> Array:
    """exp(x) divided by its sum over the given axes.

    Args:
      x: array.
      axis: int, sequence of ints, or None for all axes. Names of mapped axes may be among them.
      where: boolean mask, broadcast against `x`, of the elements to include; others give 0.

    >>> import pyjx as jax
    >>> jax.nn.softmax(jax.numpy.array([1.0, 1.0])).tolist()
    [0.5, 0.5]
    """
    where = check_where("softmax", where)
    x = strong(beside_mask("softmax", x, where))
    return _softmax_by_result(x, axis, where)


def _softmax(x: Value, axis: Axis, where: Any) -> Value:
    shape = get_aval(x).shape
    axes, names = axes_and_names(axis, len(shape))
    weights = lax.exp_p.bind(shifted(x, axes, names, where), accuracy=None)
    summed = weights if where is None else masked(where, weights, 0)
    out = lax.div_p.bind(weights, along(total_of(summed, axes, names), shape, axes))
    return out if where is None else masked(where, out, 0)


_softmax_by_result = custom_jvp(_softmax, nondiff_argnums=(1,))


# dy = y (dx - sum(y dx)), which cancels where y is rounded to 1. It is the same for dx less any
# number: less that of the result above 1/2, only small terms are left, in the transpose too.
@_softmax_by_result.defjvp
def _softmax_jvp(axis: Axis, primals: Values, tangents: Values) -> tuple[Value, Value]:
    (x, where), dx = primals, tangents[0]
    y = _softmax_by_result(x, axis, where)
    shape = get_aval(x).shape
    axes, names = axes_and_names(axis, len(shape))

    def summed(x: Value) -> Value:
        return along(total_of(x, axes, names), shape, axes)

    dx = lax.sub(dx, summed(masked(lax.gt(y, lax.full_like(y, 0.5)), dx, 0)))
    return y, lax.mul(y, lax.sub(dx, summed(lax.mul(y, dx))))


@numpy_function(static_argnames=("axis", "algorithm"))
def standardize(x: Any, axis: Axis = -1, mean: Any = None, variance: Any = None,
                epsilon: Any = 1e-5, where: Any = None, *, algorithm: str = "fast") -> Array:
    """(x - mean) / sqrt(variance + epsilon) over the given axes.

    Args:
      x: array.
      axis: int, sequence of ints, or None for all axes.
      mean, variance: with size 1 along the axes; computed from `x` by default.
      epsilon: added to the variance.
      where: boolean mask of the elements that mean and variance are computed from.
      algorithm: "fast" takes the variance as mean(x**2) - mean(x)**2; "stable" (slower, more
        precise) as mean((x - mean(x))**2).

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
        raise ValueError("standardize: algorithm must be 'fast' or 'stable', got "
                         f"{algorithm!r}")
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
