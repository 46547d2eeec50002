"""The page: one HTML file that needs nothing else, with the program in it as compressed columns."""

from __future__ import annotations

import base64
import html
import json
import linecache
import os
import zlib
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING, Any

from pyjx import configuration
from pyjx.core.jaxpr import ClosedJaxpr
from pyjx.core.trace import collector_paused
from pyjx.core.value_texts import shortened
from pyjx.runtime.jit import jit
from pyjx.viewer import hlo as hlo_forms
from pyjx.viewer import stablehlo as stablehlo_forms
from pyjx.viewer.graphs import call_graph
from pyjx.viewer.jaxprs import Pass, changes, jaxpr_listing, jaxpr_of, passes
from pyjx.viewer.links import count_kernels, links, name_products, name_transfers
from pyjx.viewer.listing import UNKNOWN, Listing, Places
from pyjx.viewer.memory import MemoryCurve, memory, thinned
from pyjx.viewer.ranking import (
    BALANCES,
    Costs,
    Origins,
    Scopes,
    carried,
    costs,
    divided,
    lines_of,
    origins,
    tables,
)

if TYPE_CHECKING:
    from pyjx.runtime.budgets import MemoryProfile
    from pyjx.runtime.stages import Traced

# In the order in which they are read.
_SCRIPTS = ("program.js", "rows.js", "highlight.js", "pane.js", "search.js", "costs.js",
            "details.js", "memory.js", "graph.js", "flow.js", "passes.js", "app.js")
_AROUND = 2  # lines of source above and below one that is shown


def page(title: str, *, jaxpr: ClosedJaxpr | Traced | None = None, stablehlo: str | None = None,
         hlo: str | None = None, cost: Mapping[str, float | str] | None = None,
         measured: Mapping[str, float] | None = None, balance: float = BALANCES["cpu"],
         passes: Iterable[Pass] = (), memory: MemoryProfile | None = None) -> str:
    """An HTML page that shows the forms of a program side by side.

    It is one file, reads nothing over the network and runs from a disk. An operation shows its
    line of the source, its relatives in the other forms, shapes and cost.

    Args:
      title: the name of the program.
      jaxpr: as `jax.jit(f).trace(*args)`, which knows what is donated, or its `jaxpr`.
      stablehlo: text; that of `lowered.as_text(debug_info=True)` knows the lines of the source.
      hlo: text before or after XLA's passes, such as `compiled.as_text()`.
      cost: figures to show above, by their names, such as XLA's estimates.
      measured: seconds that operations of the HLO took, by their names.
      balance: floating-point operations that the device does while it moves a byte; what was not
        measured takes the larger of both times.
      passes: rewrites of the jaxpr, as `pyjx.inspect.passes` gives them.
      memory: as `traced.memory()` expects it: both curves where there is a budget.

    >>> import pyjx as jax
    >>> traced = jax.jit(lambda x: x + 1).trace(1.0)
    >>> page("add", jaxpr=traced.jaxpr)[:15]
    '<!doctype html>'
    """
    with collector_paused():
        document = program(jaxpr=jaxpr, stablehlo=stablehlo, hlo=hlo, cost=cost,
                           measured=measured, balance=balance)
        document["title"] = title
        document["passes"] = changes(passes)
        document["budget"] = _both_curves(memory)
        data = zlib.compress(json.dumps(document, separators=(",", ":")).encode(), 9)
    assets = files("pyjx.viewer").joinpath("assets")
    read = {name: assets.joinpath(name).read_text(encoding="utf-8")
            for name in ("viewer.html", "viewer.css", *_SCRIPTS)}
    return Template(read["viewer.html"]).substitute(
        title=html.escape(title), style=read["viewer.css"],
        script="\n".join([read[name] for name in _SCRIPTS]),
        program=base64.b64encode(data).decode())


def _both_curves(memory: MemoryProfile | None) -> dict[str, Any] | None:
    """What is expected without a budget and within it; None where there is none."""
    if memory is None or memory.budget is None:
        return None
    return {"bytes": memory.budget, "before": thinned(memory.before),
            "after": thinned(memory.after),
            "largest": list(map(str, memory.largest)), "again": list(map(str, memory.given_up))}


def program(*, jaxpr: ClosedJaxpr | Traced | None = None, stablehlo: str | None = None,
            hlo: str | None = None, cost: Mapping[str, float | str] | None = None,
            measured: Mapping[str, float] | None = None, balance: float = BALANCES["cpu"]
            ) -> dict[str, Any]:
    """What the page knows of a program, for `json.dumps`."""
    places = Places()
    listings: list[Listing] = []
    constants: list[frozenset[str]] = []
    if jaxpr is not None:
        listings.append(jaxpr_listing(jaxpr_of("page", "jaxpr", jaxpr), places,
                                      donated=getattr(jaxpr, "donate_argnums", ())))
        constants.append(frozenset())
    if stablehlo is not None:
        listings.append(stablehlo_forms.stablehlo_listing(stablehlo, places))
        constants.append(stablehlo_forms.FREE)
    if hlo is not None:
        optimised = "is_scheduled=true" in hlo[:hlo.find("\n")]
        listings.append(hlo_forms.hlo_listing(hlo, places, "Optimised HLO" if optimised else "HLO"))
        constants.append(hlo_forms.FREE)
    if not any(listing.heads for listing in listings):
        raise ValueError("page: expected a jaxpr, StableHLO text or HLO text with at least one "
                         "function, got none.")
    for listing in listings[1:] if jaxpr is not None else ():
        count_kernels(listing, listings[0], places)
    if hlo is not None and len(listings) > 1:
        name_products(listings[-1], listings[-2], places)
        name_transfers(listings[-1], listings[-2])
    strings = _Strings({"": 0})
    linked = links(listings, places)
    scopes = Scopes(listings[0], places, listings[0].scopes if jaxpr is not None else None)
    spent, found = _spent(listings, linked, places, balance, measured if hlo is not None else None)
    nodes = [scopes.of(listing, of_form.runs)
             for listing, of_form in zip(listings, spent, strict=True)]
    rankings = tables(listings, spent, found, places, scopes, constants[-1])
    return {
        "forms": [_form(*of_form, strings) for of_form in zip(
            listings, linked, constants, nodes, spent, strict=True)],
        "costs": {name: {**table, "lines": [[*strings.numbers([line[0]]), line[1], *rest]
                                            for line, *rest in table["lines"]],
                         "operations": [[*strings.numbers([o]), *rest]
                                        for o, *rest in table["operations"]]}
                  for name, table in rankings.items()},
        "measured": bool(measured),
        "balance": balance,
        "scopes": {"parent": scopes.parents, "label": strings.numbers(scopes.labels)},
        "places": _columns(places, strings),
        "source": _source(places),
        "figures": list((cost or {}).items()),
        "strings": list(strings),
    }


def _spent(listings: Sequence[Listing], linked: Sequence[tuple[list[int], list[int]]],
           places: Places, balance: float, measured: Mapping[str, float] | None
           ) -> tuple[list[Costs], Origins]:
    """The costs of each form: those of the last one, if it is what runs, where its relatives are in
    the others. And the origins of its rows in the first one."""
    last, *before = [costs(listings[-1], balance, measured),
                     *[costs(listing, balance) for listing in listings[:-1]]]
    runs = measured is not None or listings[-1].title == "Optimised HLO"
    known = {group for group in linked[-1][0] if group != UNKNOWN}

    def keys(listing: Listing, links: tuple[list[int], list[int]]) -> list[Sequence[Hashable]]:
        """Its group; of what has no relative by that its site, else its position or its line; any
        of the line, as is what XLA has made without a name."""
        group, site = ([None if n == UNKNOWN else n for n in column] for column in links)
        at, lines = [*map(places.position, listing.place)], lines_of(listing, places)
        if listing is listings[-1]:
            return [group, site, at, places.own_lines(listing), lines]
        stray = [g not in known for g in group]
        columns: Sequence[Sequence[Hashable]] = (site, at, lines)
        return [group, *[[key if s else None for s, key in zip(stray, column, strict=True)]
                         for column in columns], lines]

    others, own = keys(listings[-1], linked[-1]), divided(listings[-1], last.own)
    found = [origins(listing, estimated, keys(listing, links), others)
             for listing, estimated, links in zip(listings, before, linked, strict=False)]
    rows = range(len(listings[-1]))
    itself = Origins([[(row, 1.0)] for row in rows], [*rows])
    if runs:
        before = [carried(listing, estimated, of_form, own)
                  for listing, estimated, of_form in zip(listings, before, found, strict=False)]
    return [*before, last], [*found, itself][0]


class _Strings(dict[str, int]):
    """Strings by their numbers."""

    def numbers(self, strings: Iterable[str]) -> list[int]:
        return [self.setdefault(s, len(self)) for s in strings]


def _form(listing: Listing, links: tuple[list[int], list[int]], constants: frozenset[str],
          nodes: list[int], spent: Costs, strings: _Strings) -> dict[str, Any]:
    steps = MemoryCurve([], [], 0, []) if listing.unsized else memory(listing, constants)
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
        "flops": _whole(listing.flops, listing.unsized),
        "traffic": _whole(listing.traffic, listing.unsized),
        "unsized": bool(listing.unsized),
        "devices": listing.devices,
        "byOne": listing.by_one,
        "exact": listing.exact,
        "entry": listing.entry,
        "share": [round(x, 5) or 0 for x in spent.shares],
        "scope": nodes,
        "operands": operands,  # how many there are and how far above they stand, row by row
        "fused": [row for row in listing.bodies if not listing.runs_bodies(row)],
        "calls": [[row, *heads] for row, heads in listing.calls.items()],
        "memory": steps._asdict(),
        "graph": call_graph(listing)._asdict(),
    }


def _whole(numbers: Sequence[float], unknown: Collection[int]) -> list[float]:
    """The numbers, written without a fraction where they have none; -1 for rows of which they are
    not known."""
    return [-1 if row in unknown else int(x) if x == int(x) else x for row, x in enumerate(numbers)]


def _columns(places: Places, strings: _Strings) -> dict[str, Sequence[int]]:
    files, functions, lines, columns, callers = zip(*places.frames, strict=True) \
        if places.frames else [()] * 5
    return {"file": strings.numbers(files), "function": strings.numbers(functions),
            "line": lines, "column": columns, "caller": callers}


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


class View:
    """A page, shown in a frame by notebooks.

    Attributes:
      html: the page, as `pyjx.viewer.page` gives it.
      height: of the frame, in pixels.
    """

    __slots__ = ("height", "html")

    def __init__(self, page_html: str, height: int) -> None:
        self.html = page_html
        self.height = height

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.html)

    def _repr_html_(self) -> str:
        return (f'<iframe srcdoc="{html.escape(self.html)}" width="100%" height="{self.height}" '
                'style="border:0" title="Program" sandbox="allow-scripts"></iframe>')

    def __repr__(self) -> str:
        return f"View({len(self.html):,} characters of HTML; save(path) writes them)"


def show(fun: Callable[..., Any], *args: Any, optimised: bool = True, height: int = 720,
         **kwargs: Any) -> View:
    """The forms that a function takes for some arguments, for a notebook to show.

    Args:
      fun: a function, jitted or not.
      *args: its arguments; `jax.ShapeDtypeStruct` will do.
      optimised: whether to compile it, for the optimised HLO. That may take long.
      height: of the frame, in pixels.
      **kwargs: its arguments by name.

    >>> import pyjx as jax
    >>> view = jax.viewer.show(lambda x: x + 1, 1.0)
    >>> view.html[:15]
    '<!doctype html>'
    """
    if not callable(fun):
        raise TypeError(f"show: fun must be a function, got {shortened(fun)}.")
    function = fun if hasattr(fun, "trace") else jit(fun)
    traced = function.trace(*args, **kwargs)
    lowered = traced.lower()
    optimised_hlo = None
    if optimised:
        with configuration.cache(False):  # a program on disk shows where its source was then
            optimised_hlo = lowered.compile().as_text()
    platform = lowered._platform
    return View(page(traced.fun_name, jaxpr=traced, hlo=optimised_hlo,
                     stablehlo=lowered.as_text(debug_info=True), balance=BALANCES[platform],
                     passes=passes(lowered),
                     memory=lowered._expected_memory), height)
