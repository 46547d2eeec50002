"""Arguments of linear algebra: arrays and nested lists as matrices, integers as floats."""

from __future__ import annotations

from typing import Any

from pyjx import lax
from pyjx import numpy as jnp
from pyjx.core import dtypes
from pyjx.core.array_type import ArrayLike
from pyjx.core.avals import get_aval
from pyjx.core.frames import warn
from pyjx.core.value_texts import is_like_array
from pyjx.numpy.promotion import convert, narrowed, operands, promote_dtypes_inexact


def arrays(name: str, *args: Any) -> list[Any]:
    """The arguments as arrays of their common dtype, an inexact one that the flags allow."""
    return list(map(narrowed, wide_arrays(name, *args)))


def wide_arrays(name: str, *args: Any) -> list[Any]:
    """`arrays` that stay of 64 bits where one is, whatever the flags say."""
    listed = [jnp.array(x) if isinstance(x, (list, tuple)) and (not x or is_like_array([*x])) else x
              for x in args]
    return promote_dtypes_inexact(*operands(f"scipy.linalg.{name}", *listed))


def array(name: str, x: ArrayLike) -> Any:
    return arrays(name, x)[0]


def wide_array(name: str, x: ArrayLike) -> Any:
    return wide_arrays(name, x)[0]


def as_complex(x: ArrayLike) -> Any:
    return convert(x, dtypes.to_complex_dtype(get_aval(x).dtype))


def as_columns(a: ArrayLike, b: ArrayLike, name: str, deprecated: bool = True) -> tuple[Any, bool]:
    """Right-hand sides `[..., n, k]`, and whether they were vectors: where there is one for each
    matrix, or one alone.

    Raises:
      ValueError: their rows are not those of the matrices.
    """
    x, y = get_aval(a), get_aval(b)
    batched = 1 < y.ndim == x.ndim - 1 and x.shape[-1] == y.shape[-1] and all(
        [m == n or 1 in (m, n) for m, n in zip(x.shape[:-2], y.shape[:-1], strict=True)])
    if batched and deprecated:
        warn(f"jax.scipy.linalg.{name}: batched 1D solves with b.ndim > 1 are deprecated; b will "
             "be taken for matrices. Give b[..., None], and take .squeeze(-1) of the result.",
             FutureWarning)
    vector = batched or y.ndim == 1
    if vector:
        b = lax.expand_dims(b, (y.ndim,))
    rows = get_aval(b).shape[-2] if y.ndim else None
    if rows != x.shape[-2]:
        raise ValueError(f"{name}: the right-hand side must have {x.shape[-2]} rows, got shapes "
                         f"{x.shape} and {y.shape}")
    return b, vector


def stretched(*matrices: Any) -> list[Any]:
    """Matrices with their batch axes broadcast."""
    shapes = [get_aval(x).shape for x in matrices]
    lead = lax.broadcast_shapes(*[s[:-2] for s in shapes])
    return [jnp.broadcast_to(x, (*lead, *s[-2:])) for x, s in zip(matrices, shapes, strict=True)]
