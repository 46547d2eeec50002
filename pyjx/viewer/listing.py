"""A form of a program, line by line, as columns: what the page holds and the graphs are made of."""

from __future__ import annotations

import re
from collections.abc import Sequence

OPERATION, HEAD, NOTE, CLOSING = range(4)  # kinds of rows; a head begins a function
UNKNOWN = -1

# What an operation with a body adds to its cost: how often the body's operations count, and how
# often its traffic does.
Weights = tuple[float, float]

_INSTALLED = re.compile(r"[/\\](?:site|dist)-packages[/\\]")


def name_parts(name: str) -> list[str]:
    """The scopes in a profile's name, and the operation at its end.

    XLA puts the name of a call before those of the operations that it inlines, so only what stands
    behind the last `jit` counts.

    >>> name_parts("jit(step)/jvp(block)/jit(step)/transpose(jvp(mlp))/up/mul")
    ['transpose(jvp(mlp))', 'up', 'mul']
    """
    parts, depth, start = [], 0, 0
    for i, c in enumerate(name):
        if c == "(":
            depth += 1
        elif c == ")":
            depth -= 1
        elif c == "/" and not depth:
            parts.append(name[start:i])
            start = i + 1
    parts.append(name[start:])
    while any("jit(" in part for part in parts[:-1]):
        del parts[0]
    return parts[1:] if "jit(" in parts[0] and len(parts) > 1 else parts


class Places:
    """The positions in the user's source that a page names, each with the one it was called from.

    >>> places = Places()
    >>> outer = places.at("model.py", "loss", 12, 5)
    >>> places.at("model.py", "layer", 3, 9, outer), places.at("model.py", "loss", 12, 5)
    (1, 0)
    """

    __slots__ = ("_known", "frames")

    def __init__(self) -> None:
        self.frames: list[tuple[str, str, int, int, int]] = []
        self._known: dict[tuple[str, str, int, int, int], int] = {}

    def at(self, file: str, function: str, line: int, column: int = 0, caller: int = UNKNOWN
           ) -> int:
        """The number of a place. Lines and columns count from 1; 0 is a column not known."""
        frame = file, function, line, column, caller
        number = self._known.get(frame)
        if number is None:
            number = self._known[frame] = len(self.frames)
            self.frames.append(frame)
        return number

    def position(self, place: int) -> tuple[str, int, int] | None:
        """File, line and column; None where it is not known."""
        if place == UNKNOWN:
            return None
        file, _, line, column, _ = self.frames[place]
        return file, line, column

    def _stack(self, place: int) -> list[tuple[str, str, int, int, int]]:
        """The frames of a place, innermost first: those of no installed package, if there are.

        XLA puts the frames of a call that it inlines around those that the operation has already.
        """
        found: list[tuple[str, str, int, int, int]] = []
        while place != UNKNOWN:
            found.append(self.frames[place])
            place = found[-1][-1]
        first = next((i for i, f in enumerate(found) if f[:4] == found[-1][:4]), 0)
        del found[first + 1:]
        return [f for f in found if not _INSTALLED.search(f[0])] or found

    def own_line(self, place: int) -> tuple[str, int] | None:
        """File and number of the line that is the user's own; None where it is not known."""
        return next(((f[0], f[2]) for f in self._stack(place)), None)

    def own_lines(self, listing: Listing) -> list[tuple[str, int] | None]:
        """For each row of a listing the user's line."""
        known = {place: self.own_line(place) for place in set(listing.place)}
        return [known[place] for place in listing.place]

    def functions(self, place: int) -> list[str]:
        """The functions that a place lies in, outermost first."""
        return [f[1] for f in reversed(self._stack(place)) if f[1] not in ("", "<module>")]


class Listing:
    """The rows of one form. Rows below an operation and deeper than it are its bodies.

    Attributes:
      title: what the form is called.
      text, depth, kind: what a row shows, how deep it lies, and what it is.
      operation, shape, name: of operations, what they are, the types of their results, and the
        name under which profiles know them; empty where that says nothing.
      place: number of the place in the source, or `UNKNOWN`.
      size: bytes of the results.
      flops, traffic: arithmetic operations, transcendental functions among them, and bytes read
        and written, with all that the bodies do.
      operands: the rows that an operation reads.
      calls: for a row that calls functions, the rows of their heads.
      bodies: for a row with bodies or calls, how they count.
      steps: for a row whose bodies combine single elements, how often they do.
      alternatives: rows of whose bodies one runs.
      views: rows whose results lie in the memory of their operands.
      elements: for rows that give tuples, the bytes of each element.
      picks: for views of one element of a tuple, its position.
      scopes: the names of the user's scopes, where they are known.
      unsized: rows of which sizes are no numbers, and those that hold or call them: what they cost
        is not known.
      devices: of how many devices it shows what one does, where that is known.
    """

    __slots__ = ("alternatives", "bodies", "calls", "depth", "devices", "elements", "flops", "kind",
                 "name", "operands", "operation", "picks", "place", "scopes", "shape", "size",
                 "steps", "text", "title", "traffic", "unsized", "views")

    def __init__(self, title: str) -> None:
        self.title = title
        self.text: list[str] = []
        self.depth: list[int] = []
        self.kind: list[int] = []
        self.operation: list[str] = []
        self.shape: list[str] = []
        self.name: list[str] = []
        self.place: list[int] = []
        self.size: list[int] = []
        self.flops: list[float] = []
        self.traffic: list[float] = []
        self.operands: list[Sequence[int]] = []
        self.calls: dict[int, Sequence[int]] = {}
        self.bodies: dict[int, Weights] = {}
        self.steps: dict[int, float] = {}
        self.alternatives: set[int] = set()
        self.views: set[int] = set()
        self.elements: dict[int, Sequence[int]] = {}
        self.picks: dict[int, int] = {}
        self.scopes: set[str] = set()
        self.unsized: set[int] = set()
        self.devices = 1

    def __len__(self) -> int:
        return len(self.text)

    def add(self, text: str, depth: int, kind: int = OPERATION, *, operation: str = "",
            shape: str = "", name: str = "", place: int = UNKNOWN, size: int = 0,
            flops: float = 0.0, traffic: float = 0.0, operands: Sequence[int] = ()) -> int:
        """Append a row; its number is returned."""
        self.text.append(text)
        self.depth.append(depth)
        self.kind.append(kind)
        self.operation.append(operation)
        self.shape.append(shape)
        self.name.append(name)
        self.place.append(place)
        self.size.append(size)
        self.flops.append(flops)
        self.traffic.append(traffic)
        self.operands.append(operands)
        return len(self.text) - 1

    @property
    def heads(self) -> list[int]:
        """The rows at which functions begin, in their order."""
        return [i for i, kind in enumerate(self.kind) if kind == HEAD]

    def ends(self) -> list[int]:
        """For each row, the row after the last of its bodies."""
        ends = [0] * len(self)
        open_rows: list[int] = []
        for i, depth in enumerate(self.depth):
            while open_rows and self.depth[open_rows[-1]] >= depth:
                ends[open_rows.pop()] = i
            open_rows.append(i)
        for i in open_rows:
            ends[i] = len(self)
        return ends

    def add_up(self) -> None:
        """Add to operations what their bodies cost."""
        ends, known = self.ends(), dict[int, Weights]()
        for head in self.heads:
            self._add_function(head, ends, known)
        if self.unsized:
            self._spread_unsized(ends)

    def _spread_unsized(self, ends: Sequence[int]) -> None:
        """Add to `unsized` what holds or calls a row in it."""
        around: dict[int, list[int]] = {}
        for row, end in enumerate(ends):
            for inner in (*range(row + 1, end), *self.calls.get(row, ())):
                around.setdefault(inner, []).append(row)
        waiting = list(self.unsized)
        while waiting:
            for row in around.get(waiting.pop(), ()):
                if row not in self.unsized:
                    self.unsized.add(row)
                    waiting.append(row)

    def _add_function(self, head: int, ends: Sequence[int], known: dict[int, Weights]) -> Weights:
        """The cost of a function, which is set in its head."""
        if head not in known:
            known[head] = 0.0, 0.0  # for a call of itself
            rows = self._add_rows(head + 1, ends[head], ends, known)
            known[head] = sum([f for f, _ in rows]), sum([t for _, t in rows])
            self.flops[head], self.traffic[head] = known[head]
        return known[head]

    def _add_rows(self, start: int, stop: int, ends: Sequence[int], known: dict[int, Weights]
                  ) -> list[Weights]:
        """The costs of the rows of one depth, which are set."""
        costs = []
        row = start
        while row < stop:
            inner = self._add_rows(row + 1, ends[row], ends, known)
            inner += [self._add_function(f, ends, known) for f in self.calls.get(row, ())]
            if row in self.alternatives:
                inner = [max(inner, default=(0.0, 0.0))]
            steps, each = self.steps.get(row, 0.0), sum([f for f, _ in inner])
            self.flops[row] += steps * (each if inner else 1.0)
            times, traffic_times = self.bodies.get(row, (1.0, 1.0))
            if row in self.bodies and traffic_times:
                self.traffic[row] = 0.0  # the bodies move what the operation does
            self.flops[row] += times * each
            self.traffic[row] += traffic_times * sum([t for _, t in inner])
            costs.append((self.flops[row], self.traffic[row]))
            row = ends[row]
        return costs
