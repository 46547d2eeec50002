"""How much memory a program needs, step by step."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from typing import Any, TypeVar

from pyjx.core.records import Record
from pyjx.viewer.listing import HEAD, NOTE, OPERATION, UNKNOWN, Listing

_Step = TypeVar("_Step")

# A value takes its bytes from the operation that makes it to the last one that reads it. Views of
# other values take none, nor do constants, nor what is written in place of what nobody reads later;
# arguments are there all the time, and results stay. That XLA may write any result where an operand
# was is not in it.

_MOST_INSIDE = 200_000  # steps of called functions, which are steps of their caller


class MemoryCurve(Record):
    """Memory over time.

    Attributes:
      rows: the row that each step runs.
      live: bytes at each step, arguments among them.
      arguments: bytes of the arguments.
      largest: the rows whose values are alive at the peak, with their bytes; largest first.
    """

    rows: list[int]
    live: list[int]
    arguments: int
    largest: list[tuple[int, int]]

    @property
    def peak(self) -> int:
        return max(self.live, default=self.arguments)


def memory(listing: Listing, constants: frozenset[str]) -> MemoryCurve:
    """The memory that the first function of a listing needs, in as many steps as are shown.

    `constants` are the operations that take no memory.
    """
    estimate = _Estimate(listing, constants)
    head = listing.entry
    curve = estimate.function(head)
    arguments = estimate.arguments(head)
    steps = [(row, live + arguments) for row, live in curve.steps]
    largest: list[tuple[int, int]] = []
    if steps:
        peak = max(range(len(steps)), key=lambda i: steps[i][1])
        largest = sorted(estimate.alive(head, peak), key=lambda pair: (-pair[1], pair[0]))
    shown = thinned(steps, lambda step: step[1])
    return MemoryCurve([row for row, _ in shown], [live for _, live in shown], arguments,
                       largest[:40])


def thinned(steps: Sequence[_Step], height: Callable[[Any], float] = float,
            most: int = 2000) -> list[_Step]:
    """The highest step of each of so many parts."""
    size = -(-len(steps) // most) or 1
    return [max(steps[i:i + size], key=height) for i in range(0, len(steps), size)]


_Part = tuple[int, int]  # a value, or an element of it: its row, and its position
_GIVEN = -1  # the position of what the body of a loop gets, whose memory is not its own


class _Curve(Record):
    """Memory within a function, and for each value (its row, its bytes) from which of the
    function's own steps to which it is alive."""

    steps: list[tuple[int, int]]
    starts: list[tuple[int, int]]  # (number of the first step, row), for each row of the function
    values: list[tuple[int, int, int, int]]  # row, bytes, first and last row


class _Estimate:
    """Curves of functions, each computed once."""

    def __init__(self, listing: Listing, constants: frozenset[str]) -> None:
        self._listing = listing
        self._constants = constants
        self._ends = ends = listing.ends()
        self._known: dict[int, _Curve] = {}
        # Functions and bodies are known by their first rows.
        self._bodies: dict[int, list[int]] = {}
        self._stops = {listing.entry: ends[listing.entry]}
        self._loops: dict[int, int] = {}  # around what writes into what it gets: memory of theirs
        for row in listing.bodies:
            bodies = listing.running(row, ends)
            self._bodies[row] = [body[0] for body in bodies]
            self._stops.update({body[0]: ends[body[-1]] for body in bodies})
            if row in listing.in_place or row in listing.views:
                self._loops.update(dict.fromkeys(self._bodies[row], row))

    def arguments(self, head: int) -> int:
        """Bytes of a function's arguments: those that its head has, and those in rows."""
        listing = self._listing
        own = self._own(head, parameters=True)
        return listing.on_device(head) + sum([
            sum(self._sizes(r)) for r in own if listing.operation[r] == "parameter"])

    def function(self, head: int) -> _Curve:
        """The curve of a function or body."""
        if head not in self._known:
            self._known[head] = _Curve([], [], [])  # for a call of itself
            self._known[head] = self._computed(self._own(head), head)
        return self._known[head]

    def _sizes(self, row: int) -> Sequence[int]:
        """The bytes on a device of what a row gives, or of each of its elements."""
        return self._listing.elements.get(row) or (self._listing.on_device(row),)

    def _own(self, head: int, parameters: bool = False) -> list[int]:
        """The operations of a function itself; with its `parameters` or without."""
        listing, rows = self._listing, []
        row = head
        while row < self._stops[head]:
            if listing.kind[row] in (HEAD, NOTE):  # such as the one above the parameters
                row += 1
                continue
            if parameters or listing.operation[row] != "parameter":
                rows.append(row)
            row = self._ends[row]
        return rows

    def _computed(self, rows: Sequence[int], head: int) -> _Curve:
        listing = self._listing
        values, freed = self._values(rows, head)
        made: dict[int, int] = {}
        for _, size, first, _ in values:
            made[first] = made.get(first, 0) + size
        steps: list[tuple[int, int]] = []
        starts: list[tuple[int, int]] = []
        live = 0
        for row in rows:
            if listing.kind[row] != OPERATION:
                continue
            starts.append((len(steps), row))
            if row in listing.in_place:  # there while it runs
                live += made.pop(row, 0)
            if len(steps) < _MOST_INSIDE:
                for body in self._bodies.get(row, ()):
                    steps += [(r, live + b) for r, b in self.function(body).steps]
            live += made.get(row, 0)
            steps.append((row, live))
            live -= freed.get(row, 0)
        return _Curve(steps, starts, values)

    def _values(self, rows: Sequence[int], head: int
                ) -> tuple[list[tuple[int, int, int, int]], dict[int, int]]:
        """The values of some rows (row, bytes, first and last row), and the bytes that are freed
        behind each row."""
        listing = self._listing
        parts: dict[int, list[_Part]] = {}
        sizes: dict[_Part, int] = {}
        last: dict[_Part, int] = {}
        loop = self._loops.get(head, UNKNOWN)
        for row in () if loop == UNKNOWN else (loop, head, *self._own(head, parameters=True)):
            if row == loop or listing.kind[row] in (HEAD, NOTE) or (
                    listing.operation[row] == "parameter"):
                parts[row] = [(row, _GIVEN)]
        for row in rows:
            read = [part for o in self._reads(row) for part in parts.get(o, ())]
            for part in read:
                last[part] = row
            if row in listing.views:
                pick = listing.picks.get(row)
                parts[row] = read if pick is None or pick >= len(read) else [read[pick]]
                continue
            if listing.operation[row] in self._constants:
                continue
            parts[row] = []
            for i, size in enumerate(self._sizes(row)):
                parts[row].append((row, i))
                sizes[row, i] = size
                last[row, i] = row
        if rows:  # results stay
            for part in parts.get(rows[-1], [p for o in listing.operands[rows[-1]]
                                             for p in parts.get(o, ())]):
                last.pop(part, None)
        self._merge(parts, sizes, last)
        values = [(row, size, row, last.get((row, i), rows[-1])) for (row, i), size in
                  sizes.items() if size]
        freed: dict[int, int] = {}
        for part, row in last.items():
            freed[row] = freed.get(row, 0) + sizes.get(part, 0)
        return values, freed

    def _merge(self, parts: dict[int, list[_Part]], sizes: dict[_Part, int],
               last: dict[_Part, int]) -> None:
        """Make one value of each two that are in one place after another."""
        listing = self._listing
        merged: dict[_Part, _Part] = {}
        for row in parts:
            for i, (operand, k) in listing.in_place.get(row, {}).items():
                new, old = (row, i), parts.get(operand)
                if not old:
                    continue
                part = old[k if k < len(old) else 0]
                root = merged.get(part, part)
                if root[1] != _GIVEN and last.get(root) != row:
                    continue
                merged[new] = root
                sizes.pop(new, None)
                last.pop(root, None)
                if new in last:
                    last[root] = last.pop(new)
        for row, k in listing.given_back:
            for part in parts.get(row, [])[k:k + 1]:
                sizes.pop(merged.get(part, part), None)

    def _reads(self, row: int) -> list[int]:
        """What an operation and its bodies read."""
        operands = self._listing.operands
        end = self._ends[row]
        if end == row + 1:
            return list(operands[row])
        return list(dict.fromkeys([o for r in range(row, end) for o in operands[r]]))

    def alive(self, head: int, step: int, around: Set[int] = frozenset()
              ) -> list[tuple[int, int]]:
        """The rows whose values are alive at a step of a function, and their bytes; `around` are
        the functions that call it."""
        curve = self.function(head)
        start, row = max([pair for pair in curve.starts if pair[0] <= step])
        found: dict[int, int] = {}
        for made, size, first, until in curve.values:
            if first < row <= until or (first == row and (
                    curve.steps[step][0] == row or row in self._listing.in_place)):
                found[made] = found.get(made, 0) + size
        offset = step - start
        for body in self._bodies.get(row, ()):
            length = 0 if body in around else len(self.function(body).steps)
            if offset < length:
                return [*found.items(), *self.alive(body, offset, around | {head})]
            offset -= length
        return list(found.items())
