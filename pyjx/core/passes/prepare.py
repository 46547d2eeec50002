"""All rewrites between tracing and lowering, in their order."""

from __future__ import annotations

from pyjx.core.jaxpr import ClosedJaxpr
from pyjx.core.passes.dce import dce
from pyjx.core.passes.outline import outline as outline_repeats


def prepare(closed: ClosedJaxpr, *, outline: bool) -> ClosedJaxpr:
    """The program as it is lowered: without dead code and, with `outline`, with each repeated
    block as one function."""
    live = dce(closed)
    return outline_repeats(live) if outline else live
