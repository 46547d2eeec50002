"""Locations: the name of each operation, and its place in the user's source.

A location is an alias, written once, after the functions. One alias serves all equations with the
same traceback, name stack and primitive.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from lowering.types import quoted
from pyjx.core.frames import Frame, user_frames
from pyjx.core.jaxpr import JaxprEqn

if TYPE_CHECKING:
    from lowering.builder import Block

# A line that ends so opens a region: its operation, and with it the place for the location, ends
# further down.
_HEADS = ("({", "{", ":")
# Calls are named by what is called.
_CALLS = {"jit": "jit({})", "outlined_call": "{}"}


class Scope(NamedTuple):
    """Where the operations of a function are: what their names begin with and, for a function that
    is called, the Python function that it was traced from, as (name, file).

    XLA puts name and frames of a call before those of what it calls, where it inlines the call; so
    operations have the frames inside the function alone.
    """

    name: str
    function: tuple[str, str | None] | None = None


class Locations:
    """The location aliases of a module."""

    __slots__ = ("_aliases", "_frames", "_of_eqn", "_stacks", "lines")

    def __init__(self, frames: int) -> None:
        self.lines: list[str] = []
        self._frames = frames
        self._aliases: dict[str, str] = {}
        self._of_eqn: dict[Any, str] = {}
        self._stacks: dict[Any, str] = {}

    def located(self, block: Block) -> list[str]:
        """The lines of a function with a location behind each operation."""
        lines = block.lines
        found: list[str | None] = [None] * len(lines)
        for start, end, eqn in block.marks:
            alias = self._of(eqn, block.scope)
            for i in range(start, end):
                if found[i] is None:
                    found[i] = alias
        name = block.scope.name
        rest = self._alias(f"loc({quoted(name)})") if name else "unknown"
        return [line if line.endswith(_HEADS) else f"{line} loc({alias or rest})"
                for line, alias in zip(lines, found, strict=True)]

    def _of(self, eqn: JaxprEqn, scope: Scope) -> str:
        info = eqn.source_info
        kind = eqn.primitive.name
        if kind in _CALLS:
            kind = _CALLS[kind].format(eqn.params["name"])
        key = info.traceback, str(info.name_stack), kind, scope
        alias = self._of_eqn.get(key)
        if alias is None:
            name = quoted("/".join([part for part in (scope.name, key[1], kind) if part]))
            place = self._stack(info.traceback, scope.function)
            alias = self._of_eqn[key] = self._alias(f"loc({name}({place}))" if place else
                                                    f"loc({name})")
        return alias

    def _stack(self, traceback: Any, function: tuple[str, str | None] | None) -> str:
        """The alias of the user's frames inside a function; empty if there are none."""
        place = self._stacks.get((traceback, function))
        if place is None:
            place = ""
            frames = user_frames(traceback)  # innermost first
            while function is not None and frames and _function_of(frames[-1]) != function:
                del frames[-1]
            for f in reversed(frames[:self._frames]):
                frame = self._alias(_frame_text(f))
                place = self._alias(f"loc(callsite({frame} at {place}))") if place else frame
            self._stacks[traceback, function] = place
        return place

    def _alias(self, text: str) -> str:
        alias = self._aliases.get(text)
        if alias is None:
            alias = self._aliases[text] = f"#loc{len(self._aliases) + 1}"
            self.lines.append(f"{alias} = {text}")
        return alias


def _frame_text(f: Frame) -> str:
    return (f"loc({quoted(f.function_name)}({quoted(f.file_name)}:"
            f"{f.start_line}:{f.start_column + 1}))")


def _function_of(f: Frame) -> tuple[str, str]:
    return f.function_name.rpartition(".")[2], f.file_name
