"""The logarithm of the complement of a probability."""

from __future__ import annotations

import math
from typing import Any

from pyjx import lax
from pyjx.core.array_type import Array
from pyjx.engine.types import Value
from pyjx.nn.activations import like
from pyjx.numpy import ufuncs
from pyjx.numpy.dispatch import numpy_function
from pyjx.numpy.promotion import promote_inexact
from pyjx.transforms.custom_jvp import custom_jvp

__all__ = ["log1mexp"]


@custom_jvp
def _log1mexp(x: Value) -> Value:
    small = lax.log(lax.neg(lax.expm1(lax.neg(x))))
    large = lax.log1p(lax.neg(lax.exp(lax.neg(x))))
    return ufuncs.where(ufuncs.less(x, like(x, math.log(2.0))), small, large)


def _tangent(g: Value, out: Value, x: Value) -> Value:
    # 1/(e^x - 1) as e^-x/(1 - e^-x), whose derivatives do not overflow
    less = lax.neg(x)
    return lax.neg(lax.div(lax.mul(g, lax.exp(less)), lax.expm1(less)))


_log1mexp.defjvps(_tangent)
_log1mexp.__name__ = "log1mexp"


@numpy_function
def log1mexp(x: Any) -> Array:
    """log(1 - exp(-x)) for x > 0, elementwise, precise for small and large x (Maechler 2012).

    >>> import pyjx as jax
    >>> round(float(jax.nn.log1mexp(1.0)), 4)
    -0.4587
    """
    return _log1mexp(promote_inexact("log1mexp", x))
