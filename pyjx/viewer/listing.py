"""A form of a program, line by line, as columns: what the page holds and the graphs are made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from pyjx.core.frames import own_frames

OPERATION, HEAD, NOTE, CLOSING = range(4)  # kinds of rows; a head begins a function
UNKNOWN = -1

RUN, FUSED, APPLIED = range(3)  # how bodies do what an operation does


class Bodies(NamedTuple):
    """How the bodies of an operation count, and the functions that it calls.

    Attributes:
      how: RUN, as operations that read and write memory; FUSED, what is between them stays in
        registers; or APPLIED, to single elements, which is what the operation does by itself.
      times: how often each of them runs; one number if all do as often.
    """

    how: int
    times: tuple[float, ...] = (1.0,)

    def each(self, count: int) -> tuple[float, ...]:
        """How often each of so many runs."""
        return self.times * count if len(self.times) == 1 else self.times


ONCE = Bodies(RUN)
UNCOUNTED = Bodies(APPLIED, (0.0,))  # such as what compares elements for a sort


def split(text: str, separator: str) -> list[str]:
    """The parts between separators that are in no bracket.

    >>> split("jit(step)/jvp(block/up)/mul", "/"), split("f32[3,4]{1,0} %a, %b", ",")
    (['jit(step)', 'jvp(block/up)', 'mul'], ['f32[3,4]{1,0} %a', ' %b'])
    """
    if "[" not in text and "{" not in text and "(" not in text:
        return text.split(separator)
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        if c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
        elif c == separator and not depth:
            parts.append(text[start:i])
            start = i + 1
    return [*parts, text[start:]]


def name_parts(name: str) -> list[str]:
    """The scopes in a profile's name, and the operation at its end.

    XLA puts the name of a call before those of the operations that it inlines, so only what stands
    behind the last `jit` counts.

    >>> name_parts("jit(step)/jvp(block)/jit(step)/transpose(jvp(mlp))/up/mul")
    ['transpose(jvp(mlp))', 'up', 'mul']
    """
    parts = split(name, "/")
    while any("jit(" in part for part in parts[:-1]):
        del parts[0]
    return parts[1:] if "jit(" in parts[0] and len(parts) > 1 else parts


class Places:
    """The positions in the user's source that a page names, each with the one it was called from.

    >>> places = Places()
    >>> outer = places.at("model.py", "loss", 12, 5)
    >>> places.at("model.py", "layer", 3, 9, outer), places.at("model.py", "loss", 12, 5)
    (1, 0)
    """

    def __init__(self) -> None:
        self.frames: list[tuple[str, str, int, int, int]] = []
        self._known: dict[tuple[str, str, int, int, int], int] = {}

    def at(self, file: str, function: str, line: int, column: int = 0, caller: int = UNKNOWN
           ) -> int:
        """The number of a place. Lines and columns count from 1; 0 is a column not known. In the
        file `-` is what MLIR's parser finds no location of."""
        if file == "-":
            return caller
        frame = file, function, line, column, caller
        number = self._known.setdefault(frame, len(self.frames))
        if number == len(self.frames):
            self.frames.append(frame)
        return number

    def position(self, place: int) -> tuple[str, int, int] | None:
        """File, line and column; None where it is not known."""
        if place == UNKNOWN:
            return None
        file, _, line, column, _ = self.frames[place]
        return file, line, column

    def stack(self, place: int) -> tuple[tuple[str, str, int, int], ...]:
        """The frames of a place, innermost first.

        XLA puts the frames of a call that it inlines around those that the operation has already.
        """
        found: list[tuple[str, str, int, int]] = []
        while place != UNKNOWN:
            found.append(self.frames[place][:4])
            place = self.frames[place][4]
        return tuple(found[:found.index(found[-1]) + 1]) if found else ()

    def own_line(self, place: int) -> tuple[str, int] | None:
        """File and number of the line that is the user's own; None where it is not known."""
        return next(((f[0], f[2]) for f in own_frames(self.stack(place))), None)

    def own_lines(self, listing: Listing) -> list[tuple[str, int] | None]:
        """For each row of a listing the user's line."""
        known = {place: self.own_line(place) for place in set(listing.place)}
        return [known[place] for place in listing.place]

    def functions(self, place: int) -> list[str]:
        """The functions that a place lies in, outermost first."""
        names = [f[1] for f in reversed(own_frames(self.stack(place)))]
        return [name for name in names if name not in ("", "<module>")]


class Listing:
    """The rows of one form. Rows below an operation and deeper than it are its bodies.

    Attributes:
      title: what the form is called.
      text, depth, kind: what a row shows, how deep it lies, and what it is.
      operation, shape, name: of operations, what they are, the types of their results, and the
        name under which profiles know them; empty where that says nothing.
      place: number of the place in the source, or `UNKNOWN`.
      size: bytes of the results.
      own: arithmetic operations, transcendental functions among them, but for those of the bodies.
      flops, traffic: such operations, and bytes read and written, with all that the bodies do.
      operands: the rows that an operation reads.
      calls: for a row that calls functions, the rows of their heads.
      bodies: for a row with bodies or calls, and one that combines elements, how they count.
      alternatives: rows of whose bodies one runs.
      views: rows whose results lie in the memory of their operands.
      elements: for rows that give tuples, the bytes of each element.
      picks: for views of one element of a tuple, its position.
      in_place: for rows that write results where operands were, by the position of each of these
        the row of its operand, and which of the results of that it is; loops are such rows.
      on_host: for rows whose results are in the memory of the host, their bytes there; what is in
        `elements` is on a device.
      to_host: the bytes that rows move between the memory of the host and that of a device.
      given_back: the results that lie where donated arguments were, each as its row and its
        position among the results of that.
      scopes: the names of the user's scopes, where they are known.
      unsized: rows of which sizes are no numbers, and those that run them: what they cost is not
        known.
      inexact: rows of which it is not known how often what is in them runs: loops, which count
        once, and branches, of which the dearest counts; and those that run them.
      devices: on how many of them the program runs, where that is known.
      by_one: what is shown as one of these does it: `all`, what is in a `shard_map`, or nothing.
      entry: the row at which the program begins.
    """

    def __init__(self, title: str) -> None:
        self.title = title
        self.text: list[str] = []
        self.depth: list[int] = []
        self.kind: list[int] = []
        self.operation: list[str] = []
        self.shape: list[str] = []
        self.name: list[str] = []
        self.place: list[int] = []
        self.size: list[int] = []
        self.own: list[float] = []
        self.flops: list[float] = []
        self.traffic: list[float] = []
        self.operands: list[Sequence[int]] = []
        self.calls: dict[int, Sequence[int]] = {}
        self.bodies: dict[int, Bodies] = {}
        self.alternatives: set[int] = set()
        self.views: set[int] = set()
        self.elements: dict[int, Sequence[int]] = {}
        self.picks: dict[int, int] = {}
        self.in_place: dict[int, dict[int, tuple[int, int]]] = {}
        self.on_host: dict[int, int] = {}
        self.to_host: dict[int, float] = {}
        self.given_back: set[tuple[int, int]] = set()
        self.scopes: set[str] = set()
        self.unsized: set[int] = set()
        self.inexact: set[int] = set()
        self.devices = 1
        self.by_one = ""
        self.entry = 0

    def __len__(self) -> int:
        return len(self.text)

    def add(self, text: str, depth: int, kind: int = OPERATION, *, operation: str = "",
            shape: str = "", name: str = "", place: int = UNKNOWN, size: int = 0,
            own: float = 0.0, traffic: float = 0.0, operands: Sequence[int] = ()) -> int:
        """Append a row; its number is returned."""
        columns: Sequence[tuple[list[Any], Any]] = (
            (self.text, text), (self.depth, depth), (self.kind, kind), (self.operation, operation),
            (self.shape, shape), (self.name, name), (self.place, place), (self.size, size),
            (self.own, own), (self.flops, own), (self.traffic, traffic), (self.operands, operands))
        for column, value in columns:
            column.append(value)
        return len(self) - 1

    @property
    def heads(self) -> list[int]:
        """The rows at which functions begin, in their order."""
        return [i for i, kind in enumerate(self.kind) if kind == HEAD]

    def ends(self) -> list[int]:
        """For each row, the row after the last of its bodies."""
        ends = [len(self)] * len(self)
        open_rows: list[int] = []
        for i, depth in enumerate(self.depth):
            while open_rows and self.depth[open_rows[-1]] >= depth:
                ends[open_rows.pop()] = i
            open_rows.append(i)
        return ends

    def link(self, calls: Mapping[int, Sequence[Any]], heads: Mapping[Any, int]) -> None:
        """Note which functions rows call, by what `heads` knows the rows of these."""
        for row, called in calls.items():
            self.calls[row] = [heads[c] for c in called]

    def below(self, row: int, ends: Sequence[int]) -> list[list[int]]:
        """The rows one level deeper than another one, body by body; then the functions that it
        calls, each as a body. A note begins a body, if it is not one of its inputs."""
        found: list[list[int]] = []
        inner, begun = row + 1, False
        while inner < ends[row]:
            note = self.kind[inner] == NOTE
            if not found or (note and not begun):
                found.append([])
            found[-1].append(inner)
            begun = note and ends[inner] == inner + 1
            inner = ends[inner]
        return found + [[head] for head in self.calls.get(row, ())]

    def inside(self, row: int, ends: Sequence[int]) -> list[int]:
        """The rows below a row, and those of the functions that it and they call."""
        found, heads = list(range(row + 1, ends[row])), set[int]()
        for r in chain((row,), found):  # which grows meanwhile
            for head in self.calls.get(r, ()):
                if head not in heads:
                    heads.add(head)
                    found += range(head, ends[head])
        return found

    def inner_first(self, ends: Sequence[int]) -> Iterator[tuple[int, list[list[int]]]]:
        """All rows, each behind those below it, which come with it; a function once."""
        known = set[int]()

        def visit(row: int) -> Iterator[tuple[int, list[list[int]]]]:
            if row in known:
                return
            known.add(row)
            bodies = self.below(row, ends)
            for inner in [r for body in bodies for r in body]:
                yield from visit(inner)
            yield row, bodies

        for head in self.heads:
            yield from visit(head)

    def set_devices(self, devices: int, by_one: str) -> None:
        """Note on how many devices the program runs, and what is shown as one does it."""
        self.devices = devices
        self.by_one = by_one if devices > 1 else ""

    @property
    def exact(self) -> bool:
        """Whether it is known how often each operation of the program runs."""
        return self.entry not in self.inexact

    def on_device(self, row: int) -> int:
        """Bytes of the results that are in the memory of a device."""
        return self.size[row] - self.on_host.get(row, 0)

    def runs_bodies(self, row: int) -> bool:
        return row in self.bodies and self.bodies[row].how == RUN

    def running(self, row: int, ends: Sequence[int]) -> list[list[int]]:
        """The bodies and functions that an operation runs, as `below` gives them."""
        bodies = self.below(row, ends) if self.runs_bodies(row) else []
        often = self.bodies.get(row, ONCE).each(len(bodies))
        return [body for n, body in zip(often, bodies, strict=False) if n]

    def set_runs(self, row: int, times: float | None, asks: Sequence[bool] = (False,)) -> None:
        """Note how often the bodies of an operation run, and which of them ask whether there is
        another run, the last time in vain; all run once where that is not known."""
        self.bodies[row] = ONCE if times is None else Bodies(RUN, tuple([times + a for a in asks]))
        if times is None:
            self.inexact.add(row)

    def is_fused(self, row: int) -> bool:
        return row in self.bodies and self.bodies[row].how == FUSED

    def add_up(self) -> None:
        """Add to operations what their bodies cost."""
        for row, bodies in self.inner_first(self.ends()):
            self._add(row, bodies)

    def _add(self, row: int, bodies: Sequence[Sequence[int]]) -> None:
        """Add to a row what is below it."""
        how = self.bodies.get(row, ONCE).how
        costs = [(sum([self.flops[r] for r in body]), sum([self.traffic[r] for r in body]))
                 for body in bodies]
        if row in self.alternatives:
            if len(costs) > 1:
                self.inexact.add(row)
            costs = [max(costs, default=(0.0, 0.0))]
        if not costs and how == APPLIED:  # by the name of its operation
            costs = [(1.0, 0.0)]
        often = self.bodies.get(row, ONCE).each(len(bodies) or 1)
        weighed = list(zip(often, costs, strict=False))
        self.flops[row] = self.own[row] + sum([n * flops for n, (flops, _) in weighed])
        if how == RUN and weighed:  # they move what the operation does
            self.traffic[row] = sum([n * traffic for n, (_, traffic) in weighed])
        inner = [r for n, body in zip(often, bodies, strict=False) if n for r in body]
        for rows in (self.unsized, self.inexact):
            if not rows.isdisjoint(inner):
                rows.add(row)
