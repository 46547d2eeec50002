"""The chi-squared distribution: twice a variable of the gamma distribution with a = df/2."""

from __future__ import annotations

from typing import Any

from pyjx import numpy as jnp
from pyjx.core.array_type import Array, ArrayLike
from pyjx.lazy import directory
from pyjx.numpy.dispatch import numpy_function
from pyjx.numpy.promotion import operands, promote_dtypes_as_floats
from pyjx.scipy.special.operands import strong_of, strong_of_arrays, strong_of_first
from pyjx.scipy.stats import gamma

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]
__dir__ = directory(__name__, __all__)


def _as_gamma(name: str, x: Array, df: Array, loc: Array, scale: Array) -> tuple[Any, ...]:
    """The arguments of the gamma distribution, of the type that all of them have together."""
    x, df, loc, scale = promote_dtypes_as_floats(*operands(f"chi2.{name}", x, df, loc, scale))
    return x, df / 2, loc, 2 * scale


@numpy_function
@strong_of_arrays
def logpdf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the density.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.chi2.logpdf(1.5, 3.0)), 3)
    -1.466
    """
    return gamma.logpdf(*_as_gamma("logpdf", x, df, loc, scale))


@numpy_function
@strong_of_arrays
def pdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """The density.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.chi2.pdf(1.5, 3.0)), 3)
    0.231
    """
    return jnp.exp(logpdf(x, df, loc, scale))


@numpy_function
@strong_of("scale")
@strong_of_first
def cdf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The probability of values up to x.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.chi2.cdf(1.5, 3.0)), 3)
    0.318
    """
    return gamma.cdf(*_as_gamma("cdf", x, df, loc, scale))


@numpy_function
@strong_of("scale")
@strong_of_first
def logcdf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of `cdf`.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.chi2.logcdf(1.5, 3.0)), 3)
    -1.147
    """
    return gamma.logcdf(*_as_gamma("logcdf", x, df, loc, scale))


@numpy_function
@strong_of("scale")
@strong_of_first
def sf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The probability of values above x: 1 - `cdf`.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.chi2.sf(1.5, 3.0)), 3)
    0.682
    """
    return gamma.sf(*_as_gamma("sf", x, df, loc, scale))


@numpy_function
@strong_of("scale")
@strong_of_first
def logsf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of `sf`.

    >>> import pyjx as jax
    >>> round(float(jax.scipy.stats.chi2.logsf(1.5, 3.0)), 3)
    -0.382
    """
    return gamma.logsf(*_as_gamma("logsf", x, df, loc, scale))
