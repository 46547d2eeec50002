"""Where operations come from in the user's program, and what names they have."""

from __future__ import annotations

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
from pyjx.core.source_info import (
    SourceInfo,
    current,
    no_source_info,
    replaying,
    summarize,
    thread_state,
)
from pyjx.lazy import directory

__all__ = [
    "NameStack", "SourceInfo", "current", "current_name_stack", "extend_name_stack",
    "new_name_stack", "new_source_info", "register_exclusion", "reset_name_stack",
    "set_name_stack", "summarize", "transform_name_stack", "user_context",
]


def new_name_stack(name: str = "") -> NameStack:
    """A stack with one name, or none."""
    return NameStack().extend(name) if name else NameStack()


def new_source_info() -> SourceInfo:
    """No place and no name."""
    return no_source_info


class user_context:
    """A context in which operations that are recorded have this place, and these names before
    their own. Without both it changes nothing."""

    __slots__ = ("_replaying", "name_stack", "prev", "traceback")

    _replaying: replaying | None
    prev: SourceInfo | None  # the place of operations around it, once it is entered

    def __init__(self, traceback: Any, *, name_stack: NameStack | None = None) -> None:
        self.traceback = traceback
        self.name_stack = name_stack

    def __enter__(self) -> None:
        self.prev = thread_state.source
        self._replaying = None
        if self.traceback is not None or self.name_stack is not None:
            self._replaying = replaying()
            replay = self._replaying.__enter__()
            replay.source = SourceInfo(self.traceback, self.name_stack or NameStack())

    def __exit__(self, *exc: Any) -> None:
        if self._replaying is not None:
            self._replaying.__exit__(*exc)


__dir__ = directory(__name__, __all__)
