"""pyjx's rewrites between tracing and lowering, one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pyjx import configuration
from pyjx.core.effects import is_ordered
from pyjx.core.jaxpr import ClosedJaxpr
from pyjx.core.passes.dce import dce
from pyjx.core.passes.outline import outline
from pyjx.core.passes.tokens import threaded
from pyjx.core.records import Record
from pyjx.engine.decompose import decompose
from pyjx.engine.physical import physicalize


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
    [('physicalize', 2, 2), ('decompose', 2, 2), ('dce', 2, 1), ('outline', 1, 1)]
    """
    mode = configuration.outline.value
    steps: list[tuple[str, Callable[[ClosedJaxpr], ClosedJaxpr]]] = [
        ("physicalize", physicalize), ("decompose", lambda c: decompose(c, platform)),
        ("dce", dce)]
    if is_ordered(closed.effects):
        steps.append(("tokens", threaded))
    elif mode == "on" or (mode == "auto" and platform == "cpu"):
        steps.append(("outline", outline))
    for name, step in steps:
        after = step(closed)
        yield Pass(name, closed, after)
        closed = after
