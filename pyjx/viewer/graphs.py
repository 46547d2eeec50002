"""Graphs of programs: which function calls which and how often, and Graphviz's language."""

from __future__ import annotations

import re

from pyjx.core.jaxpr import ClosedJaxpr
from pyjx.core.records import Record
from pyjx.viewer.hlo import hlo_listing
from pyjx.viewer.jaxprs import jaxpr_listing, jaxpr_of
from pyjx.viewer.listing import CLOSING, HEAD, OPERATION, Listing, Places
from pyjx.viewer.stablehlo import stablehlo_listing

_NUMBER = re.compile(r"[.\d]+$")


class CallGraph(Record):
    """Functions, and bodies that run below a function. Alike ones of one caller are one node.

    Attributes:
      labels: the name of each node.
      rows: the first row of each node.
      counts: how many functions or bodies a node stands for.
      flops, traffic: what they cost together; -1 where that is not known.
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
        graph.walk(head, head)
    graph.found.edges.extend([(a, b, n) for (a, b), n in graph.edges.items()])
    return graph.found


class _Graph:
    def __init__(self, listing: Listing) -> None:
        self.listing = listing
        self.ends = listing.ends()
        self.found = CallGraph([], [], [], [], [], [])
        self.edges: dict[tuple[int, int], int] = {}
        self._known: dict[tuple[str, int], int] = {}
        self._of_row: dict[int, int] = {}

    def node(self, key: tuple[str, int], label: str, row: int) -> int:
        """The node of a row: a function's own, or that of alike bodies below another one."""
        found, listing = self.found, self.listing
        number = self._known.setdefault(key, len(found.labels))
        if number == len(found.labels):
            found.labels.append(label)
            found.rows.append(row)
            found.counts.append(0)
            found.flops.append(0.0)
            found.traffic.append(0.0)
        self._of_row[row] = number
        found.counts[number] += 1
        for sums, numbers in ((found.flops, listing.flops), (found.traffic, listing.traffic)):
            known = row not in listing.unsized and sums[number] >= 0
            sums[number] = sums[number] + numbers[row] if known else -1.0
        return number

    def walk(self, caller: int, row: int) -> None:
        """Add what a row calls, and what is below it."""
        listing, inside = self.listing, caller
        if listing.runs_bodies(row) and self.ends[row] > row + 1:
            label, parent, inside = self._label(row), self._of_row[caller], row
            self._edge(parent, self.node((label, parent), label, row))
        for body in listing.below(row, self.ends):
            if listing.kind[body[0]] == HEAD:
                self._edge(self._of_row[inside], self._of_row[body[0]])
            else:
                for inner in body:
                    self.walk(inside, inner)

    def _label(self, row: int) -> str:
        text = self.listing.text[row].removeprefix("ROOT ")
        operation = self.listing.operation[row]
        if text.startswith("%") and operation in ("call", "fusion"):
            return _NUMBER.sub("", text[1:].partition(" ")[0]).strip("_") or operation
        return operation.removeprefix("stablehlo.")

    def _edge(self, caller: int, called: int) -> None:
        self.edges[caller, called] = self.edges.get((caller, called), 0) + 1


_LONGEST = 60  # characters of a label's line


def dot(program: ClosedJaxpr | str, *, calls: bool = False) -> str:
    """A program as a graph for Graphviz: operations, and an edge for each value that one reads.

    Functions, and bodies of operations, are clusters.

    Args:
      program: a jaxpr, StableHLO text or HLO text.
      calls: whether to show functions and which calls which instead.

    >>> import pyjx as jax
    >>> import pyjx.numpy as jnp
    >>> print(dot(jax.make_jaxpr(lambda x: jnp.sin(x) * x)(1.0)))
    digraph program {
      rankdir=TB; node [shape=box, style=rounded, fontname="Helvetica", fontsize=10];
      subgraph cluster_0 {
        label="<lambda>"; fontname="Helvetica"; fontsize=11;
        n0 [label="arguments", shape=plaintext];
        n1 [label="sin\\nf32[]"];
        n2 [label="mul\\nf32[]"];
        n3 [label="results", shape=plaintext];
      }
      n0 -> n1;
      n1 -> n2;
      n0 -> n2;
      n2 -> n3;
    }
    """
    listing = _listing(program)
    return _calls(listing) if calls else _operations(listing)


def _listing(program: ClosedJaxpr | str) -> Listing:
    if not isinstance(program, str):
        return jaxpr_listing(jaxpr_of("dot", "program", program), Places())
    listing = hlo_listing(program, Places(), "HLO") if program.lstrip().startswith("HloModule") \
        else stablehlo_listing(program, Places())
    if not listing.heads:
        raise ValueError("dot: expected a jaxpr, StableHLO text or HLO text with at least one "
                         f"function, got text that begins with {program[:60]!r}.")
    return listing


def _operations(listing: Listing) -> str:
    lines = ["digraph program {",
             '  rankdir=TB; node [shape=box, style=rounded, fontname="Helvetica", fontsize=10];']
    ends = listing.ends()
    for head in listing.heads:
        lines += _cluster(listing, head, ends, "  ")
    shown = _shown(listing)
    for row, operands in enumerate(listing.operands):
        lines += [f"  n{o} -> n{row};" for o in operands if row in shown and o in shown]
    for row, heads in listing.calls.items():
        lines += [f'  n{row} -> n{head} [style=dotted, label="calls"];' for head in heads]
    return "\n".join([*lines, "}"])


def _shown(listing: Listing) -> set[int]:
    """The rows that are nodes."""
    return {i for i, kind in enumerate(listing.kind) if kind != CLOSING or listing.operands[i]}


def _cluster(listing: Listing, row: int, ends: list[int], pad: str) -> list[str]:
    """A function, or an operation with bodies, and what is in it."""
    name = listing.name[row] if listing.kind[row] == HEAD else listing.operation[row]
    lines = [f"{pad}subgraph cluster_{row} {{",
             f'{pad}  label={_quoted(name)}; fontname="Helvetica"; fontsize=11;',
             _node(listing, row, pad + "  ")]
    inner = row + 1
    while inner < ends[row]:
        if ends[inner] > inner + 1:
            lines += _cluster(listing, inner, ends, pad + "  ")
        elif listing.kind[inner] == OPERATION or listing.operands[inner]:
            lines.append(_node(listing, inner, pad + "  "))
        inner = ends[inner]
    return [*lines, f"{pad}}}"]


def _node(listing: Listing, row: int, pad: str) -> str:
    kind = listing.kind[row]
    if kind == OPERATION:
        lines = [listing.operation[row], listing.shape[row]]
        return f"{pad}n{row} [label={_quoted(*filter(None, lines))}];"
    label = "results" if kind == CLOSING else "arguments"
    return f'{pad}n{row} [label="{label}", shape=plaintext];'


def _quoted(*lines: str) -> str:
    cut = [line if len(line) <= _LONGEST else line[:_LONGEST - 1] + "…" for line in lines]
    return '"' + "\\n".join([c.replace("\\", "\\\\").replace('"', '\\"') for c in cut]) + '"'


def _calls(listing: Listing) -> str:
    graph = call_graph(listing)
    lines = ["digraph calls {",
             '  rankdir=LR; node [shape=box, style=rounded, fontname="Helvetica", fontsize=10];']
    for i, (label, count) in enumerate(zip(graph.labels, graph.counts, strict=True)):
        alike = f" (x{count})" if count > 1 else ""
        flops = "not known" if graph.flops[i] < 0 else f"{graph.flops[i]:.3g}"
        lines.append(f"  n{i} [label={_quoted(label + alike, f'{flops} FLOPs')}];")
    for caller, called, times in graph.edges:
        label = f' [label="x{times}"]' if times > 1 else ""
        lines.append(f"  n{caller} -> n{called}{label};")
    return "\n".join([*lines, "}"])
