"""`jax._src.lax.linalg`: the names of `jax.lax.linalg`, and what they are built on."""

from __future__ import annotations

from typing import Any

import pyjx.lax.linalg
from pyjx.core.avals import get_aval
from pyjx.lax.linalg.general_systems import solve_factored
from pyjx.lax.linalg.matrices import as_column
from pyjx.lax.linalg.matrices import symmetrized as symmetrize
from pyjx.lax.linalg.reflectors import geqp3_p, geqrf_p

__all__ = ["geqp3", "geqp3_p", "geqrf", "geqrf_p", "lu_solve", "symmetrize"]


def geqrf(a: Any) -> tuple[Any, Any]:
    """The QR decomposition as R, with the reflections whose product is Q below it, and factors."""
    packed, taus = geqrf_p.bind(a)
    return packed, taus


def geqp3(a: Any, jpvt: Any, *, use_magma: bool | None = None) -> tuple[Any, Any, Any]:
    """As `geqrf`, with the columns ordered: what it gives, with their order, from 1, as second."""
    packed, order, taus = geqp3_p.bind(a, jpvt, use_magma=use_magma)
    return packed, order + 1, taus


def lu_solve(lu: Any, permutation: Any, b: Any, trans: int = 0) -> Any:
    """The x with a x = b, by the factors of `a` and the order of its rows.

    Args:
      trans: 0 for a x = b, 1 for a^T x = b, 2 for a^H x = b.
    """
    vector = get_aval(b).ndim == 1
    x = solve_factored(lu, permutation, as_column(b) if vector else b, transpose=trans > 0,
                       conjugate=trans == 2)
    return x[..., 0] if vector else x


def __getattr__(name: str) -> Any:
    return getattr(pyjx.lax.linalg, name)
