"""Results that are not numbers, which the flags `debug_nans` and `debug_infs` make errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pyjx import configuration
from pyjx.core import dtypes
from pyjx.core.evaluation import eval_jaxpr
from pyjx.core.jaxpr import ClosedJaxpr
from pyjx.runtime.array import ArrayImpl


def checks_results() -> bool:
    """Whether the results of each program are looked at; then none takes the C++ path."""
    return bool(configuration.debug_nans.value or configuration.debug_infs.value)


def check_results(closed: ClosedJaxpr, name: str, args: Sequence[Any], outs: Sequence[Any]
                  ) -> None:
    """Raise FloatingPointError if a result is NaN (`debug_nans`) or infinite (`debug_infs`).

    The program is run once more, operation by operation, to say which one made it.
    """
    kind = next(filter(None, map(not_a_number, outs)), None)
    if kind is None:
        return
    eqns = closed.eqns
    if len(eqns) == 1 and eqns[0].primitive.impl is None:
        name = eqns[0].primitive.name
    elif eqns and not any(getattr(x, "is_deleted", bool)() for x in args):
        eval_jaxpr(closed.jaxpr, closed.consts, *args)
    raise FloatingPointError(f"invalid value ({kind}) encountered in {name}")


def not_a_number(x: Any) -> str | None:
    """"nan" or "inf" if a flag forbids elements of an array that are."""
    if type(x) is not ArrayImpl or not dtypes.issubdtype(x.dtype, np.inexact):
        return None
    values = np.asarray(x)
    if configuration.debug_nans.value and np.isnan(values).any():
        return "nan"
    if configuration.debug_infs.value and np.isinf(values).any():
        return "inf"
    return None
