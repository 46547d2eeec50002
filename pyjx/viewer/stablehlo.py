"""StableHLO text as a listing, by its lines and brackets; operations of other dialects as well."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from pyjx.runtime.counted_loops import Carried, Known, Number, trips
from pyjx.runtime.touched import puts, touched
from pyjx.viewer.listing import CLOSING, HEAD, NOTE, ONCE, UNCOUNTED, UNKNOWN, Listing, Places
from pyjx.viewer.quantities import arithmetic, bytes_of, combinations, placed_on_host, tensors

FREE = frozenset(("return", "func.return", "stablehlo.return", "sdy.return",
                  "stablehlo.constant", "stablehlo.optimization_barrier", "stablehlo.tuple"))
_VIEWS = frozenset(("stablehlo.optimization_barrier", "stablehlo.reshape"))
_CALLS = frozenset(("call", "func.call", "stablehlo.composite"))
_PARTS = frozenset(("stablehlo.reshape", "stablehlo.slice", "stablehlo.dynamic_slice"))
_RUNNING = _CALLS | {"stablehlo.while", "stablehlo.case", "stablehlo.if", "sdy.manual_computation"}
_ALTERNATIVES = frozenset(("stablehlo.case", "stablehlo.if"))

_LOCATION = re.compile(r' loc\((#loc\d*|unknown|"(?:[^"\\]|\\.)*".*|callsite\(.*|fused.*)\)$')
_ALIAS = re.compile(r"^(#loc\d*) = loc\((.*)\)$")
_FILE = re.compile(r'^"((?:[^"\\]|\\.)*)":(\d+):(\d+)')
_NAMED = re.compile(r'^"((?:[^"\\]|\\.)*)"(?:\((.*)\))?$')
_CALLSITE = re.compile(r"^callsite\((#loc\d*) at (#loc\d*)\)$")
_FUNCTION = re.compile(r"^func\.func .*?@([\w.$\-]+|\"[^\"]*\")\(")
_PRIVATE = re.compile(r"func\.func private ")
_VALUE = re.compile(r"%[\w$.\-]+")
_READ = re.compile(r"(%[\w$.\-]+)(?:#(\d+))?")
_RESULTS = re.compile(r"^((?:%[\w$.\-]+(?::\d+)?(?:, )?)+) = ")
_OPERATION = re.compile(r'^"?([\w$.]+)"?')
_CALLEE = re.compile(r"@([\w.$\-]+|\"[^\"]*\")")
_PARAMETER = re.compile(r"(%[\w$.\-]+): ((?:[^,<>()]|<[^<>]*(?:<[^<>]*>[^<>]*)*>)+)")
_GIVEN_ON_HOST = re.compile(
    r'(%[\w$.\-]+): (tensor<[^<>]*(?:<[^<>]*>)?[^<>]*>) \{[^%]*?memory_kind = "\w*host"')
_REGION = re.compile(r"\s+(?:cond|do|reducer\(.*) ?\{$")
_DEVICES = re.compile(r"mhlo\.num_(replicas|partitions) = (\d+)")
_TESTED = re.compile(r"compare (\w+),")
_INTEGER = re.compile(r"constant dense<(-?\d+)> : tensor<(u?i\d+)>")
_DONATED = re.compile(r"tf\.aliasing_output = (\d+)")
_INITIAL = re.compile(r"(%[\w$.\-]+) = (%[\w$.\-]+)")


def stablehlo_listing(text: str, places: Places) -> Listing:
    """The rows of a module, whose operations have locations if their places are to be known."""
    lines = text.splitlines()
    writer = _Writer(Listing("StableHLO"), _Locations(lines, places))
    whole = ""  # the first region may begin below its operation
    for line in lines:
        if _REGION.match(line):
            whole += f" {line.strip()}"
            continue
        writer.line(whole)
        whole = "" if line.startswith("#") else line
    writer.line(whole)
    heads = writer.listing.heads
    writer.listing.entry = next((head for head in heads if not _PRIVATE.match(
        writer.listing.text[head])), min(heads, default=0))
    writer.link_calls()
    writer.listing.add_up()
    return writer.listing


class _Locations:
    """Names and places behind the aliases of a module."""

    def __init__(self, lines: Sequence[str], places: Places) -> None:
        self._places = places
        self._aliases: dict[str, str] = {
            m[1]: m[2] for line in lines if line.startswith("#loc") and (m := _ALIAS.match(line))}
        self._known: dict[str, tuple[str, int]] = {}

    def of(self, text: str) -> tuple[str, int]:
        """The name and the place of a location."""
        known = self._known.get(text)
        if known is None:
            try:
                known = self._resolved(self._behind(text))
            except RecursionError:  # in a damaged text some lead to themselves
                known = "", UNKNOWN
            self._known[text] = known
        return known

    def _behind(self, text: str) -> str:
        """What an alias stands for."""
        return self._aliases.get(text, text)

    def _resolved(self, text: str) -> tuple[str, int]:
        if _FILE.match(text) or _CALLSITE.match(text):
            return "", self._stack(text, UNKNOWN)
        named = _NAMED.match(text)
        if named is None:
            return "", UNKNOWN
        inner = named[2] or ""
        return named[1], self._stack(self._behind(inner), UNKNOWN)

    def _stack(self, text: str, caller: int, function: str = "") -> int:
        """The place of a location without a name of its own, called from another place."""
        site = _CALLSITE.match(text)
        if site:
            outer = self._stack(self._behind(site[2]), caller)
            return self._stack(self._behind(site[1]), outer)
        at = _FILE.match(text)
        if at:
            return self._places.at(at[1], function, int(at[2]), int(at[3]), caller)
        named = _NAMED.match(text)
        if named and named[2]:
            return self._stack(self._behind(named[2]), caller, named[1])
        return UNKNOWN


class _Writer:
    """Writes lines as rows; knows which brackets are open."""

    def __init__(self, listing: Listing, locations: _Locations) -> None:
        self.listing = listing
        self._locations = locations
        self._open: list[int] = []  # the rows whose bodies are open
        self._values: dict[str, int] = {}
        self._on_host = set[str]()
        self._carried: dict[str, int] = {}  # of what a loop carries its position
        self._starts: dict[int, list[str]] = {}  # of loops, and what is known of their tests
        self._tests: dict[int, Known] = {}
        self._functions: dict[str, int] = {}
        self._calls: dict[int, str] = {}
        self._donated: list[int] = []  # which results lie where arguments of the function do

    def line(self, line: str) -> None:
        text = line.strip()
        if text.startswith("module"):
            count = {name: int(number) for name, number in _DEVICES.findall(text)}
            replicas = count.get("replicas", 1)
            self.listing.set_devices(replicas * count.get("partitions", 1),
                                     "all" if replicas > 1 else "")
        if not text or text.startswith("module") or (text[0] == "}" and not self._open):
            return
        name, place = "", UNKNOWN
        located = _LOCATION.search(text) if text.endswith(")") else None
        if located:
            text = text[:located.start()]
            name, place = self._locations.of(located[1])
        if text.startswith("}"):
            self._close(text, name, place)
        elif text.startswith("^"):
            row = self.listing.add(text, len(self._open), NOTE)
            self._parameters(text, row)
        elif function := _FUNCTION.match(text):
            self._values = {}
            self._on_host = set()
            row = self.listing.add(text, len(self._open), HEAD, name=function[1].strip('"'))
            self._functions[function[1].strip('"')] = row
            self._donated = list(map(int, _DONATED.findall(text)))
            self._parameters(text[:text.rfind(") ->")] if ") ->" in text else text, row)
            if text.endswith("{"):
                self._open.append(row)
        else:
            self._operation(text, name, place)

    def _parameters(self, text: str, row: int) -> None:
        found = _PARAMETER.findall(text)
        for value, _ in found:
            self._values[value] = row
        self.listing.size[row] = _size(", ".join([types for _, types in found]))
        on_host = dict(_GIVEN_ON_HOST.findall(text))
        self._on_host.update(on_host)
        if on_host:
            self.listing.on_host[row] = _size(", ".join(on_host.values()))

    def _operation(self, text: str, name: str, place: int) -> None:
        listing, values = self.listing, self._values
        opens = text.endswith("{")
        results = _RESULTS.match(text)
        rest = text[results.end():] if results else text
        kind = _OPERATION.match(rest)
        operation = kind[1] if kind else ""
        starts = dict(_INITIAL.findall(rest)) if operation == "stablehlo.while" else {}
        read = [(values[v], int(k or 0)) for v, k in _READ.findall(rest)
                if v in values and v not in starts]
        operands = list(dict.fromkeys([o for o, _ in read]))
        shape = _result_types(rest, results)
        row = listing.add(text, len(self._open), operation=operation, shape=shape, name=name,
                          place=place, size=_size(shape), operands=operands)
        self._cost(row, rest)
        if results:
            for value in _VALUE.findall(results[0]):
                values[value] = row
        if len(arrays := tensors(shape)) > 1 or starts:
            listing.elements[row] = [bytes_of((a,)) for a in arrays]
        if starts:
            self._carried.update({v: k for k, v in enumerate(starts)})
        if operation == "stablehlo.while":
            self._starts[row] = list(starts.values())
        elif operation == "stablehlo.return" and self._open and self._open[-1] in self._starts:
            self._count(self._open[-1], _VALUE.findall(rest))
        if puts(operation) or starts:
            listing.in_place[row] = dict(enumerate(read[:len(starts) or 1]))
        values.update(dict.fromkeys(starts, row))
        self._note_host(row, results[1] if results else "", rest, starts)
        if opens:
            values.update(dict.fromkeys([v for v, _ in _PARAMETER.findall(rest)], row))
        if operation in ("return", "func.return"):
            listing.given_back.update([read[k] for k in self._donated if k < len(read)])
        callee = _CALLEE.search(rest) if operation in _CALLS else None
        if callee:
            self._calls[row] = callee[1].strip('"')
        if opens or callee:
            listing.bodies.setdefault(row, ONCE if operation in _RUNNING else UNCOUNTED)
        if operation == "sdy.manual_computation":
            listing.set_devices(listing.devices, "shard_map")
        if operation in _ALTERNATIVES:
            listing.alternatives.add(row)
        if operation in _VIEWS:
            listing.views.add(row)
        if opens:
            self._open.append(row)

    def _note_host(self, row: int, result: str, text: str, starts: Collection[str]) -> None:
        """Note whether what an operation gives is in the memory of the host: custom calls say it;
        parts of it are there, and so is all that they are put into."""
        listing, operation, given = self.listing, self.listing.operation[row], self._on_host
        read = [f"{v}#{k}" if k else v for v, k in _READ.findall(text) if v not in starts]
        was, placed = not given.isdisjoint(read[:1]), placed_on_host(text)
        if placed is not None and placed != was:
            listing.to_host[row] = listing.size[row]
        holds = puts(operation) and not given.isdisjoint(read[1:])
        if holds:
            self._put_on_host(read[0])
        for carried, value in zip(starts, read, strict=False):
            if value in given:
                self._put_on_host(carried)
        if placed or holds or (was and placed is None and operation in _PARTS):
            given.add(result)
            listing.on_host[row] = listing.size[row]

    def _put_on_host(self, value: str) -> None:
        """Note that what a loop carries is in the memory of the host."""
        listing, k = self.listing, self._carried.get(value, 0)
        row = self._values.get(value, UNKNOWN)
        sizes = [*listing.elements.get(row, ())]
        if row not in self._starts or value in self._on_host or k >= len(sizes):
            return
        listing.on_host[row] = listing.on_host.get(row, 0) + sizes[k]
        sizes[k] = 0
        listing.elements[row] = sizes
        result = _VALUE.match(listing.text[row])
        if result:
            self._on_host.update((value, f"{result[0]}#{k}" if len(sizes) > 1 else result[0]))

    def _count(self, row: int, given: Sequence[str]) -> None:
        """Note what the test of a loop gives; or at the end of its body how often it runs."""
        if row not in self._tests:
            self._tests[row] = self._known(given[0]) if given else None
        else:
            self.listing.set_runs(row, trips(
                self._tests[row], [*zip(self._starts[row], given, strict=False)],
                self._known, self._known), (True, False))

    def _known(self, value: str, deep: bool = True) -> Known:
        """What is known of a value, for how often the loop runs that is open."""
        row = self._values.get(value, UNKNOWN)
        if value in self._carried and row == self._open[-1]:
            return Carried(self._carried[value])
        text = self.listing.text[row].partition(" = ")[2] if row != UNKNOWN else ""
        if number := _INTEGER.search(text):
            return Number(int(number[1]), number[2])
        tested = _TESTED.search(text)
        return (tested[1] if tested else self.listing.operation[row],
                *[self._known(v, False) for v in _VALUE.findall(text)]) if text and deep else None

    def _cost(self, row: int, text: str) -> None:
        """Set what an operation costs by its types."""
        listing = self.listing
        operation, types = listing.operation[row], _types(text)
        if "?" in types or "?" in listing.shape[row]:
            listing.unsized.add(row)
            return
        operands = tensors(types.partition(" -> ")[0])
        # attributes stand before the body, and types behind it
        cost = operation, listing.text[row], operands, tensors(listing.shape[row])
        listing.own[row] = arithmetic(*cost)
        if combined := combinations(*cost):
            listing.bodies[row] = combined
        if operation not in FREE:
            if " -> " not in types and operands:  # operands that are alike are written once
                operands += operands[-1:] * (len(_VALUE.findall(text)) - len(operands))
            reads, writes = touched(operation, [bytes_of((a,)) for a in operands],
                                    listing.size[row])
            listing.traffic[row] = float(sum(reads) + writes)

    def _close(self, text: str, name: str, place: int) -> None:
        row = self._open[-1] if self._open else UNKNOWN
        listing = self.listing
        listing.add(text, len(self._open), CLOSING if not text.endswith("{") else NOTE)
        if text.endswith("{"):  # another region of the same operation
            return
        if self._open:
            self._open.pop()
        if listing.kind[row] == HEAD or row == UNKNOWN:
            return
        listing.name[row], listing.place[row] = name, place
        if " : " in text:  # the types of the generic form
            shape = listing.shape[row] = _result_types(text, _RESULTS.match(listing.text[row]))
            listing.size[row] = _size(shape)
            self._cost(row, text)

    def link_calls(self) -> None:
        """Link calls with functions; a function of the library's has the place of its calls, if
        these are at one."""
        place, ends = self.listing.place, self.listing.ends()
        callers: dict[int, set[int]] = {}
        for row, name in self._calls.items():
            if name in self._functions:
                head = self._functions[name]
                self.listing.calls[row] = (head,)
                callers.setdefault(head, set()).add(place[row])
        for head, places in callers.items():
            inside = slice(head + 1, ends[head] - 1)
            if len(places) == 1 and set(place[inside]) == {UNKNOWN}:
                place[inside] = [*places] * len(place[inside])


def _size(types: str) -> int:
    """The bytes of values of some types; 0 where a size is not known."""
    return 0 if "?" in types else bytes_of(tensors(types))


def _types(text: str) -> str:
    """What stands behind the last colon between spaces."""
    _, colon, types = text.rpartition(" : ")
    return _REGION.sub("", types) if colon else ""


def _result_types(text: str, results: re.Match[str] | None) -> str:
    """The types of an operation's results: those behind the arrow; without one the last of the
    operands' is that of a single result."""
    types = _types(text)
    if results is None or not types:
        return ""
    _, arrow, after = types.partition(" -> ")
    if arrow:
        return after.strip("() {")
    return types.strip() if ":" in results[0] else types[types.rfind("tensor<"):].strip()
