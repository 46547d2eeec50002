"""Repeats in a sequence of integers, which stand for the equations of a program.

A repeat at distance d is a run of positions i where number[i] == number[i + d]. The distances worth
a look are those between successive uses of a number. A run that is longer than d is periodic and
holds several copies, adjacent to each other.

What is taken gets numbers that nothing else has, so a repeat can only lose by what others take: the
best repeat of a distance is looked for again only when its old one would be the best of all.
"""

from __future__ import annotations

import numpy as np

from pyjx.core.passes.outline import MIN_BLOCK
from pyjx.core.records import Record

# How many distances are looked at, the most frequent ones.
MAX_DISTANCES = 32


class Repeat(Record):
    """A run of equations that holds `copies` adjacent blocks of `length` equations."""

    start: int
    length: int
    copies: int
    end: int


class Repeats:
    """The repeats of a sequence of numbers, the most saving first."""

    __slots__ = ("_fresh", "_queue", "_seen", "numbers")

    def __init__(self, numbers: np.ndarray) -> None:
        self.numbers = numbers.copy()
        self._fresh = -1
        self._seen: set[int] = set()
        self._queue: dict[int, int] = {}  # distance -> what its best repeat once saved
        self._search()

    def best(self) -> Repeat | None:
        """The repeat that saves most."""
        queue = self._queue
        while queue or self._search():
            distance, bound = max(queue.items(), key=lambda item: (item[1], -item[0]))
            saving, repeat = _best_at(self.numbers, distance)
            if repeat is None:
                del queue[distance]
            elif saving == bound:
                return repeat
            else:
                queue[distance] = saving
        return None

    def take(self, start: int, end: int) -> None:
        """Let the equations from `start` to before `end` be like no others."""
        n = end - start
        self.numbers[start:end] = np.arange(self._fresh, self._fresh - n, -1)
        self._fresh -= n

    def _search(self) -> bool:
        """Queue the distances that are new; whether there are any."""
        new = [d for d in _distances(self.numbers) if d not in self._seen]
        self._seen.update(new)
        for distance in new:
            saving, repeat = _best_at(self.numbers, distance)
            if repeat is not None:
                self._queue[distance] = saving
        return bool(self._queue)


def _distances(numbers: np.ndarray) -> list[int]:
    """The most frequent distances between one use of a number and the next."""
    order = np.argsort(numbers, kind="stable")
    gaps = order[1:] - order[:-1]
    gaps = gaps[numbers[order[1:]] == numbers[order[:-1]]]
    # a short period counts as its first multiple that makes a block
    gaps = np.where(gaps < MIN_BLOCK, -(-MIN_BLOCK // np.maximum(gaps, 1)) * gaps, gaps)
    if not gaps.size:
        return []
    distances, counts = np.unique(gaps, return_counts=True)
    distances, counts = distances[counts > 1], counts[counts > 1]
    return [int(d) for d in distances[np.argsort(-counts, kind="stable")][:MAX_DISTANCES]]


def _best_at(numbers: np.ndarray, distance: int) -> tuple[int, Repeat | None]:
    """What the best repeat at a distance saves, and the repeat."""
    n = len(numbers) - distance
    breaks = np.flatnonzero(numbers[distance:] != numbers[:n])
    lengths = np.diff(breaks, prepend=-1, append=n) - 1
    long = np.flatnonzero(lengths >= MIN_BLOCK)
    if not long.size:
        return 0, None
    lengths = lengths[long]
    savings = np.where(lengths >= distance, lengths - lengths % distance, lengths)
    best = int(np.argmax(savings))
    length, at = int(lengths[best]), int(long[best])
    start = int(breaks[at - 1]) + 1 if at else 0
    if length < distance:
        return length, Repeat(start, length, 1, start + length)
    copies = length // distance + 1
    return int(savings[best]), Repeat(start, distance, copies, start + length + distance)


def occurrences(numbers: np.ndarray, pattern: np.ndarray) -> list[int]:
    """Where `pattern` stands in `numbers`, without overlaps."""
    n, k = len(numbers), len(pattern)
    starts = np.arange(max(0, n - k + 1))
    for i in (0, k // 4, k // 2, k - 1):  # few positions are left to compare in full
        starts = starts[numbers[starts + i] == pattern[i]]
    found: list[int] = []
    for s in starts.tolist():
        if (not found or s >= found[-1] + k) and np.array_equal(numbers[s:s + k], pattern):
            found.append(s)
    return found
