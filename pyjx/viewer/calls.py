"""Which function calls which, and how often."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pyjx.core.records import Record
from pyjx.viewer.listing import HEAD, Listing

_NUMBER = re.compile(r"[.\d]+$")


class CallGraph(Record):
    """Functions, and bodies that run below a function. Alike ones of one caller are one node.

    Attributes:
      labels: the name of each node.
      rows: the first row of each node.
      counts: how many functions or bodies a node stands for.
      flops, traffic: what they cost together.
      edges: (caller, called, how many calls).
    """

    labels: list[str]
    rows: list[int]
    counts: list[int]
    flops: list[float]
    traffic: list[float]
    edges: list[tuple[int, int, int]]


def call_graph(listing: Listing) -> CallGraph:
    """The graph of the functions of a listing."""
    graph = _Graph(listing)
    for head in listing.heads:
        graph.node(("", head), listing.name[head], head)
    for head in listing.heads:
        graph.walk(head, head + 1, graph.ends[head])
    return CallGraph(graph.labels, graph.rows, graph.counts, graph.flops, graph.traffic,
                     [(a, b, n) for (a, b), n in graph.edges.items()])


class _Graph:
    def __init__(self, listing: Listing) -> None:
        self.listing = listing
        self.ends = listing.ends()
        self.labels: list[str] = []
        self.rows: list[int] = []
        self.counts: list[int] = []
        self.flops: list[float] = []
        self.traffic: list[float] = []
        self.edges: dict[tuple[int, int], int] = {}
        self._known: dict[tuple[str, int], int] = {}
        self._of_row: dict[int, int] = {}

    def node(self, key: tuple[str, int], label: str, row: int) -> int:
        """The node of a row: a function's own, or that of alike bodies below another one."""
        number = self._known.get(key)
        if number is None:
            number = self._known[key] = len(self.labels)
            self.labels.append(label)
            self.rows.append(row)
            self.counts.append(0)
            self.flops.append(0.0)
            self.traffic.append(0.0)
        self._of_row[row] = number
        self.counts[number] += 1
        self.flops[number] += self.listing.flops[row]
        self.traffic[number] += self.listing.traffic[row]
        return number

    def walk(self, caller: int, start: int, stop: int) -> None:
        """Add what the rows between two others call."""
        for row, has_body in self._running(start, stop):
            inside = caller
            if has_body:
                label = self._label(row)
                inside = row
                parent = self._of_row[caller]
                self._edge(parent, self.node((label, parent), label, row))
                self.walk(row, row + 1, self.ends[row])
            for head in self.listing.calls.get(row, ()):
                self._edge(self._of_row[inside], self._of_row[head])

    def _running(self, start: int, stop: int) -> Iterator[tuple[int, bool]]:
        """The rows of some others, as deep as it needs, that call functions or run bodies."""
        listing = self.listing
        row = start
        while row < stop:
            runs = listing.kind[row] != HEAD and listing.bodies.get(row, (0.0, 0.0))[1] > 0
            has_body = runs and self.ends[row] > row + 1
            if has_body or row in listing.calls:
                yield row, has_body
            row = self.ends[row] if has_body else row + 1

    def _label(self, row: int) -> str:
        text = self.listing.text[row].removeprefix("ROOT ")
        operation = self.listing.operation[row]
        if text.startswith("%") and operation in ("call", "fusion"):
            return _NUMBER.sub("", text[1:].partition(" ")[0]).strip("_") or operation
        return operation.removeprefix("stablehlo.")

    def _edge(self, caller: int, called: int) -> None:
        self.edges[caller, called] = self.edges.get((caller, called), 0) + 1
