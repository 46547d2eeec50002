"""Rewrites of jaxprs between tracing and lowering."""

from __future__ import annotations

from pyjx.core.jaxpr import ClosedJaxpr


def prepare(closed: ClosedJaxpr, *, outline: bool) -> ClosedJaxpr:
    """The program as it is lowered."""
    return closed
