"""Locations: the place in the user's source, and the name, of each operation."""

from __future__ import annotations

from typing import Any

from pyjx.core import frames
from pyjx.core.jaxpr import JaxprEqn

# A line that ends so is the head of a region, and its operation ends further down.
_HEADS = ("({", "{", ":")


class Locations:
    """The location aliases of a module, each written once, after its functions."""

    __slots__ = ("_aliases", "_of_eqn", "limit", "lines", "prefix")

    def __init__(self, name: str, limit: int) -> None:
        self.prefix = f"jit({name})"
        self.limit = limit
        self.lines: list[str] = []
        self._aliases: dict[str, str] = {}
        self._of_eqn: dict[Any, str] = {}

    def of(self, eqn: JaxprEqn) -> str:
        """The alias of an equation's location."""
        info = eqn.source_info
        key = (id(info.traceback), str(info.name_stack), eqn.primitive.name)
        alias = self._of_eqn.get(key)
        if alias is None:
            stack = str(info.name_stack)
            name = "/".join([p for p in (self.prefix, stack, eqn.primitive.name) if p])
            positions = [
                self._alias(f'loc({_quoted(f.function_name)}({_quoted(f.file_name)}:'
                            f"{f.start_line}:{f.start_column + 1}))")
                for f in frames.user_frames(info.traceback, self.limit)
            ]
            place = ""
            if positions:
                place = positions[-1]
                for frame in reversed(positions[:-1]):
                    place = self._alias(f"loc(callsite({frame} at {place}))")
            alias = self._alias(f"loc({_quoted(name)}({place}))" if place else
                                f"loc({_quoted(name)})")
            self._of_eqn[key] = alias
        return alias

    def _alias(self, text: str) -> str:
        alias = self._aliases.get(text)
        if alias is None:
            alias = self._aliases[text] = f"#loc{len(self._aliases) + 1}"
            self.lines.append(f"{alias} = {text}")
        return alias

    def mark(self, lines: list[str], start: int, eqn: JaxprEqn) -> None:
        """Give the operations written since `start` the location of `eqn`."""
        alias = self.of(eqn)
        for i in range(start, len(lines)):
            line = lines[i]
            if not line.endswith(_HEADS) and " loc(" not in line:
                lines[i] = f"{line} loc({alias})"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
