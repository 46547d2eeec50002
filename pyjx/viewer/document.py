"""The page: one HTML file that needs nothing else, with the program in it as compressed columns."""

from __future__ import annotations

import base64
import html
import json
import linecache
import zlib
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from string import Template
from typing import Any

from pyjx.core.jaxpr import ClosedJaxpr
from pyjx.core.trace import collector_paused
from pyjx.viewer import hlo as hlo_forms
from pyjx.viewer import stablehlo as stablehlo_forms
from pyjx.viewer.calls import call_graph
from pyjx.viewer.hlo import hlo_listing
from pyjx.viewer.jaxprs import jaxpr_listing
from pyjx.viewer.links import groups, sites
from pyjx.viewer.listing import Listing, Places
from pyjx.viewer.liveness import memory
from pyjx.viewer.stablehlo import stablehlo_listing

# In the order in which they are read.
_SCRIPTS = ("program.js", "rows.js", "highlight.js", "pane.js", "details.js", "memory.js",
            "calls.js", "app.js")
_AROUND = 2  # lines of source above and below one that is shown


def page(title: str, *, jaxpr: ClosedJaxpr | None = None, stablehlo: str | None = None,
         hlo: str | None = None, cost: Mapping[str, float | str] | None = None) -> str:
    """An HTML page that shows the forms of a program side by side.

    It is one file, reads nothing over the network and runs from a disk. An operation shows its
    line of the source, its relatives in the other forms, shapes and cost.

    Args:
      title: the name of the program.
      jaxpr: as `jax.jit(f).trace(*args).jaxpr`.
      stablehlo: text; that of `lowered.as_text(debug_info=True)` knows the lines of the source.
      hlo: text before or after XLA's passes, such as `compiled.as_text()`.
      cost: figures to show above, by their names, such as XLA's estimates.

    >>> import pyjx as jax
    >>> traced = jax.jit(lambda x: x + 1).trace(1.0)
    >>> page("add", jaxpr=traced.jaxpr)[:15]
    '<!doctype html>'
    """
    with collector_paused():
        document = program(jaxpr=jaxpr, stablehlo=stablehlo, hlo=hlo, cost=cost)
        document["title"] = title
        data = zlib.compress(json.dumps(document, separators=(",", ":")).encode(), 9)
    assets = files("pyjx.viewer").joinpath("assets")
    read = {name: assets.joinpath(name).read_text(encoding="utf-8")
            for name in ("viewer.html", "viewer.css", *_SCRIPTS)}
    return Template(read["viewer.html"]).substitute(
        title=html.escape(title), style=read["viewer.css"],
        script="\n".join([read[name] for name in _SCRIPTS]),
        program=base64.b64encode(data).decode())


def program(*, jaxpr: ClosedJaxpr | None = None, stablehlo: str | None = None,
            hlo: str | None = None, cost: Mapping[str, float | str] | None = None
            ) -> dict[str, Any]:
    """What the page knows of a program, for `json.dumps`."""
    places = Places()
    listings: list[Listing] = []
    constants: list[frozenset[str]] = []
    if jaxpr is not None:
        listings.append(jaxpr_listing(jaxpr, places))
        constants.append(frozenset())
    if stablehlo is not None:
        listings.append(stablehlo_listing(stablehlo, places))
        constants.append(stablehlo_forms.FREE)
    if hlo is not None:
        optimised = "is_scheduled=true" in hlo[:hlo.find("\n")]
        listings.append(hlo_listing(hlo, places, "Optimised HLO" if optimised else "HLO"))
        constants.append(hlo_forms.FREE)
    if not any(listing.heads for listing in listings):
        raise ValueError("page: expected a jaxpr, StableHLO text or HLO text with at least one "
                         "function, got none.")
    strings = _Strings()
    linked = zip(groups(listings, places), sites(listings, places), strict=True)
    return {
        "forms": [_form(listing, links, free, strings)
                  for listing, links, free in zip(listings, linked, constants, strict=True)],
        "places": _columns(places, strings),
        "source": _source(places),
        "figures": list((cost or {}).items()),
        "strings": strings.all,
    }


class _Strings:
    """Strings by their numbers."""

    def __init__(self) -> None:
        self.all: list[str] = [""]
        self._numbers = {"": 0}

    def numbers(self, strings: Iterable[str]) -> list[int]:
        found = []
        for s in strings:
            number = self._numbers.get(s)
            if number is None:
                number = self._numbers[s] = len(self.all)
                self.all.append(s)
            found.append(number)
        return found


def _form(listing: Listing, links: tuple[list[int], list[int]], constants: frozenset[str],
          strings: _Strings) -> dict[str, Any]:
    steps = memory(listing, constants)
    operands = []
    for row, read in enumerate(listing.operands):
        operands.append(len(read))
        operands += [row - o for o in read]
    return {
        "title": listing.title,
        "text": "\n".join(listing.text),
        "depth": listing.depth,
        "kind": listing.kind,
        "operation": strings.numbers(listing.operation),
        "shape": strings.numbers(listing.shape),
        "name": strings.numbers(listing.name),
        "place": listing.place,
        "group": links[0],
        "site": links[1],
        "size": listing.size,
        "flops": _whole(listing.flops),
        "traffic": _whole(listing.traffic),
        "operands": operands,  # how many there are and how far above they stand, row by row
        "fused": [row for row, (_, traffic) in listing.bodies.items() if not traffic],
        "calls": [[row, *heads] for row, heads in listing.calls.items()],
        "memory": steps._asdict(),
        "graph": call_graph(listing)._asdict(),
    }


def _whole(numbers: Sequence[float]) -> list[float]:
    """The numbers, written without a fraction where they have none."""
    return [int(x) if x == int(x) else x for x in numbers]


def _columns(places: Places, strings: _Strings) -> dict[str, list[int]]:
    frames = places.frames
    return {
        "file": strings.numbers([f[0] for f in frames]),
        "function": strings.numbers([f[1] for f in frames]),
        "line": [f[2] for f in frames],
        "column": [f[3] for f in frames],
        "caller": [f[4] for f in frames],
    }


def _source(places: Places) -> dict[str, dict[int, str]]:
    """The lines that places name, and those around them, of the files that can be read."""
    wanted: dict[str, set[int]] = {}
    for file, _, line, _, _ in places.frames:
        wanted.setdefault(file, set()).update(range(max(1, line - _AROUND), line + _AROUND + 1))
    source: dict[str, dict[int, str]] = {}
    for file, numbers in wanted.items():
        lines = linecache.getlines(file)
        source[file] = {n: lines[n - 1].rstrip() for n in sorted(numbers) if n <= len(lines)}
    return source
