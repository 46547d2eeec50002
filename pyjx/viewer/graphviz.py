"""Programs as graphs in Graphviz's language."""

from __future__ import annotations

from pyjx.core.jaxpr import ClosedJaxpr
from pyjx.viewer.calls import call_graph
from pyjx.viewer.hlo import hlo_listing
from pyjx.viewer.jaxprs import jaxpr_listing
from pyjx.viewer.listing import CLOSING, HEAD, OPERATION, Listing, Places
from pyjx.viewer.stablehlo import stablehlo_listing

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
        return jaxpr_listing(program, Places())
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
        lines.append(f"  n{i} [label={_quoted(label + alike, f'{graph.flops[i]:.3g} FLOPs')}];")
    for caller, called, times in graph.edges:
        label = f' [label="x{times}"]' if times > 1 else ""
        lines.append(f"  n{caller} -> n{called}{label};")
    return "\n".join([*lines, "}"])
