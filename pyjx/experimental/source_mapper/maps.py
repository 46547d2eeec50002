"""Source maps, as a value and in the form that browsers read (ECMA-426): base-64 numbers, each
relative to the one before.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

# A segment: column; and the source, line and column that it came from; and a name.
Segment = tuple[int, ...]
Mappings = Sequence[Sequence[Segment]]  # of each line of the text

_DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


def _encoded(n: int) -> str:
    """A number in groups of five bits, the lowest first; the very lowest bit is the sign."""
    rest = (-n << 1 | 1) if n < 0 else n << 1
    text = ""
    while True:
        rest, group = rest >> 5, rest & 31
        text += _DIGITS[group | (32 if rest else 0)]
        if not rest:
            return text


def _decoded(text: str) -> Iterator[int]:
    n = shift = 0
    for digit in text:
        value = _DIGITS.index(digit)
        n |= (value & 31) << shift
        shift += 5
        if not value & 32:
            yield -(n >> 1) if n & 1 else n >> 1
            n = shift = 0


@dataclass(frozen=True)
class SourceMap:
    """A source map.

    >>> maps = SourceMap(3, ["a.py"], [], [], [[(0, 0, 4, 2)], [(3, 0, 1, 0)]])
    >>> SourceMap.from_json(maps.to_json()).mappings
    [[(0, 0, 4, 2)], [(3, 0, 1, 0)]]
    """

    version: int
    sources: Sequence[str]
    sources_content: Sequence[str]
    names: Sequence[str]
    mappings: Mappings

    def to_json(self) -> str:
        """As a text."""
        before = [0] * 5
        lines = []
        for line in self.mappings:
            before[0] = 0
            parts = []
            for segment in line:
                parts.append("".join([_encoded(n - b) for n, b in
                                      zip(segment, before, strict=False)]))
                before[:len(segment)] = segment
            lines.append(",".join(parts))
        return json.dumps({"version": self.version, "sources": list(self.sources),
                           "sourcesContent": list(self.sources_content),
                           "names": list(self.names), "mappings": ";".join(lines)})

    @classmethod
    def from_json(cls, json_data: str) -> SourceMap:
        """The map that a text holds."""
        data = json.loads(json_data)
        before = [0] * 5
        lines: list[list[Segment]] = []
        for line in data["mappings"].split(";"):
            before[0] = 0
            lines.append([])
            for part in filter(None, line.split(",")):
                segment = tuple([n + b for n, b in zip(_decoded(part), before, strict=False)])
                before[:len(segment)] = segment
                lines[-1].append(segment)
        return cls(data["version"], data["sources"], data.get("sourcesContent", []),
                   data.get("names", []), lines)


class MappingsGenerator:
    """Makes mappings, line by line."""

    def __init__(self) -> None:
        self._lines: list[list[Segment]] = []

    def new_group(self) -> None:
        """Begin the next line of the text."""
        self._lines.append([])

    def new_segment(self, *seg: int) -> None:
        """Add a segment to the line: its column and, if it came from somewhere, the number of the
        source, the line and the column there, counted from 0, and the number of a name."""
        self._lines[-1].append(tuple(seg))

    def mappings(self) -> Mappings:
        """What has been added."""
        return self._lines


def canonicalize_filename(file_name: str) -> str:
    """A name without the folder of the user, or of temporary files, which differs from machine to
    machine."""
    return re.sub(r"^(/tmp|/var/folders)/(.*/)?", "", os.path.normpath(file_name))


class Places:
    """The sources of a map, by number."""

    def __init__(self) -> None:
        self.sources: dict[str, int] = {}
        self.generator = MappingsGenerator()

    def segment(self, column: int, file: str, line: int, source_column: int) -> None:
        number = self.sources.setdefault(canonicalize_filename(file), len(self.sources))
        self.generator.new_segment(column, number, line - 1, max(source_column - 1, 0))

    def map(self) -> SourceMap:
        return SourceMap(3, list(self.sources), [], [], self.generator.mappings())
