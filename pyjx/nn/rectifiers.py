"""Activation functions that are linear in pieces, or where their argument is positive. Arguments of
integer dtype become floats where the function has other than integer values."""

from __future__ import annotations

from typing import Any

from pyjx import lax
from pyjx.core.array_type import Array
from pyjx.engine.types import Tangent, Value
from pyjx.nn.activations import like, weak_float, weak_int
from pyjx.numpy import ufuncs
from pyjx.numpy.dispatch import numpy_function
from pyjx.numpy.promotion import check_promotion, operands
from pyjx.transforms.custom_jvp import custom_jvp

__all__ = [
    "celu", "elu", "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh", "leaky_relu", "relu",
    "relu6", "selu",
]


def _passed(g: Tangent, open_at: Any) -> Value:
    """The tangent `g` where the mask is true, 0 elsewhere."""
    return lax.select(open_at, g, lax.full_like(g, 0))


def _between(x: Value, low: float, high: float) -> Any:
    return lax.bitwise_and(_above(x, low), ufuncs.less(x, like(x, high)))


def _above(x: Value, low: float) -> Any:
    return ufuncs.greater(x, like(x, low))


@custom_jvp
def _relu(x: Value) -> Value:
    return lax.max(x, like(x, 0))


_relu.defjvps(lambda g, out, x: _passed(g, _above(x, 0)))
_relu.__name__ = "relu"


@numpy_function
def relu(x: Any) -> Array:
    """max(x, 0), elementwise. Its derivative at 0 is 0.

    >>> import pyjx as jax
    >>> jax.nn.relu(jax.numpy.array([-1.0, 2.0])).tolist()
    [0.0, 2.0]
    """
    return _relu(weak_int("relu", x))


@custom_jvp
def _relu6(x: Value) -> Value:
    return lax.min(lax.max(x, like(x, 0)), like(x, 6))


_relu6.defjvps(lambda g, out, x: _passed(g, _between(x, 0, 6)))
_relu6.__name__ = "relu6"


@numpy_function
def relu6(x: Any) -> Array:
    """min(max(x, 0), 6), elementwise. Its derivative at 0 and at 6 is 0.

    >>> import pyjx as jax
    >>> jax.nn.relu6(jax.numpy.array([-1.0, 9.0])).tolist()
    [0.0, 6.0]
    """
    return _relu6(weak_float("relu6", x))


@numpy_function
def elu(x: Any, alpha: Any = 1.0) -> Array:
    """x where x > 0, alpha * (exp(x) - 1) elsewhere, elementwise.

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
def leaky_relu(x: Any, negative_slope: Any = 0.01) -> Array:
    """x where x >= 0, negative_slope * x elsewhere, elementwise.

    >>> import pyjx as jax
    >>> jax.nn.leaky_relu(jax.numpy.array([-1.0, 2.0]), 0.5).tolist()
    [-0.5, 2.0]
    """
    (x,) = operands("leaky_relu", x)
    return ufuncs.where(ufuncs.greater_equal(x, like(x, 0)), x, ufuncs.multiply(negative_slope, x))


@numpy_function
def hard_tanh(x: Any) -> Array:
    """-1 below -1, 1 above 1, x between, elementwise.

    >>> import pyjx as jax
    >>> jax.nn.hard_tanh(jax.numpy.array([-3.0, 0.5])).tolist()
    [-1.0, 0.5]
    """
    x = weak_int("hard_tanh", x)
    low = ufuncs.where(ufuncs.less(x, like(x, -1)), like(x, -1), x)
    return ufuncs.where(ufuncs.greater(x, like(x, 1)), like(x, 1), low)


@numpy_function
def celu(x: Any, alpha: Any = 1.0) -> Array:
    """max(x, 0) + alpha * (exp(min(x, 0) / alpha) - 1), elementwise (arXiv:1704.07483).

    >>> import pyjx as jax
    >>> jax.nn.celu(jax.numpy.array([0.0, 2.0])).tolist()
    [0.0, 2.0]
    """
    check_promotion(*operands("celu", x, alpha))
    x = weak_float("celu", x)
    below = ufuncs.expm1(ufuncs.divide(lax.min(x, like(x, 0.0)), alpha))
    return ufuncs.add(lax.max(x, like(x, 0.0)), ufuncs.multiply(alpha, below))


@numpy_function
def selu(x: Any) -> Array:
    """Scaled `elu`, which keeps mean 0 and variance 1 (Klambauer et al. 2017, arXiv:1706.02515).

    >>> import pyjx as jax
    >>> round(float(jax.nn.selu(1.0)), 4)
    1.0507
    """
    x = weak_float("selu", x)
    alpha, scale = 1.6732632423543772, 1.0507009873554805
    out = elu.__wrapped__(x, alpha)
    return lax.mul(like(out, scale), out)


@numpy_function
def hard_sigmoid(x: Any) -> Array:
    """relu6(x + 3) / 6, elementwise.

    >>> import pyjx as jax
    >>> float(jax.nn.hard_sigmoid(0.0))
    0.5
    """
    x = weak_float("hard_sigmoid", x)
    return lax.div(_relu6(lax.add(x, like(x, 3.0))), like(x, 6.0))


@numpy_function
def hard_silu(x: Any) -> Array:
    """x * hard_sigmoid(x), elementwise; also called hard swish.

    >>> import pyjx as jax
    >>> float(jax.nn.hard_silu(3.0))
    3.0
    """
    x = weak_float("hard_silu", x)
    return lax.mul(x, hard_sigmoid.__wrapped__(x))


hard_swish = hard_silu
