"""The primitive `optimization_barrier`: values that XLA may not see through."""

from __future__ import annotations

from typing import Any

from pyjx.core.explicit import entries_of
from pyjx.core.linearity import APART
from pyjx.core.primitive import Primitive, register
from pyjx.engine.tangents import Zero
from pyjx.engine.types import Dims, Operand, Tangents, Values


def _jvp(primals: Values, tangents: Tangents) -> Any:
    return optimization_barrier_p.bind(*primals), _barred(tangents)


def _transpose(cts: Tangents, *operands: Operand) -> list[Any]:
    return _barred(cts)


def _barred(tangents: Tangents) -> list[Any]:
    """Tangents or cotangents behind a barrier of their own, which holds up no primals."""
    known = [t for t in tangents if type(t) is not Zero]
    behind = iter(optimization_barrier_p.bind(*known) if known else ())
    return [t if type(t) is Zero else next(behind) for t in tangents]


def _batch(operands: Values, dims: Dims) -> Any:
    return optimization_barrier_p.bind(*operands), dims


optimization_barrier_p = register(Primitive(
    "optimization_barrier", moves=True, shape_rule=lambda *avals: avals,
    sharding_rule=lambda outs, *xs: list(map(entries_of, xs)), multiple_results=True, jvp=_jvp,
    transpose=_transpose, batch=_batch, linear=APART,
))
