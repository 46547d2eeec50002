"""What costs most: time, memory, and what crosses between devices; by the user's lines, by parts
of the program and by operation."""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any

from pyjx.core.records import Record
from pyjx.runtime.touched import plain
from pyjx.viewer.hlo import instruction_names
from pyjx.viewer.listing import (
    APPLIED,
    FUSED,
    HEAD,
    NOTE,
    ONCE,
    OPERATION,
    UNKNOWN,
    Listing,
    Places,
    split,
)
from pyjx.viewer.quantities import bytes_of, hlo_arrays, tensors

# Operations that a device does while it moves a byte, in the middle of those that are sold.
BALANCES = {"cpu": 10.0, "cuda": 200.0, "rocm": 200.0, "tpu": 240.0}
NO_LINE = ("", 0)  # what is of none, so that all lines are the whole
_MOST = 200  # rows of a table
_MOST_CALLERS = 100  # scopes around the calls of a function; they multiply from call to call
_NEAR = 6  # steps to what has a line from what has none
_CROSSING = frozenset((
    "all_gather", "all_gather_invariant", "all_reduce", "all_to_all", "collective_broadcast",
    "collective_permute", "infeed", "outfeed", "pbroadcast", "pmax", "pmin", "ppermute", "psum",
    "psum_invariant", "ragged_all_to_all", "recv", "reduce_scatter", "send"))
_TYPE = re.compile(r"tensor<[^<>]*(?:<[^<>]*>)?[^<>]*>|\b[a-z]\w*(?:<\w+>)?\[[^\]]*\]")
_ENCLOSED = re.compile(r"^[\w.\-]+\((.*)\)$")
# What is no scope of the user's in programs that are text alone: loops, the library's calls, and
# operations that become several others where they stand.
_PLUMBING = frozenset((
    "body", "checkpoint", "closed_call", "cond", "exp2", "integer_pow", "log2", "logistic",
    "logistic_grad", "mulhi", "one_minus_square", "rematted_computation", "scan", "shard_map",
    "tanh_grad", "while"))


class Costs(Record):
    """What a program spends, row by row.

    Attributes:
      shares: of the whole time, with all that a row runs, over all its runs.
      own: of the whole time, what is of no other row.
      runs: how often each row runs.
      whole: the time; in bytes that could be moved meanwhile, or seconds if measured.
    """

    shares: list[float]
    own: list[float]
    runs: list[float]
    whole: float


def costs(listing: Listing, balance: float = BALANCES["cpu"],
          measured: Mapping[str, float] | None = None) -> Costs:
    """The time of each row: what was measured, by the names of operations in HLO; else the larger
    of those for arithmetic and for moving what it reads and writes. None are known where sizes are
    not."""
    ends = listing.ends()
    weights = [0.0 if listing.unsized else max(f / balance, t)
               for f, t in zip(listing.flops, listing.traffic, strict=True)]
    for row in listing.bodies:
        if listing.runs_bodies(row) and (ends[row] > row + 1 or row in listing.calls):
            weights[row] = 0.0
    each = _add_up(listing, ends, list(weights), listing.alternatives)
    for row in filter(listing.is_fused, listing.bodies):  # in fusions what these do counts
        if ends[row] > row + 1:
            weights[row] = 0.0
    runs = _runs(listing, ends, each)
    own = _own(listing, ends, [a * n for a, n in zip(each, runs, strict=True)], weights)
    if measured:
        own = _measured(listing, ends, own, measured)
    return _taken(listing, ends, runs, own)


def _measured(listing: Listing, ends: Sequence[int], own: Sequence[float],
              measured: Mapping[str, float]) -> list[float]:
    """What was measured, where the time of an operation of which nothing inside was, such as a
    fusion or a loop that is one kernel, is divided among what it does as it would be by `own`."""
    names, found = instruction_names(listing), [0.0] * len(listing)
    for row, name in enumerate(names):
        if seconds := measured.get(name):
            inside = listing.inside(row, ends)
            if any([measured.get(names[r]) for r in inside]):
                continue
            parts = sum([own[r] for r in inside])
            for r in inside if parts else ():
                found[r] += seconds * own[r] / parts
            found[row] += 0.0 if parts else seconds
    return found


def _taken(listing: Listing, ends: Sequence[int], runs: Sequence[float], own: Sequence[float],
           whole: float | None = None) -> Costs:
    """The costs of a form whose rows take so much by themselves, of the whole or of their sum."""
    each = [o / (n or 1.0) for o, n in zip(own, runs, strict=True)]
    for row in filter(listing.is_fused, listing.bodies):
        each[row] = sum(own[row:ends[row]]) / (runs[row] or 1.0)
    each = _add_up(listing, ends, each)
    whole = whole or each[listing.entry] or 1.0
    return Costs([e * (n or 1.0) / whole for e, n in zip(each, runs, strict=True)],
                 [o / whole for o in own], list(runs), whole)


class Origins(Record):
    """From which rows of a form those of another one come, which is closer to what runs.

    Attributes:
      rows: for sets of such rows each with its part, which is as much as it would take of their
        time; the first set is empty.
      sets: for each row of the other form the number of its set.
    """

    rows: list[Sequence[tuple[int, float]]]
    sets: list[int]

    def sums(self, amounts: Sequence[float], length: int) -> list[float]:
        """What each of so many rows has of the amounts of those that come from it."""
        of_sets, found = [0.0] * len(self.rows), [0.0] * length
        for number, amount in zip(self.sets, amounts, strict=True):
            of_sets[number] += amount
        for rows, amount in zip(self.rows, of_sets, strict=True):
            for row, part in rows:
                found[row] += amount * part
        return found

    def largest(self, amounts: Sequence[float], sizes: Sequence[float]) -> list[float]:
        """The largest array that comes from each of the rows, which have such sizes. Of several
        rows those made it that are as large, if any is."""
        found = [0.0] * len(sizes)
        for number, amount in set(zip(self.sets, amounts, strict=True)):
            rows = [row for row, _ in self.rows[number]]
            for row in [r for r in rows if sizes[r] >= amount] or rows:
                found[row] = max(found[row], amount)
        return found


def origins(listing: Listing, spent: Costs, keys: Sequence[Sequence[Hashable]],
            others: Sequence[Sequence[Hashable]]) -> Origins:
    """The rows of a form with the same key as those of another one. `keys` are several for each
    row, the closest first, and `others` those of the other form; none is no key."""
    found, columns = Origins([()], []), list[dict[Hashable, int]]()
    for column in keys:
        rows = dict[Hashable, list[int]]()
        for row, key in enumerate(column):
            if key is not None and listing.kind[row] == OPERATION:
                rows.setdefault(key, []).append(row)
        columns.append({key: k for k, key in enumerate(rows, len(found.rows))})
        found.rows.extend([_parts(some, spent.own) for some in rows.values()])
    found.sets.extend([next((of[key] for of, key in zip(columns, row, strict=True) if key in of), 0)
                       for row in zip(*others, strict=True)])
    return found


def _parts(rows: Sequence[int], own: Sequence[float]) -> Sequence[tuple[int, float]]:
    whole = sum([own[r] for r in rows])
    return [(r, own[r] / whole if whole else 1 / len(rows)) for r in rows if own[r] or not whole]


def carried(listing: Listing, estimated: Costs, found: Origins, own: Sequence[float]) -> Costs:
    """The costs of a form as another one has them: what each row of that one takes is of its
    origins."""
    mine = found.sums(own, len(listing))
    return _taken(listing, listing.ends(), estimated.runs, mine, 1.0)


def _add_up(listing: Listing, ends: Sequence[int], each: list[float],
            alternatives: Collection[int] = ()) -> list[float]:
    """The time of one run of each row, with that of the bodies that it runs: of alternatives with
    that of the dearest."""
    for row, below in listing.inner_first(ends):
        bodies = [sum([each[r] for r in body]) for body in below]
        if listing.kind[row] in (HEAD, NOTE):
            each[row] = sum(bodies)
        elif listing.runs_bodies(row) and any(bodies):
            times = listing.bodies[row].each(len(bodies))
            shares = [n * body for n, body in zip(times, bodies, strict=False)]
            each[row] += max(shares) if row in alternatives else sum(shares)
    return each


def _runs(listing: Listing, ends: Sequence[int], each: Sequence[float]) -> list[float]:
    """How often each row runs; of alternatives the dearest does."""
    runs = [0.0] * len(listing)
    runs[listing.entry] = 1.0
    for head in _callers_first(listing, ends):
        for row in range(head, ends[head]):
            how = listing.bodies.get(row, ONCE).how
            bodies = [] if how == APPLIED else listing.below(row, ends)
            if how == FUSED:  # functions are not of this row alone
                bodies = [body for body in bodies if listing.kind[body[0]] != HEAD]
            if row in listing.alternatives:
                bodies = [max(bodies, key=lambda body: sum([each[r] for r in body]), default=[])]
            times = listing.bodies.get(row, ONCE).each(len(bodies))
            for n, body in zip(times, bodies, strict=False):
                for inner in body:
                    runs[inner] += runs[row] * n
    return runs


def _callers_first(listing: Listing, ends: Sequence[int]) -> list[int]:
    """The heads of the functions that run, each behind all that call it."""
    order: list[int] = []

    def visit(head: int, seen: set[int]) -> None:
        seen.add(head)
        for row in range(head, ends[head]):
            for called in listing.calls.get(row, ()):
                if called not in seen:
                    visit(called, seen)
        order.append(head)

    visit(listing.entry, set())
    return order[::-1]


def _own(listing: Listing, ends: Sequence[int], times: Sequence[float],
         weights: Sequence[float]) -> list[float]:
    """What of the time of rows is of no other: that of a fusion is divided among what it does."""
    own = [0.0] * len(listing)
    row = 0
    while row < len(listing):
        inside = range(row + 1, ends[row])
        parts = sum([weights[r] for r in inside]) if listing.is_fused(row) else 0.0
        if parts:
            for r in inside:
                own[r] = times[row] * weights[r] / parts
            row = ends[row]
            continue
        if listing.kind[row] == OPERATION and not (
                listing.runs_bodies(row) and (inside or row in listing.calls)):
            own[row] = times[row]
        row += 1
    return own


def crosses(operation: str) -> bool:
    """Whether an operation moves values between devices, or to the host or from it.

    >>> [crosses(o) for o in ("all-reduce-start", "stablehlo.all_gather", "psum", "reduce")]
    [True, True, True, False]
    """
    return plain(operation) in _CROSSING


def _picks_of_moves(listing: Listing) -> dict[int, tuple[int, float]]:
    """For each row that picks an array of what moves several of them between devices, the row that
    moves them, and its part. XLA moves together what is of many lines, which the picks know; those
    that know none are of the line that moves them."""
    found = {}
    for row, number in listing.picks.items():
        for given in listing.operands[row]:  # none of what the text does not hold
            done = listing.operation[given].endswith("-done")
            source = next(iter(listing.operands[given]), given) if done else given
            sizes = listing.elements.get(given, ())
            if listing.place[row] == UNKNOWN and listing.place[source] != UNKNOWN:
                continue
            if number < len(sizes) and sizes[number] and crosses(listing.operation[source]):
                found[row] = source, sizes[number] / sum(sizes)
    return found


def divided(listing: Listing, amounts: Sequence[float]) -> list[float]:
    """The amounts, where that of what moves several arrays is of those that pick them."""
    found = list(amounts)
    for row, (source, part) in _picks_of_moves(listing).items():
        found[row] += part * amounts[source]
        rest = found[source] - part * amounts[source]
        found[source] = rest if rest > 1e-9 * amounts[source] else 0.0
    return found


def arrays(listing: Listing, runs: Sequence[float], constants: frozenset[str]) -> list[float]:
    """The bytes of the largest array that each operation makes in memory: of one that runs bodies
    what none of them makes, such as the stacked results of a loop."""
    ends, sizes = listing.ends(), [0.0] * len(listing)
    free = constants | {"parameter"}
    row = 0
    while row < len(listing):
        makes = listing.kind[row] == OPERATION and runs[row] and row not in listing.views and \
            row not in listing.unsized and listing.operation[row] not in free
        if makes:
            sizes[row] = float(max([n for n, _ in own_results(listing, row, ends)], default=0))
        row = ends[row] if listing.is_fused(row) else row + 1  # there nothing is in memory
    return sizes


def own_results(listing: Listing, row: int, ends: Sequence[int]) -> list[tuple[int, str]]:
    """Bytes and type of each result of an operation that is not made by its bodies."""
    types, most = _TYPE.findall(listing.shape[row]), listing.on_device(row)
    inner = set[str]()
    if listing.runs_bodies(row):
        for head in (row, *listing.calls.get(row, ())):
            for shape in listing.shape[head + 1:ends[head]]:
                inner.update(_TYPE.findall(shape))
    if len(types) < 2 and not inner:
        return [(most, listing.shape[row])]
    each = listing.elements.get(row, ())
    if len(each) != len(types):  # what starts a move has its operands, too
        each = [bytes_of(hlo_arrays(text) or tensors(text)) for text in types]
    return [(min(n, most), text) for n, text in zip(each, types, strict=True) if text not in inner]


_Path = tuple[str, ...]  # of scopes, outermost first


class Scopes:
    """The parts of a program as a tree: the user's functions, and named scopes in the function
    that is around all of the outermost one, in the place of those inside.

    Attributes:
      parents, labels: of each node; the parent of one at the top is `UNKNOWN`.
    """

    def __init__(self, listing: Listing, places: Places, names: Collection[str] | None) -> None:
        self.parents: list[int] = []
        self.labels: list[str] = []
        self._places = places
        # Of all scopes; None where the program is text, which does not tell them from other parts.
        self._names = None if names is None else {f for name in names for f in split(name, "/")}
        self._children: dict[tuple[int, str], int] = {}
        self._known: dict[tuple[str, int, _Path], int] = {}
        self._calls: dict[Listing, list[dict[_Path, float]]] = {}
        self._around: dict[str, list[str]] = {}  # the functions around an outermost scope
        opened: list[tuple[int, str]] = []  # depths and outermost scopes of what a row lies in
        for name, place, depth in zip(listing.name, listing.place, listing.depth, strict=True):
            while opened and opened[-1][0] >= depth:
                opened.pop()
            scope = next(iter(self._named(name)), opened[-1][1] if opened and not name else "")
            # What is in a body may have been traced for another program.
            if scope and place != UNKNOWN and scope not in [s for _, s in opened[-1:]]:
                functions = places.functions(place)
                around = self._around.setdefault(scope, functions)
                pairs = zip(around, functions, strict=False)
                around[:] = [a for a, _ in takewhile(lambda pair: pair[0] == pair[1], pairs)]
            opened.append((depth, scope))

    def of(self, listing: Listing, runs: Sequence[float]) -> list[int]:
        """The node of each row, or `UNKNOWN`; of what is called in several scopes the one of its
        own."""
        return [self._node(name, place, *(around if len(around) == 1 else ()))
                for name, place, around in zip(listing.name, listing.place,
                                               self._callers(listing, runs), strict=True)]

    def _callers(self, listing: Listing, runs: Sequence[float]) -> list[dict[_Path, float]]:
        """For each row the scopes around the calls of its function, and how many of its runs are
        in each; no scopes where there are too many."""
        if listing in self._calls:
            return self._calls[listing]
        ends, head = listing.ends(), listing.entry
        of_rows = self._calls[listing] = [{(): 1.0}] * len(listing)
        around: dict[int, dict[_Path, float]] = {head: {(): 1.0}}
        for head in _callers_first(listing, ends):
            if len(around[head]) > _MOST_CALLERS:
                around[head] = {(): 1.0}
            of_rows[head:ends[head]] = [around[head]] * (ends[head] - head)
            for row in range(head, ends[head]):
                calls = listing.calls.get(row, ())
                each = listing.bodies.get(row, ONCE).each(len(calls))  # bodies come before calls
                for called, n in zip(calls[::-1], each[::-1], strict=False):
                    inner, path = around.setdefault(called, {}), self._named(listing.name[row])
                    times = n * runs[row]
                    for outer, part in [*around[head].items()]:
                        inside = (*outer, *path)
                        inner[inside] = inner.get(inside, 0.0) + part * times / (runs[called] or 1)
        return of_rows

    def _node(self, name: str, place: int, outer: _Path = ()) -> int:
        node = self._known.get((name, place, outer))
        if node is None:
            node = UNKNOWN
            path = [*outer, *self._named(name)]
            if path:
                around = self._around.get(path[0], [])
                of_method = around and around[-1].startswith(f"{path[0]}.")  # of a class so named
                path = [*(around[:-1] if of_method else around), *path]
            for label in path or self._places.functions(place):
                child = self._children.setdefault((node, label), len(self.labels))
                if child == len(self.labels):
                    self.parents.append(node)
                    self.labels.append(label)
                node = child
            self._known[name, place, outer] = node
        return node

    def _named(self, name: str) -> list[str]:
        parts = split(name, "/")
        if "jit(" in parts[0]:  # what XLA inlines has the name of the call before its own
            parts = parts[max(i for i, part in enumerate(parts) if part == parts[0]):]
        found = [f for part in parts[:-1] if "jit(" not in part
                 for f in split(self._without_transformations(part), "/")]
        return [f for f in found if f and (f not in _PLUMBING if self._names is None
                                           else f in self._names)]

    def _without_transformations(self, part: str) -> str:
        while (inner := _ENCLOSED.match(part)) and part not in (self._names or ()):
            part = inner[1]
        return part

    def ranked(self, listing: Listing, runs: Sequence[float], amounts: Sequence[float],
               largest: bool) -> list[tuple[int, float, int]]:
        """For each node the sum, or the largest, of the amounts of rows in it, and the row of the
        largest; the dearest node first."""
        found = [(node, amount if largest else amount * part, row)
                 for row, (name, place, amount, around) in enumerate(zip(
                     listing.name, listing.place, amounts, self._callers(listing, runs),
                     strict=True)) if amount
                 for path, part in around.items()
                 for node in self._with_parents(self._node(name, place, path))]
        nodes, parts = [node for node, *_ in found], [part for _, part, _ in found]
        return [(node, amount, found[best][2])
                for node, amount, _, best in ranked(nodes, parts, largest)]

    def _with_parents(self, node: int) -> Iterator[int]:
        while node != UNKNOWN:
            yield node
            node = self.parents[node]


def ranked(keys: Sequence[Hashable], amounts: Sequence[float], largest: bool
           ) -> list[tuple[Any, float, int, int]]:
    """For each key the sum of its amounts, or the largest, how many there are, and the row of the
    largest; the dearest key first. What has no key or amount is left out.

    >>> ranked(["a", "b", "a", None], [1.0, 2.0, 3.0, 9.0], False)
    [('a', 4.0, 2, 2), ('b', 2.0, 1, 1)]
    """
    found: dict[Hashable, tuple[float, int, int]] = {}
    for row, (key, amount) in enumerate(zip(keys, amounts, strict=True)):
        if key is None or amount <= 0:
            continue
        total, count, best = found.get(key, (0.0, 0, row))
        found[key] = (max(total, amount) if largest else total + amount, count + 1,
                      row if amount > amounts[best] else best)
    return sorted([(key, *rest) for key, rest in found.items()], key=lambda r: -r[1])[:_MOST]


def lines_of(listing: Listing, places: Places) -> list[tuple[str, int] | None]:
    """For each row the user's line; what the compiler made has that of the nearest operation that
    reads it or that it reads, or else of the loop or the fusion that it is in."""
    lines, ends = places.own_lines(listing), listing.ends()
    users: dict[int, list[int]] = {}
    for row, operands in enumerate(listing.operands):
        for o in operands:
            users.setdefault(o, []).append(row)
    for row in listing.bodies:
        if lines[row] is None:
            lines[row] = next(filter(None, lines[ends[row] - 1:row:-1]), None)
    reached = [row for row, line in enumerate(lines) if line is not None]
    for _ in range(_NEAR if len(reached) < len(listing) else 0):
        start, reached = reached, []
        for neighbours in (listing.operands.__getitem__, lambda row: users.get(row, ())):
            for row in start:
                for r in neighbours(row):
                    if lines[r] is None and listing.kind[r] == OPERATION:
                        lines[r] = lines[row]
                        reached.append(r)
    for row, line in [*enumerate(lines)][::-1]:
        inside = slice(row + 1, ends[row])
        lines[inside] = [inner or line for inner in lines[inside]]
    return lines


def tables(listings: Sequence[Listing], spent: Sequence[Costs], found: Origins, places: Places,
           scopes: Scopes, constants: frozenset[str]) -> dict[str, dict[str, Any]]:
    """The rankings of a program: for time (shares), the largest arrays (bytes) and what crosses
    between devices (bytes in all runs) those of lines, of nodes of `scopes` and of operations.

    What the last form spends is of the scopes of its origins in the first one: repeated layers are
    one function to XLA, with the names of one of them. What has no scope has a part of its own,
    `UNKNOWN`, with its row in the last form.
    """
    first, listing, runs = listings[0], listings[-1], spent[-1].runs
    lines = [line or NO_LINE for line in lines_of(listing, places)]
    operations = [None if kind != OPERATION else name.removeprefix("stablehlo.")
                  for kind, name in zip(listing.kind, listing.operation, strict=True)]
    crossing = [max(listing.size[row], listing.traffic[row] - listing.size[row]) * runs[row]
                if crosses(name) and row not in listing.views else 0.0
                for row, name in enumerate(listing.operation)]
    for row, moved in listing.to_host.items():
        crossing[row] = moved * runs[row]
    nodes = scopes.of(first, spent[0].runs)
    stray = [all([nodes[r] == UNKNOWN for r, _ in rows]) for rows in found.rows]
    strays = [UNKNOWN if stray[number] else None for number in found.sets]
    moves, result = _picks_of_moves(listing), {}
    for name, amounts, largest in (("time", spent[-1].own, False),
                                   ("array", arrays(listing, runs, constants), True),
                                   ("crossing", crossing, False)):
        amounts = [0.0] * len(listing) if listing.unsized else amounts
        parts = amounts if largest else divided(listing, amounts)
        of_first = found.largest(parts, first.size) if largest else \
            spent[0].own if name == "time" else found.sums(parts, len(first))
        result[name] = {
            "lines": [(*rest, moves.get(row, (row,))[0])
                      for *rest, row in ranked(lines, parts, largest)],
            "parts": [*scopes.ranked(first, spent[0].runs, of_first, largest),
                      *[(node, amount, row)
                        for node, amount, _, row in ranked(strays, parts, largest)]],
            "operations": ranked(operations, amounts, largest)}
    return result
