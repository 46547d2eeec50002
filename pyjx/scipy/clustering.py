"""Vector quantization."""

from __future__ import annotations

from typing import Any

from pyjx import numpy as jnp
from pyjx.core.array_type import Array
from pyjx.numpy.operands import numpy_function
from pyjx.numpy.promotion import check_arraylike, promote_dtypes_inexact
from pyjx.numpy.ufuncs import as_array


@numpy_function(static_argnames=("check_finite",))
def vq(obs: Any, code_book: Any, check_finite: bool = True) -> tuple[Array, Array]:
    """The nearest code to each observation, by Euclidean distance.

    Args:
      obs: array of shape (m, n), or (m,) for n = 1.
      code_book: array of shape (k, n), or (k,).
      check_finite: for compatibility, without effect.

    Returns:
      `(codes, distances)`, arrays of shape (m,): an index into the code book, and how far it is.

    Raises:
      ValueError: the arrays have other ranks, or vectors of different lengths.

    >>> import pyjx as jax
    >>> codes, distances = jax.scipy.cluster.vq.vq(jax.numpy.array([0.1, 1.9]), jax.numpy.arange(3))
    >>> codes.tolist()
    [0, 2]
    """
    check_arraylike("scipy.cluster.vq.vq", obs, code_book)
    obs, code_book = (as_array(x) for x in promote_dtypes_inexact(obs, code_book))
    if obs.ndim != code_book.ndim:
        raise ValueError("Observation and code_book should have the same rank")
    if obs.ndim == 1:
        obs, code_book = obs[:, None], code_book[:, None]
    if obs.ndim != 2:
        raise ValueError("ndim different than 1 or 2 are not supported")
    if obs.shape[1] != code_book.shape[1]:
        raise ValueError("vq: expected observations and codes of one length, got shapes "
                         f"{obs.shape} and {code_book.shape}")
    squares = jnp.square(jnp.abs(obs[:, None, :] - code_book[None, :, :])).sum(-1)
    codes = jnp.argmin(squares, -1)
    return codes, jnp.sqrt(jnp.take_along_axis(squares, codes[:, None], -1)[:, 0])
