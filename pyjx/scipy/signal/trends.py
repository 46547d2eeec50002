"""Removal of trends."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from pyjx import lax
from pyjx import numpy as jnp
from pyjx.core.array_type import Array
from pyjx.numpy.axes import canonical_axis
from pyjx.numpy.dispatch import numpy_function
from pyjx.numpy.promotion import promote_inexact
from pyjx.numpy.ufuncs import as_array
from pyjx.scipy.special.operands import weak_as


@numpy_function(static_argnames=("axis", "type", "bp", "overwrite_data"))
def detrend(data: Any, axis: int = -1, type: str = "linear", bp: Any = 0,
            overwrite_data: None = None) -> Array:
    """An array less its trend along an axis.

    Args:
      data: array.
      axis: int.
      type: "linear" takes the line of least squares away, "constant" the mean.
      bp: places where one line ends and the next begins.
      overwrite_data: not supported.

    Raises:
      NotImplementedError: `overwrite_data` is given.
      ValueError: the type is unknown, or a place is outside of the data.

    >>> import pyjx as jax
    >>> jax.scipy.signal.detrend(jax.numpy.array([1.0, 3.0]), type="constant").tolist()
    [-1.0, 1.0]
    """
    if overwrite_data is not None:
        raise NotImplementedError("overwrite_data argument not implemented.")
    if type not in ("constant", "linear"):
        raise ValueError("Trend type must be 'linear' or 'constant'.")
    x = as_array(promote_inexact("detrend", jnp.asarray(data)))
    if type == "constant":
        return x - x.mean(axis, keepdims=True)
    axis = canonical_axis(axis, x.ndim)
    size = x.shape[axis]
    places = np.unique(np.concatenate([[0], np.ravel(bp), [size]]).astype(int))
    if places[0] < 0 or places[-1] > size:
        raise ValueError("Breakpoints must be non-negative and less than length of data along "
                         "given axis.")
    x = jnp.moveaxis(x, axis, -1)
    parts = []
    for start, end in itertools.pairwise(places):
        part = x[..., start:end]
        line = np.stack([np.ones(end - start), np.arange(end - start)], 1)
        basis = jnp.asarray(np.linalg.qr(line[:, :end - start])[0], x.dtype)
        fitted = jnp.matmul(jnp.matmul(part, basis, precision=lax.Precision.HIGHEST), basis.T,
                            precision=lax.Precision.HIGHEST)
        # The line is of strong type; what is left of weakly typed data is weakly typed.
        parts.append(weak_as(part - fitted, x))
    return jnp.moveaxis(jnp.concatenate(parts, -1), -1, axis)
