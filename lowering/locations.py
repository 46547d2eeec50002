"""Locations: the name of each operation, and its place in the user's source.

A location is an alias, written once, after the functions. One alias serves all equations with the
same traceback, name stack and primitive.
"""

from __future__ import annotations

import re
from types import CodeType
from typing import TYPE_CHECKING, Any

from lowering.types import quoted
from pyjx.core.frames import frame_at, is_internal, user_code
from pyjx.core.jaxpr import JaxprEqn
from pyjx.core.name_stack import Beside
from pyjx.core.records import Record

if TYPE_CHECKING:
    from lowering.builder import Block


class Scope(Record):
    """Where the operations of a function are: what their names begin with and, for a function that
    is called, the Python function that it was traced from, as (name, file).

    XLA puts name and frames of a call before those of what it calls, where it inlines the call; so
    operations have the frames inside the function alone.
    """

    name: str
    function: tuple[str, str | None] | None = None
    # Of the operation whose body it is, for what has none of its own.
    traceback: Any = None

    def inside(self, eqn: JaxprEqn, part: str) -> Scope:
        """The scope of a jaxpr that an equation holds; a transformation encloses what is called."""
        stack = eqn.source_info.name_stack
        name = self.name
        if isinstance(next(iter(stack.stack), None), Beside):
            name = name.rpartition("/")[0]
        parts = (name, str(stack), part) if eqn.primitive.label is None else (
            name, str(stack.extend(part)))
        traceback = eqn.source_info.traceback or self.traceback
        return self._replace(name="/".join([p for p in parts if p]), traceback=traceback)


class Locations:
    """The location aliases of a module: up to so many frames of a stack, all if negative. What
    the pattern `dropped` matches goes from the names of files."""

    __slots__ = ("_aliases", "_dropped", "_frames", "_of_eqn", "_placed", "_stacks", "lines")

    def __init__(self, frames: int, dropped: str | None) -> None:
        self.lines: list[str] = []
        self._frames = frames if frames >= 0 else None
        self._dropped = re.compile(dropped) if dropped else None
        self._aliases: dict[str, str] = {}
        self._of_eqn: dict[Any, str] = {}
        self._stacks: dict[Any, str] = {}
        self._placed: dict[Any, str] = {}

    def located(self, block: Block) -> list[str]:
        """The lines of a function with a location behind each operation."""
        lines = block.lines
        ends: list[str | None] = [None] * len(lines)
        for i in block.openings:
            ends[i] = ""
        of_eqn, scope, regions = self._of_eqn, block.scope, block.regions[::-1]

        def fill(start: int, stop: int, end: str) -> None:
            for i in range(start, stop):
                if ends[i] is None:
                    ends[i] = end

        for start, stop, eqn, inside in block.marks:
            info = eqn.source_info
            key = info.traceback, id(info.name_stack), eqn.primitive, inside
            end = of_eqn.get(key)
            if end is None or eqn.primitive.label is not None:
                end = of_eqn[key] = f" loc({self._of(eqn, inside)})"
            # XLA gives what it makes in a loop the name of the loop, so nothing else has that.
            while regions and start <= regions[-1][0] and regions[-1][1] <= stop:
                first, last, part = regions.pop()
                fill(first, last, f" loc({self._of(eqn, inside, f'{part}/')})")
            fill(start, stop, end)
        rest = f" loc({self._alias(quoted(scope.name)) if scope.name else 'unknown'})"
        return [line + (rest if end is None else end)
                for line, end in zip(lines, ends, strict=True)]

    def _of(self, eqn: JaxprEqn, scope: Scope, part: str = "") -> str:
        """The alias of an equation's location, or of that of a part of it."""
        info = eqn.source_info
        label = eqn.primitive.label
        kind = eqn.primitive.name if label is None else label(eqn.params)
        name = quoted(scope.inside(eqn, part + kind).name)
        place = self._stack(info.traceback or scope.traceback, scope.function)
        return self._alias(f"{name}({place})" if place else name)

    def _stack(self, traceback: Any, function: tuple[str, str | None] | None) -> str:
        """The alias of the user's frames inside a function; empty if there are none. Of a rule that
        the user gave, which is called outside of it, the frame of the rule."""
        place = self._stacks.get((traceback, function))
        if place is None:
            frames = list(user_code(traceback))  # innermost first
            innermost = frames[:1]
            while function is not None and frames and _function_of(frames[-1][0]) != function:
                del frames[-1]
            if not frames and function is not None and not is_internal(function[1] or ""):
                frames = innermost
            place = ""
            for at in reversed(frames[:self._frames]):
                place = self._placed.get((place, at)) or self._place(place, *at)
            self._stacks[traceback, function] = place
        return place

    def _place(self, caller: str, code: CodeType, offset: int) -> str:
        """The alias of a frame below a stack of others."""
        f = frame_at(code, offset)
        file = f.file_name if self._dropped is None else self._dropped.sub("", f.file_name)
        place = self._alias(f"{quoted(f.function_name)}({quoted(file)}:{f.start_line}:"
                            f"{f.start_column + 1})")
        if caller:
            place = self._alias(f"callsite({place} at {caller})")
        self._placed[caller, (code, offset)] = place
        return place

    def _alias(self, text: str) -> str:
        alias = self._aliases.get(text)
        if alias is None:
            alias = self._aliases[text] = f"#loc{len(self._aliases) + 1}"
            self.lines.append(f"{alias} = loc({text})")
        return alias


def _function_of(code: CodeType) -> tuple[str, str]:
    return code.co_name, code.co_filename
