"""Student's t distribution of y = (x - loc)/scale.

Its density is (1 + y^2/df)^(-(df+1)/2)/(sqrt(df) B(1/2, df/2) scale).
"""

from __future__ import annotations

from pyjx import numpy as jnp
from pyjx.core.array_type import Array, ArrayLike
from pyjx.lazy import directory
from pyjx.numpy.dispatch import numpy_function
from pyjx.scipy.special.gammas import betaln_of
from pyjx.scipy.special.operands import strong_of_arrays, weak_as
from pyjx.scipy.stats.parameters import reals

__all__ = ["logpdf", "pdf"]
__dir__ = directory(__name__, __all__)


@numpy_function
@strong_of_arrays
def logpdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The logarithm of the density.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.t.logpdf(0.5, 3.0)), 3)
    -1.161
    """
    x, df, loc, scale = reals("t.logpdf", x, df, loc, scale)
    y = (x - loc) / scale
    norm = betaln_of(jnp.full_like(df, 0.5), df / 2) + jnp.log(df) / 2 + jnp.log(scale)
    return weak_as(-(df + 1) / 2 * jnp.log1p(y * y / df) - norm, x, df, loc, scale)


@numpy_function
@strong_of_arrays
def pdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.t.pdf(0.5, 3.0)), 3)
    0.313
    """
    return jnp.exp(logpdf(x, df, loc, scale))
