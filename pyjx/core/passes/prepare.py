"""All rewrites between tracing and lowering, in their order."""

from __future__ import annotations

from pyjx.core.effects import is_ordered
from pyjx.core.jaxpr import ClosedJaxpr
from pyjx.core.passes.dce import dce
from pyjx.core.passes.outline import outline as outline_repeats
from pyjx.core.passes.tokens import threaded


def prepare(closed: ClosedJaxpr, *, outline: bool) -> ClosedJaxpr:
    """The program as it is lowered: without dead code and, with `outline`, with each repeated
    block as one function. With ordered effects it takes and gives a token first."""
    live = dce(closed)
    if is_ordered(live.effects):
        return threaded(live)
    return outline_repeats(live) if outline else live
