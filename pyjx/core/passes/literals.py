"""Captured arrays written where they are used, for who reads a program."""

from __future__ import annotations

import numpy as np

from pyjx import configuration
from pyjx.core import dtypes
from pyjx.core.array_type import Array
from pyjx.core.evaluation import replaced
from pyjx.core.jaxpr import Atom, ClosedJaxpr, Literal
from pyjx.core.trace import Tracer


def shown(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program as users get it: in which form its constants are is a setting."""
    return with_literals(closed) if configuration.use_simplified_jaxpr_constants.value else closed


def with_literals(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program with its constants as literals at their uses; keys, references and values of
    programs around it stay constants."""
    written: dict[Atom, Atom] = {
        v: Literal(x, v.aval) for v, x in zip(closed.constvars, closed.consts, strict=True)
        if isinstance(x, (Array, np.ndarray, np.generic)) and not isinstance(x, Tracer)
        and not dtypes.is_extended(v.aval.dtype)}
    if not written:
        return closed
    kept = [(v, x) for v, x in zip(closed.constvars, closed.consts, strict=True)
            if v not in written]
    jaxpr = closed.jaxpr.replace(
        constvars=[v for v, _ in kept],
        eqns=[e.replace(invars=replaced(e.invars, written)) for e in closed.eqns],
        outvars=replaced(closed.outvars, written))
    return ClosedJaxpr(jaxpr, [x for _, x in kept])
