"""How much memory a program needs, step by step: an estimate from the live ranges of its values.

A value takes its bytes from the operation that makes it to the last one that reads it. Views of
other values take none, nor do constants; arguments are there all the time, and results stay. What
XLA saves by writing a result where an operand was is not in it.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyjx.core.records import Record
from pyjx.viewer.listing import HEAD, NOTE, OPERATION, Listing

_MOST_STEPS = 200_000  # of called functions, which are steps of their caller


class Memory(Record):
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


def memory(listing: Listing, constants: frozenset[str], most: int = 2000) -> Memory:
    """The memory that the first function of a listing needs, in at most so many steps.

    `constants` are the operations that take no memory.
    """
    estimate = _Estimate(listing, constants)
    head = listing.heads[0]
    curve = estimate.function(head)
    arguments = estimate.arguments(head)
    steps = [(row, live + arguments) for row, live in curve.steps]
    largest: list[tuple[int, int]] = []
    if steps:
        peak = max(range(len(steps)), key=lambda i: steps[i][1])
        largest = sorted(estimate.alive(head, peak), key=lambda pair: (-pair[1], pair[0]))
    thinned = _thinned(steps, most)
    return Memory([row for row, _ in thinned], [live for _, live in thinned], arguments,
                  largest[:40])


def _thinned(steps: list[tuple[int, int]], most: int) -> list[tuple[int, int]]:
    """The highest step of each of so many parts."""
    size = -(-len(steps) // most) if steps else 1
    return [max(steps[i:i + size], key=lambda step: step[1]) for i in range(0, len(steps), size)]


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
        self._ends = listing.ends()
        self._known: dict[int, _Curve] = {}

    def arguments(self, head: int) -> int:
        """Bytes of a function's arguments: those that its head has, and those in rows."""
        listing = self._listing
        own = self._own(head, parameters=True)
        return listing.size[head] + sum([
            listing.size[r] for r in own if listing.operation[r] == "parameter"])

    def function(self, head: int) -> _Curve:
        """The curve of a function, or of a body that begins with a note."""
        if head not in self._known:
            self._known[head] = _Curve([], [], [])  # for a call of itself
            self._known[head] = self._computed(self._own(head))
        return self._known[head]

    def _own(self, head: int, parameters: bool = False) -> list[int]:
        """The operations of a function itself; with its `parameters` or without."""
        listing, rows = self._listing, []
        row = head + 1
        while row < self._ends[head]:
            if listing.kind[row] == NOTE:  # such as the one above the parameters
                row += 1
                continue
            if parameters or listing.operation[row] != "parameter":
                rows.append(row)
            row = self._ends[row]
        return rows

    def _computed(self, rows: Sequence[int]) -> _Curve:
        listing = self._listing
        values, freed = self._values(rows)
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
            if len(steps) < _MOST_STEPS:
                for body in self._bodies(row):
                    steps += [(r, live + b) for r, b in self.function(body).steps]
            live += made.get(row, 0)
            steps.append((row, live))
            live -= freed.get(row, 0)
        return _Curve(steps, starts, values)

    def _bodies(self, row: int) -> list[int]:
        """The functions that an operation runs, or the notes above its bodies."""
        listing = self._listing
        weights = listing.bodies.get(row)
        if weights is None or not weights[1]:
            return []
        called = list(listing.calls.get(row, ()))
        inner = row + 1
        if inner < self._ends[row] and listing.kind[inner] != NOTE:
            return [*called, row]  # one body, right below
        while inner < self._ends[row]:
            if listing.kind[inner] == NOTE:
                called.append(inner)
            inner = self._ends[inner]
        return called

    def _values(self, rows: Sequence[int]
                ) -> tuple[list[tuple[int, int, int, int]], dict[int, int]]:
        """The values of some rows (row, bytes, first and last row), and the bytes that are freed
        behind each row."""
        listing = self._listing
        parts: dict[int, list[tuple[int, int]]] = {}  # the values (row, position) behind a row
        sizes: dict[tuple[int, int], int] = {}
        last: dict[tuple[int, int], int] = {}
        for row in rows:
            read = [part for o in self._reads(row) for part in parts.get(o, ())]
            for part in read:
                last[part] = row
            if row in listing.views:
                pick = listing.picks.get(row)
                parts[row] = read if pick is None or pick >= len(read) else [read[pick]]
                continue
            if listing.operation[row] in self._constants or listing.kind[row] == HEAD:
                continue
            of = listing.elements.get(row) or (listing.size[row],)
            parts[row] = [(row, i) for i in range(len(of))]
            for i, size in enumerate(of):
                sizes[row, i] = size
                last[row, i] = row
        if rows:  # results stay
            for part in parts.get(rows[-1], [p for o in listing.operands[rows[-1]]
                                             for p in parts.get(o, ())]):
                last.pop(part, None)
        values = [(row, size, row, last.get((row, i), rows[-1])) for (row, i), size in
                  sizes.items() if size]
        freed: dict[int, int] = {}
        for part, row in last.items():
            freed[row] = freed.get(row, 0) + sizes[part]
        return values, freed

    def _reads(self, row: int) -> list[int]:
        """What an operation and its bodies read."""
        operands = self._listing.operands
        end = self._ends[row]
        if end == row + 1:
            return list(operands[row])
        return list(dict.fromkeys([o for r in range(row, end) for o in operands[r]]))

    def alive(self, head: int, step: int) -> list[tuple[int, int]]:
        """The rows whose values are alive at a step of a function, and their bytes."""
        curve = self.function(head)
        start, row = max((pair for pair in curve.starts if pair[0] <= step), default=(0, head))
        found: dict[int, int] = {}
        for made, size, first, until in curve.values:
            if first < row <= until or (first == row and curve.steps[step][0] == row):
                found[made] = found.get(made, 0) + size
        offset = step - start
        for body in self._bodies(row) if row != head else ():
            length = len(self.function(body).steps)
            if offset < length:
                return [*found.items(), *self.alive(body, offset)]
            offset -= length
        return list(found.items())
