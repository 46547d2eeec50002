"""Activation functions, elementwise. Arguments of integer dtype become floats where the function
has other than integer values."""

from __future__ import annotations

import math
from typing import Any

from pyjx import lax
from pyjx import numpy as jnp
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import get_aval
from pyjx.engine.types import Value
from pyjx.numpy import ufuncs
from pyjx.numpy.operands import canonical_axis, is_complex, is_inexact, numpy_function
from pyjx.numpy.promotion import (
    check_promotion,
    convert,
    literal,
    operands,
    promote_args_as_floats,
    promote_args_inexact,
    promote_dtypes_numeric,
    promote_inexact,
    strong,
)
from pyjx.runtime.operations import body_of
from pyjx.transforms.custom_jvp import custom_jvp


def like(x: ArrayLike, value: float) -> Any:
    """The number `value` as a scalar of the dtype of `x`; weakly typed if it can be."""
    return literal(value, get_aval(x).dtype, True)


def weak_float(name: str, x: ArrayLike) -> Any:
    """The argument of the function `name`; other numbers become floats of weak type, as beside a
    Python float."""
    (x,) = operands(name, x)
    return x if is_inexact(x) else convert(x, dtypes.default_float_dtype(), True)


def weak_int(name: str, x: ArrayLike) -> Any:
    """The argument of the function `name`; booleans become integers of weak type."""
    (x,) = operands(name, x)
    boolean = get_aval(x).dtype == dtypes.bool_dtype
    return convert(x, dtypes.default_int_dtype(), True) if boolean else x


# Primitives that take scalars beside arrays as they are, for the functions models call most.


def _times(x: Value, y: Value) -> Array:
    return lax.mul_p.bind(x, y, out_dtype=None)


# In a product with a sigmoid function that function is beside its slope in the derivative, so what
# is rounded away in their sum need not be right in the slope.
_usual = lax.AccuracyMode.DEFAULT


@numpy_function
def sigmoid(x: ArrayLike) -> Array:
    """1 / (1 + exp(-x)), elementwise.

    >>> import pyjx as jax
    >>> float(jax.nn.sigmoid(0.0))
    0.5
    """
    return lax.logistic(promote_inexact("sigmoid", x))


@custom_jvp
def _softplus(x: Value) -> Array:
    rest = lax.log1p(lax.exp(lax.neg(lax.abs(x))))
    return lax.add(lax.max(x, like(x, 0.0)), rest)


_softplus.defjvps(lambda g, out, x: _times(g, lax.logistic(x)))
_softplus.__name__ = "softplus"


def _log_of_one_more(x: Value) -> Array:
    """log(1 + exp(x)); complex numbers are brought to the main branch."""
    return jnp.logaddexp(x, like(x, 0.0)) if is_complex(x) else _softplus(x)


@numpy_function
def softplus(x: ArrayLike) -> Array:
    """log(1 + exp(x)), elementwise.

    >>> import pyjx as jax
    >>> round(float(jax.nn.softplus(0.0)), 4)
    0.6931
    """
    return _log_of_one_more(promote_inexact("softplus", weak_int("softplus", x)))


@numpy_function
def sparse_plus(x: ArrayLike) -> Array:
    """0 below -1, x above 1, (x + 1)**2 / 4 between, elementwise.

    >>> import pyjx as jax
    >>> jax.nn.sparse_plus(jax.numpy.array([-2.0, 0.0, 2.0])).tolist()
    [0.0, 0.25, 2.0]
    """
    x = weak_float("sparse_plus", x)
    curve = lax.div(lax.integer_pow(lax.add(x, like(x, 1.0)), 2), like(x, 4.0))
    return ufuncs.where(ufuncs.less_equal(x, like(x, -1.0)), like(x, 0.0),
                        ufuncs.where(ufuncs.greater_equal(x, like(x, 1.0)), x, curve))


@numpy_function
def sparse_sigmoid(x: ArrayLike) -> Array:
    """The derivative of `sparse_plus`: 0 below -1, 1 above 1, (x + 1) / 2 between, elementwise.

    >>> import pyjx as jax
    >>> jax.nn.sparse_sigmoid(jax.numpy.array([-2.0, 0.0, 2.0])).tolist()
    [0.0, 0.5, 1.0]
    """
    x = weak_float("sparse_sigmoid", x)
    clipped = ufuncs.clip(lax.add(x, like(x, 1.0)), 0.0, 2.0)
    return lax.mul(like(clipped, 0.5), clipped)


def _soft_sign(x: Value) -> Array:
    return ufuncs.divide(x, _one_more(x))


def _one_more(x: Value) -> Array:
    return ufuncs.add(ufuncs.absolute(x), 1.0)


# 1 / (1 + |x|)**2; that of the quotient is a difference, of which nothing is left for large x.
_of_reals = custom_jvp(_soft_sign)
_of_reals.defjvps(lambda g, out, x: lax.div(lax.div(g, _one_more(x)), _one_more(x)))


@numpy_function
def soft_sign(x: ArrayLike) -> Array:
    """x / (|x| + 1), elementwise.

    >>> import pyjx as jax
    >>> float(jax.nn.soft_sign(1.0))
    0.5
    """
    x = promote_inexact("soft_sign", weak_int("soft_sign", x))
    return (_soft_sign if is_complex(x) else _of_reals)(x)


@numpy_function
def silu(x: ArrayLike) -> Array:
    """x * sigmoid(x), elementwise; also called swish.

    >>> import pyjx as jax
    >>> float(jax.nn.silu(0.0))
    0.0
    """
    x = promote_inexact("silu", x)
    return _times(x, lax.logistic_p.bind(x, accuracy=_usual))


swish = silu


@numpy_function
def mish(x: ArrayLike) -> Array:
    """x * tanh(softplus(x)), elementwise (Misra 2019, arXiv:1908.08681).

    >>> import pyjx as jax
    >>> float(jax.nn.mish(0.0))
    0.0
    """
    x = promote_inexact("mish", weak_int("mish", x))
    return lax.mul(x, lax.tanh(_log_of_one_more(x), accuracy=_usual))


@numpy_function
def log_sigmoid(x: ArrayLike) -> Array:
    """log(sigmoid(x)) = -softplus(-x), elementwise.

    >>> import pyjx as jax
    >>> round(float(jax.nn.log_sigmoid(0.0)), 4)
    -0.6931
    """
    x = promote_inexact("log_sigmoid", x)
    return lax.neg(_log_of_one_more(lax.neg(x)))


_root_two_over_pi = math.sqrt(2 / math.pi)


def _gelu_tanh(x: Value) -> Array:
    cubic = lax.add_p.bind(x, _times(like(x, 0.044715), lax.integer_pow_p.bind(x, y=3)))
    inner = lax.tanh_p.bind(_times(like(x, _root_two_over_pi), cubic), accuracy=_usual)
    return _times(x, _times(like(x, 0.5), lax.add_p.bind(like(x, 1.0), inner)))


def _gelu_exact(x: Value) -> Array:
    half = lax.mul(like(x, 0.5), x)
    return lax.mul(half, lax.erfc(lax.mul(lax.neg(x), like(x, math.sqrt(0.5)))))


@numpy_function(static_argnames=("approximate",))
def gelu(x: ArrayLike, approximate: bool = True) -> Array:
    """x * P(N <= x) for N of the standard normal distribution, elementwise.

    Args:
      x: array.
      approximate: use x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))) and not erf
        (Hendrycks and Gimpel 2016, arXiv:1606.08415).

    Returns:
      An array of the argument's shape. Integers and booleans become the default float dtype; other
      dtypes stay.

    >>> import pyjx as jax
    >>> float(jax.nn.gelu(0.0))
    0.0
    >>> [round(x, 3) for x in jax.nn.gelu(jax.numpy.array([-1.0, 1.0]), approximate=False).tolist()]
    [-0.159, 0.841]
    """
    (x,) = promote_args_as_floats("gelu", x)
    x = strong(x)
    return _gelu_tanh(x) if approximate else _gelu_exact(x)


@numpy_function(static_argnames=("axis",))
def glu(x: ArrayLike, axis: int = -1) -> Array:
    """The first half of `x` along an axis times the sigmoid of the second half (arXiv:1612.08083).

    Returns:
      An array of half the size along the axis. Integers become the default float dtype.

    Raises:
      AssertionError: the axis has an odd size.

    >>> import pyjx as jax
    >>> jax.nn.glu(jax.numpy.array([2.0, 0.0])).tolist()
    [1.0]
    """
    x = promote_inexact("glu", x)
    aval = get_aval(x)
    axis = canonical_axis(axis, aval.ndim)
    size = aval.shape[axis]
    if size % 2:
        raise AssertionError(f"glu: axis size must be divisible by 2, got size {size} of axis "
                             f"{axis} of shape {aval.shape}.")
    first, second = lax.split(x, [size // 2, size // 2], axis)
    return lax.mul(first, lax.logistic(second, accuracy=_usual))


@numpy_function
def squareplus(x: ArrayLike, b: ArrayLike = 4) -> Array:
    """(x + sqrt(x**2 + b)) / 2, elementwise (Barron 2021, arXiv:2112.11687).

    Returns:
      An array of the argument's shape. Integers and booleans become the default float dtype; other
      dtypes stay.

    >>> import pyjx as jax
    >>> float(jax.nn.squareplus(0.0))
    1.0
    """
    check_promotion(*operands("squareplus", x, b))
    (x,) = promote_dtypes_numeric(*operands("squareplus", x))
    x, b = promote_args_inexact("squareplus", x, b)
    root = ufuncs.sqrt(ufuncs.add(lax.square(x), b))
    return ufuncs.divide(ufuncs.add(x, root), 2)


@numpy_function
def tanh(x: ArrayLike, /) -> Array:
    """The hyperbolic tangent, elementwise.

    >>> import pyjx as jax
    >>> float(jax.nn.tanh(0.0))
    0.0
    """
    return lax.tanh(promote_inexact("tanh", x))


@numpy_function
def identity(x: ArrayLike) -> Array:
    """`x` as it is, as an array.

    >>> import pyjx as jax
    >>> float(jax.nn.identity(3.0))
    3.0
    """
    return operands("identity", x)[0]


# log((1 - e^-x)/x) + x/2 by powers of x^2: B_2n/(2n (2n)!) with Bernoulli's numbers
_MEAN_SLOPE = (1 / 24, -1 / 2880, 1 / 181440, -1 / 9676800, 1 / 479001600, -4.403491782239578e-11,
               9.558954664774772e-13, -2.1185501852016142e-14)


@custom_jvp
def _log1mexp(x: Value) -> Array:
    # one logarithm, with what its argument lacks added
    near, square = ufuncs.less(lax.abs(x), math.log(2.0)), lax.mul(x, x)
    terms = _MEAN_SLOPE[:3 if dtypes.finfo(get_aval(x).dtype).eps > 1e-10 else None]
    series = lax.sub(lax.mul(square, lax.polynomial(square, terms)), lax.mul(x, like(x, 0.5)))
    rest = lax.exp(lax.neg(x))
    kept = lax.sub(like(x, 1.0), rest)
    lost = lax.sub(lax.sub(like(x, 1.0), kept), rest)
    return lax.add(lax.log(ufuncs.where(near, x, kept)), ufuncs.where(near, series, lost))


@custom_jvp
def _slope(x: Value) -> Array:
    """s = 1/(e^x - 1), of which the derivative as -s (1 + s) does not overflow where e^x does."""
    return lax.div(like(x, 1.0), lax.expm1(x))


_slope.defjvps(lambda g, s, x: lax.neg(lax.mul(g, lax.add(s, lax.mul(s, s)))))
_log1mexp.defjvps(lambda g, out, x: lax.mul(g, _slope(x)))
_log1mexp.__name__ = "log1mexp"


@numpy_function
def log1mexp(x: ArrayLike) -> Array:
    """log(1 - exp(-x)) for x > 0, elementwise, precise for small and large x (Maechler 2012).

    >>> import pyjx as jax
    >>> round(float(jax.nn.log1mexp(1.0)), 4)
    -0.4587
    """
    return _log1mexp(promote_inexact("log1mexp", x))


def _passed(g: Value, open_at: Any) -> Array:
    """The tangent `g` where the mask is true, 0 elsewhere."""
    return lax.select(open_at, g, lax.full_like(g, 0))


def _between(x: Value, low: float, high: float) -> Any:
    return lax.bitwise_and(_above(x, low), ufuncs.less(x, like(x, high)))


def _above(x: Value, low: float) -> Any:
    return ufuncs.greater(x, like(x, low))


@custom_jvp
def _relu(x: Value) -> Array:
    return lax.max(x, like(x, 0))


_relu.defjvps(lambda g, out, x: _passed(g, _above(x, 0)))
_relu.__name__ = "relu"


@numpy_function
def relu(x: ArrayLike) -> Array:
    """max(x, 0), elementwise. Its derivative at 0 is 0.

    >>> import pyjx as jax
    >>> jax.nn.relu(jax.numpy.array([-1.0, 2.0])).tolist()
    [0.0, 2.0]
    """
    return _relu(weak_int("relu", x))


@custom_jvp
def _relu6(x: Value) -> Array:
    return lax.min(lax.max(x, like(x, 0)), like(x, 6))


_relu6.defjvps(lambda g, out, x: _passed(g, _between(x, 0, 6)))
_relu6.__name__ = "relu6"


@numpy_function
def relu6(x: ArrayLike) -> Array:
    """min(max(x, 0), 6), elementwise. Its derivative at 0 and at 6 is 0.

    >>> import pyjx as jax
    >>> jax.nn.relu6(jax.numpy.array([-1.0, 9.0])).tolist()
    [0.0, 6.0]
    """
    return _relu6(weak_float("relu6", x))


@numpy_function
def elu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """x where x > 0, alpha * (exp(x) - 1) elsewhere, elementwise.

    Returns:
      An array of the argument's shape. Integers and booleans become the default float dtype; other
      dtypes stay.

    >>> import pyjx as jax
    >>> jax.nn.elu(jax.numpy.array([0.0, 2.0])).tolist()
    [0.0, 2.0]
    """
    check_promotion(*operands("elu", x, alpha))
    x = weak_float("elu", x)
    positive = ufuncs.greater(x, like(x, 0.0))
    # The masked x keeps exp, and so its derivative, finite where it is not used.
    safe = ufuncs.where(positive, like(x, 0.0), x)
    return ufuncs.where(positive, x, ufuncs.multiply(alpha, lax.expm1(safe)))


@numpy_function
def leaky_relu(x: ArrayLike, negative_slope: ArrayLike = 0.01) -> Array:
    """x where x >= 0, negative_slope * x elsewhere, elementwise.

    Returns:
      An array of the argument's shape. Integers and booleans become the default float dtype; other
      dtypes stay.

    >>> import pyjx as jax
    >>> jax.nn.leaky_relu(jax.numpy.array([-1.0, 2.0]), 0.5).tolist()
    [-0.5, 2.0]
    """
    (x,) = operands("leaky_relu", x)
    return ufuncs.where(ufuncs.greater_equal(x, like(x, 0)), x, ufuncs.multiply(negative_slope, x))


@numpy_function
def hard_tanh(x: ArrayLike) -> Array:
    """-1 below -1, 1 above 1, x between, elementwise.

    >>> import pyjx as jax
    >>> jax.nn.hard_tanh(jax.numpy.array([-3.0, 0.5])).tolist()
    [-1.0, 0.5]
    """
    x = weak_int("hard_tanh", x)
    low = ufuncs.where(ufuncs.less(x, like(x, -1)), like(x, -1), x)
    return ufuncs.where(ufuncs.greater(x, like(x, 1)), like(x, 1), low)


@numpy_function
def celu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """max(x, 0) + alpha * (exp(min(x, 0) / alpha) - 1), elementwise (arXiv:1704.07483).

    Returns:
      An array of the argument's shape. Integers and booleans become the default float dtype; other
      dtypes stay.

    >>> import pyjx as jax
    >>> jax.nn.celu(jax.numpy.array([0.0, 2.0])).tolist()
    [0.0, 2.0]
    """
    check_promotion(*operands("celu", x, alpha))
    x = weak_float("celu", x)
    below = ufuncs.expm1(ufuncs.divide(lax.min(x, like(x, 0.0)), alpha))
    return ufuncs.add(lax.max(x, like(x, 0.0)), ufuncs.multiply(alpha, below))


@numpy_function
def selu(x: ArrayLike) -> Array:
    """Scaled `elu`, which keeps mean 0 and variance 1 (Klambauer et al. 2017, arXiv:1706.02515).

    >>> import pyjx as jax
    >>> round(float(jax.nn.selu(1.0)), 4)
    1.0507
    """
    x = weak_float("selu", x)
    alpha, scale = 1.6732632423543772, 1.0507009873554805
    out = body_of(elu)(x, alpha)
    return lax.mul(like(out, scale), out)


@numpy_function
def hard_sigmoid(x: ArrayLike) -> Array:
    """relu6(x + 3) / 6, elementwise.

    >>> import pyjx as jax
    >>> float(jax.nn.hard_sigmoid(0.0))
    0.5
    """
    x = weak_float("hard_sigmoid", x)
    return lax.div(_relu6(lax.add(x, like(x, 3.0))), like(x, 6.0))


@numpy_function
def hard_silu(x: ArrayLike) -> Array:
    """x * hard_sigmoid(x), elementwise; also called hard swish.

    >>> import pyjx as jax
    >>> float(jax.nn.hard_silu(3.0))
    3.0
    """
    x = weak_float("hard_silu", x)
    return lax.mul(x, body_of(hard_sigmoid)(x))


hard_swish = hard_silu
