"""What XLA's compiler for CPU can do with floats of 6 bits: it moves them and converts to them.
Asked for anything else it fails, or ends the process."""

from __future__ import annotations

import re
from typing import Any

from pyjx import jaxlib_api
from pyjx.core.jaxpr import Jaxpr, subjaxprs

_MOVES = frozenset([
    "abs", "broadcast_in_dim", "cond", "copy", "dynamic_slice", "dynamic_update_slice", "gather",
    "jit", "pad", "reshape", "rev", "select_n", "slice", "squeeze", "transpose"])


_CONSTANT = re.compile(r"stablehlo\.constant .*(f6E\w+)>")


def check_small_floats(text: str, jaxpr: Jaxpr) -> None:
    """Refuse a program for CPU, of which `text` is the StableHLO, that would end the process.

    Raises:
      TypeError: it does more with floats of 6 bits than the compiler can.
    """
    if "f6E" in text:
        _check(jaxpr)
        if constant := _CONSTANT.search(text):
            raise _refused("a constant", constant[1])


def _refused(what: str, dtype: Any) -> TypeError:
    return TypeError(f"{what} of {dtype} is not supported on CPU: jaxlib "
                     f"{jaxlib_api.JAXLIB_RELEASE} has no code for it. Compute in another dtype, "
                     "such as float8_e4m3fn or float32.")


def _check(jaxpr: Jaxpr) -> None:
    for eqn in jaxpr.eqns:
        name = eqn.primitive.name
        read, made = ([a.dtype for a in avals if "float6_" in str(getattr(a, "dtype", ""))]
                      for avals in ([x.aval for x in eqn.invars], [x.aval for x in eqn.outvars]))
        known = jaxlib_api.CPU_MOVES_6_BITS and (
            name in _MOVES or (name == "convert_element_type" and not read))
        if (read or made) and not known:
            raise _refused(name, (read or made)[0])
    for inner in subjaxprs(jaxpr):
        _check(inner)
