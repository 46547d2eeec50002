"""What the functions take for matrices: arrays and nested lists, integers as floats."""

from __future__ import annotations

from typing import Any

from pyjx import lax
from pyjx import numpy as jnp
from pyjx.core import dtypes
from pyjx.core.avals import get_aval
from pyjx.numpy.promotion import convert, narrowed, operands, promote_dtypes_inexact


def arrays(name: str, *args: Any) -> list[Any]:
    """The arguments as arrays of their common dtype, which is inexact."""
    listed = [jnp.array(x) if isinstance(x, (list, tuple)) else x for x in args]
    xs = promote_dtypes_inexact(*operands(f"scipy.linalg.{name}", *listed))
    if name in ("cholesky", "lu_factor", "schur", "solve_triangular", "svd"):
        return xs
    return [narrowed(x) for x in xs]


def array(name: str, x: Any) -> Any:
    return arrays(name, x)[0]


def square(name: str, x: Any) -> Any:
    """The argument as matrices with as many rows as columns.

    Raises:
      ValueError: they have not, or there are no two axes.
    """
    x = array(name, x)
    shape = get_aval(x).shape
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise ValueError(f"{_SQUARE.get(name, f'{name}: expected square matrices [..., n, n]')}, "
                         f"got shape {shape}")
    return x


# What users match on, where it is of another form.
_SQUARE = {
    "cholesky": "The input to linalg.cholesky must have shape [..., n, n]",
    "sqrtm": "The input to schur must be a square matrix. Expected [..., n, n]",
    "hessenberg": "Argument to Hessenberg reduction must have shape [..., n, n]",
}


def as_complex(x: Any) -> Any:
    return convert(x, dtypes.to_complex_dtype(get_aval(x).dtype))


def as_columns(a: Any, b: Any, name: str) -> tuple[Any, bool]:
    """Right-hand sides `[..., n, k]`, and whether they were vectors: where there is one for each
    matrix, or one alone.

    Raises:
      ValueError: their rows are not those of the matrices.
    """
    x, y = get_aval(a), get_aval(b)
    vector = y.ndim == 1 or (y.ndim == x.ndim - 1 and y.shape[:-1] == x.shape[:-2])
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
