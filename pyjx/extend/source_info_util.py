"""Where operations come from in the user's program, and what names they have."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyjx.core.frames import register_exclusion
from pyjx.core.name_stack import (
    NameStack,
    current_name_stack,
    extend_name_stack,
    reset_name_stack,
    set_name_stack,
    transform_name_stack,
)
from pyjx.core.source_info import SourceInfo, current, no_source_info, replaying, summarize
from pyjx.lazy import directory

__all__ = [
    "NameStack", "SourceInfo", "current", "current_name_stack", "extend_name_stack",
    "new_name_stack", "new_source_info", "register_exclusion", "reset_name_stack",
    "set_name_stack", "summarize", "transform_name_stack", "user_context",
]
__dir__ = directory(__name__, __all__)


def new_name_stack(name: str = "") -> NameStack:
    """A stack with one name, or none."""
    return NameStack().extend(name) if name else NameStack()


def new_source_info() -> SourceInfo:
    """No place and no name."""
    return no_source_info


@contextmanager
def user_context(traceback: Any, *, name_stack: NameStack | None = None) -> Iterator[None]:
    """Let operations that are recorded have this place, and these names before their own."""
    if traceback is None and name_stack is None:
        yield
        return
    with replaying() as replay:
        replay.source = SourceInfo(traceback, name_stack or NameStack())
        yield
