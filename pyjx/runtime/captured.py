"""The warning of large constants that a program has captured."""

from __future__ import annotations

import sys
from typing import Any

from pyjx import configuration
from pyjx.core.avals import get_aval
from pyjx.core.frames import warn
from pyjx.core.jaxpr import ClosedJaxpr, Jaxpr, Var, subjaxprs
from pyjx.core.source_info import summarize

_SHOWN = 10  # of the largest constants
_ALL = sys.maxsize


def warn_of_captured(closed: ClosedJaxpr) -> None:
    """Warn where the constants have `jax_captured_constants_warn_bytes` or more in all.

    A captured array stays in memory as long as the program, and is compiled for its value's shape
    anew with each function that captures it; an argument is neither.
    """
    limit = configuration.captured_constants_warn_bytes.value
    if limit < 0:
        return
    sizes = [_n_bytes(c) for c in closed.consts]
    total = sum(sizes)
    if total < limit:
        return
    text = (f"A large amount of constants were captured during lowering ({_readable(total)} "
            "total): arrays that the function uses without getting them as arguments. Pass them as "
            "arguments, or set JAX_CAPTURED_CONSTANTS_WARN_BYTES=-1 if it is meant so.")
    frames = configuration.captured_constants_report_frames.value
    if frames:
        text += (" The report that follows goes with JAX_CAPTURED_CONSTANTS_REPORT_FRAMES=0.\n\n"
                 + _report(closed, sizes, frames if frames > 0 else _ALL))
    else:
        text += (" JAX_CAPTURED_CONSTANTS_REPORT_FRAMES=-1 brings a report of where they are "
                 "used.")
    warn(text)


def _report(closed: ClosedJaxpr, sizes: list[int], frames: int) -> str:
    order = sorted(range(len(sizes)), key=lambda i: -sizes[i])[:_SHOWN]
    lines = [f"Largest {len(order)} allocation(s):"]
    for i in order:
        value, var = closed.consts[i], closed.constvars[i]
        places = _first_use(closed.jaxpr, var, frames) or "unknown"
        places = "\n".join([f"    {place}" for place in places.splitlines()])
        lines.append(f"  Constant {type(value)}, {get_aval(value).str_short()}, "
                     f"{_readable(sizes[i])} captured at:\n{places}\n")
    return "\n".join(lines)


def _first_use(jaxpr: Jaxpr, var: Var, frames: int) -> str | None:
    """Where the first operation that reads a variable was made; in a program that gets it as an
    argument, if that is what reads it."""
    for eqn in jaxpr.eqns:
        if var not in eqn.invars:
            continue
        position = list(eqn.invars).index(var)
        for inner in subjaxprs(eqn):
            if len(inner.invars) == len(eqn.invars):
                place = _first_use(inner, inner.invars[position], frames)
                if place is not None:
                    return place
        return summarize(eqn.source_info, frames)
    return None


def _n_bytes(value: Any) -> int:
    aval = get_aval(value)
    size = getattr(aval, "size", 0)
    return int(size) * int(getattr(aval.dtype, "itemsize", 0))


def _readable(n: int) -> str:
    size, unit = float(n), "B"
    for larger in ("KB", "MB", "GB"):
        if size >= 1000:
            size, unit = size / 1000, larger
    return f"{n}B" if unit == "B" else f"{size:.2f}{unit}"
