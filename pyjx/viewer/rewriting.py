"""The rewrites of a program on its way to a platform, and what each changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from difflib import unified_diff
from typing import Any

from pyjx import configuration
from pyjx.core.effects import is_ordered
from pyjx.core.jaxpr import ClosedJaxpr
from pyjx.core.nested import all_eqns
from pyjx.core.passes.dce import dce
from pyjx.core.passes.outline import outline
from pyjx.core.passes.tokens import threaded
from pyjx.core.printer import JaxprPpContext
from pyjx.core.records import Record
from pyjx.engine.decompose import decompose
from pyjx.engine.one_cpu import for_one_cpu
from pyjx.engine.physical import physicalize
from pyjx.viewer.jaxprs import jaxpr_listing
from pyjx.viewer.listing import Places

_MOST = 1500  # lines of what a pass changed
_WIDEST = 300  # characters of such a line


class Pass(Record):
    """A rewrite: its name, and the program before and after it."""

    name: str
    before: ClosedJaxpr
    after: ClosedJaxpr


def passes(closed: ClosedJaxpr, platform: str = "cpu") -> Iterator[Pass]:
    """Each rewrite of a program on its way to a platform.

    >>> import pyjx as jax
    >>> from pyjx import inspect
    >>> closed = jax.make_jaxpr(lambda x: (jax.numpy.sin(x), x + 1)[1])(1.0)
    >>> [(p.name, len(p.before.eqns), len(p.after.eqns)) for p in inspect.passes(closed)]
    [('physicalize', 2, 2), ('decompose', 2, 2), ('one-cpu', 2, 2), ('dce', 2, 1),
     ('outline', 1, 1)]
    """
    mode = configuration.outline.value
    steps: list[tuple[str, Callable[[ClosedJaxpr], ClosedJaxpr]]] = [
        ("physicalize", physicalize), ("decompose", lambda c: decompose(c, platform)),
        *([("one-cpu", lambda c: for_one_cpu(c)[0])] if platform == "cpu" else []), ("dce", dce)]
    if is_ordered(closed.effects):
        steps.append(("tokens", threaded))
    elif mode == "on" or (mode == "auto" and platform == "cpu"):
        steps.append(("outline", outline))
    for name, step in steps:
        after = step(closed)
        yield Pass(name, closed, after)
        closed = after


def changes(steps: Iterable[Pass]) -> list[dict[str, Any]]:
    """For each rewrite its name, how many equations there were and are, nested ones included, and
    the lines that differ, as `diff -u` writes them; a variable has one name throughout."""
    names = JaxprPpContext()

    def lines(closed: ClosedJaxpr) -> list[str]:
        names.shared_jaxprs.clear()
        rows = jaxpr_listing(closed, Places(), names=names)
        return [f"{'  ' * depth}{text}"[:_WIDEST]
                for depth, text in zip(rows.depth, rows.text, strict=True)]

    found = []
    before: list[str] | None = None
    for step in steps:
        before = lines(step.before) if before is None else before
        after = before if step.after is step.before else lines(step.after)
        # The first two lines name files.
        changed = [] if after is before else list(unified_diff(before, after, lineterm=""))[2:]
        found.append({"name": step.name, "before": sum(1 for _ in all_eqns(step.before)),
                      "after": sum(1 for _ in all_eqns(step.after)), "lines": changed[:_MOST],
                      "more": max(len(changed) - _MOST, 0)})
        before = after
    return found
