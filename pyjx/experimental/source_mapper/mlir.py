"""Source maps of MLIR modules that have locations."""

from __future__ import annotations

import re

from pyjx.experimental.source_mapper.maps import Places, SourceMap
from pyjx.lazy import directory

__all__ = ["create_mlir_sourcemap"]
__dir__ = directory(__name__, __all__)

_PLACE = re.compile(r'"((?:[^"\\]|\\.)*)":(\d+):(\d+)')
_NAMED_LOCATION = re.compile(r"^(#loc\d*) = loc\((.*)\)$")


def create_mlir_sourcemap(mlir_dump: str) -> SourceMap:
    """The map of the text of an MLIR module that has locations."""
    lines = mlir_dump.split("\n")
    named = {found[1]: found[2] for found in map(_NAMED_LOCATION.match, lines) if found}

    def place(text: str, depth: int = 0) -> tuple[str, int, int] | None:
        """The innermost place in a location: of a call it comes first."""
        direct = _PLACE.search(text)
        if direct is not None or depth > 32:
            return None if direct is None else (direct[1], int(direct[2]), int(direct[3]))
        inner = [place(named.get(n, ""), depth + 1) for n in re.findall(r"#loc\d*", text)]
        return next((p for p in inner if p is not None), None)

    out = Places()
    for line in lines:
        out.generator.new_group()
        start = line.rfind(" loc(")
        found = None if start < 0 or line.startswith("#loc") else place(line[start:])
        if found is not None:
            out.segment(len(line) - len(line.lstrip()), *found)
    return out.map()
