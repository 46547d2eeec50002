"""HLO text as a listing: what XLA prints before and after its passes."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial

from pyjx.core.records import Record
from pyjx.runtime.counted_loops import Carried, Known, Number, trips
from pyjx.runtime.touched import plain, puts, touched
from pyjx.viewer.listing import (
    CLOSING,
    FUSED,
    HEAD,
    NOTE,
    ONCE,
    UNCOUNTED,
    UNKNOWN,
    Bodies,
    Listing,
    Places,
    split,
)
from pyjx.viewer.quantities import (
    HOST,
    Arrays,
    arithmetic,
    bytes_of,
    combinations,
    hlo_arrays,
    hlo_device_arrays,
    placed_on_host,
    target_of,
)

FREE = frozenset((
    "add-dependency", "after-all", "bitcast", "constant", "get-tuple-element", "opt-barrier",
    "parameter", "partition-id", "replica-id", "tuple"))
_VIEWS = frozenset(("bitcast", "get-tuple-element", "opt-barrier", "optimization-barrier", "tuple",
                    "while"))
# Custom calls that tell XLA of what they are given, which is what they give, or is side by side in
# it; with those for memory that others fill all that read and write nothing.
_TELLING = frozenset((
    "AssumeGatherIndicesInBound", "ConcatBitcast", "LayoutConstraint", "Pin",
    "SPMDFullToShardShape", "SPMDShardToFullShape", "Sharding", "Unpin",
    "xla.sdy.FuncResultSharding", "xla.sdy.GlobalToLocalShape", "xla.sdy.LocalToGlobalShape",
    "xla.sdy.PropagationBarrier"))
_IDLE = _TELLING | {"AllocateBuffer", "CreateBuffer"}
_CHAIN_START, _CHAIN_END = "AsyncCollectiveStart", "AsyncCollectiveDone"
_ENDINGS = ("-done", "-update")  # of what was started, whose results they are
_BODIES = {"fusion": Bodies(FUSED), "call": ONCE, "conditional": ONCE, "async": ONCE}
_RUNNING = frozenset(("call", "conditional", "while"))

_HEAD = re.compile(r"^(ENTRY )?%?([\w.\-]+) (\(.*\) -> .* )?\{$")
_INSTRUCTION = re.compile(r"^\s+(ROOT )?%?([\w.\-]+) = ")
_OPCODE = re.compile(r"\s*([\w\-]+)\(")
_NAME = re.compile(r"%?([\w.\-]+)$")
_METADATA = re.compile(r", metadata=\{((?:\"(?:[^\"\\]|\\.)*\"|[^{}\"])*)\}")
_CALLED = re.compile(r"(?:calls|to_apply|select|scatter|body|condition|true_computation|"
                     r"false_computation|branch_computations|called_computations)="
                     r"(?:\{([^{}]*)\}|(%?[\w.\-]+))")
_FIELD = re.compile(r'(\w+)=(?:"((?:[^"\\]|\\.)*)"|(\d+))')
_TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"\}(?:,"known_init_step":\{"init":"(-?\d+)",'
                    r'"step":"(-?\d+)"\})?(?:,"known_induction_variable":\{"tuple_index":"(\d+)")?')
_INDEX = re.compile(r"\), index=(\d+)")
_PARAMETER = re.compile(r"parameter\((\d+)\)")
_DIRECTION = re.compile(r"direction=(\w+)")
_INTEGER = re.compile(r" ([su]\d+)\[\]\S* constant\((-?\d+)\)")
_DEVICES = re.compile(r"(replica_count|num_partitions)=(\d+)")
_GIVEN_BACK = re.compile(r"\{(\d*)\}: \(\d+, \{")
_COMMENT = re.compile(r"/\*index=\d+\*/")
_MANY = 8  # parameters that stand below a line of their own, which folds
_TABLES = ("FileNames", "FunctionNames", "FileLocations", "StackFrames")


class Instruction(Record):
    """A line of a computation: `kind` is what it does or starts, `target` what a custom call
    calls."""

    name: str
    type: str
    opcode: str = ""
    kind: str = ""
    target: str = ""
    operands: Sequence[str] = ()
    called: Sequence[str] = ()
    text: str = ""
    op_name: str = ""
    place: int = UNKNOWN


class Computation(Record):
    """A computation: its name, whether the program begins in it, its signature, its instructions by
    their names, in order."""

    name: str
    entry: bool
    signature: str
    body: dict[str, Instruction]

    @property
    def root(self) -> Instruction:
        """What gives its results."""
        return next(reversed(self.body.values()))


def hlo_listing(text: str, places: Places, title: str) -> Listing:
    """The rows of a module. A computation that is called once stands below the instruction that
    calls it; others are functions. The entry comes first."""
    parsed = computations(text, places)
    callers: dict[str, int] = {}
    for c in parsed.values():
        for instruction in c.body.values():
            for name in instruction.called:
                callers[name] = callers.get(name, 0) + 1
    roots = [c for c in parsed.values() if callers.get(c.name, 0) != 1]
    roots.sort(key=lambda c: not c.entry)
    writer = _Writer(Listing(title), parsed, {c.name for c in roots})
    head = text[:text.find("\n")]
    count = {name: int(number) for name, number in _DEVICES.findall(head)}
    replicas, partitions = (count.get(name, 1) for name in ("replica_count", "num_partitions"))
    writer.listing.set_devices(  # XLA's passes make a program of one partition
        replicas * partitions, "all" if replicas > 1 or "is_scheduled=true" in head else "")
    for c in roots:
        writer.function(c)
        if c.entry:
            writer.give_back(c, [int(k or 0) for k in _GIVEN_BACK.findall(head)])
    writer.listing.link(writer.calls, writer.heads)
    writer.listing.add_up()
    return writer.listing


def instruction_names(listing: Listing) -> list[str]:
    """For each row of a module the name of its instruction."""
    return [text.removeprefix("ROOT ").partition(" ")[0].removeprefix("%") for text in listing.text]


class _Writer:
    """Writes computations as rows."""

    def __init__(self, listing: Listing, computations: dict[str, Computation], roots: set[str]
                 ) -> None:
        self.listing = listing
        self._computations = computations
        self._roots = roots
        self.heads: dict[str, int] = {}
        self.calls: dict[int, list[str]] = {}
        self._rows: dict[str, int] = {}  # of the computation that was written last
        self._parts: dict[str, tuple[dict[int, float], float]] = {}  # what fusions touch
        self._continued = {c.name: _continued(c) for c in computations.values()}

    def function(self, c: Computation) -> None:
        label = f"{'ENTRY ' if c.entry else ''}%{c.name} {c.signature}{{"
        self.heads[c.name] = self.listing.add(label, 0, HEAD, name=c.name)
        self._body(c, 1)
        self.listing.add("}", 1, CLOSING)

    def give_back(self, c: Computation, positions: Sequence[int]) -> None:
        """Note which results lie where donated arguments were, by their positions among several."""
        results = _results(c) if c.body else ()
        self.listing.given_back.update([(self._rows[results[k]], 0) for k in positions
                                        if k < len(results)])

    def _body(self, c: Computation, depth: int) -> None:
        rows: dict[str, int] = {}
        body = c.body.values()
        first = next((n for n, i in enumerate(body) if i.opcode != "parameter"), len(body))
        grouped = first if first >= _MANY else 0
        if grouped:
            self.listing.add(f"{grouped} parameters", depth, NOTE)
        for n, i in enumerate(body):
            self._instruction(i, depth + (n < grouped), rows, c)
        self._rows = rows

    def _instruction(self, i: Instruction, depth: int, rows: dict[str, int], around: Computation
                     ) -> None:
        listing = self.listing
        operands = [rows[o] for o in i.operands if o in rows]
        arrays = () if i.opcode in FREE else tuple(
            [a for o in operands for a in hlo_arrays(listing.shape[o])])
        results = _made(i, arrays)
        size, reads, writes = bytes_of(results), [0.0] * len(operands), 0.0
        continued = i.name in self._continued[around.name]
        if not (i.opcode in FREE or i.opcode.endswith(_ENDINGS) or continued
                or i.target == _CHAIN_START):
            reads, writes = self._touched(i, [listing.size[o] for o in operands], size)
        cost = i.kind, i.text, arrays, results
        row = rows[i.name] = listing.add(
            i.text, depth, operation=i.opcode, shape=i.type, name=i.op_name, place=i.place,
            size=size, traffic=sum(reads) + writes, operands=operands, own=arithmetic(*cost))
        held = self._held(i, row, results)
        if i.kind not in _RUNNING and i.kind != "async":  # of what these run it is noted
            self._note_transfer(row, reads, writes)
        if combined := combinations(*cost):
            listing.bodies[row] = combined
        if i.opcode in _VIEWS or i.opcode.endswith(_ENDINGS) or self._calls_loop(i) or \
                i.target in _TELLING or continued:
            listing.views.add(row)
            index = _INDEX.search(i.text) if i.opcode == "get-tuple-element" else None
            # What starts a move has more elements than it makes.
            if index and not any(listing.operation[o].endswith("-start") for o in operands):
                listing.picks[row] = int(index[1])
        if i.type.startswith("("):
            listing.elements[row] = [bytes_of((array,)) for array in held]
        if written := self._puts(i):
            listing.in_place[row] = {k: (operands[number], 0) for k, number in written.items()
                                     if number < len(operands)}
        if i.called:
            if i.opcode == "conditional":
                listing.alternatives.add(row)
            if i.opcode == "while":
                bodies = sorted(i.called, key=self._roots.__contains__)  # as in `Listing.below`
                listing.set_runs(row, self._trips(i, around), [c == i.called[0] for c in bodies])
            listing.bodies.setdefault(row, _BODIES.get(i.kind, UNCOUNTED))
        for name in i.called:
            if name in self._roots:
                self.calls.setdefault(row, []).append(name)
            elif name in self._computations:
                c = self._computations[name]
                if len(i.called) > 1:
                    listing.add(f"%{name} {c.signature}{{", depth + 1, NOTE)
                self._body(c, depth + 1 + (len(i.called) > 1))
        for inside in range(row + 1, len(listing) if i.kind == "fusion" else 0):
            listing.to_host.pop(inside, None)

    def _held(self, i: Instruction, row: int, results: Arrays) -> Arrays:
        """What an instruction makes on a device; how much is on the host is noted."""
        listing, held = self.listing, results
        if HOST in i.type:
            held = _made(i, tuple([a for o in listing.operands[row]
                                   for a in hlo_device_arrays(listing.shape[o])]),
                         hlo_device_arrays)
        elif placed_on_host(i.text):  # before XLA has put it there
            held = ()
        if on_host := bytes_of(results) - bytes_of(held):
            listing.on_host[row] = on_host
        return held

    def _note_transfer(self, row: int, reads: Sequence[float], writes: float) -> None:
        """Note what an operation moves to the host or from it."""
        listing = self.listing
        taken = sum([n for o, n in zip(listing.operands[row], reads, strict=True)
                     if o in listing.on_host])
        if moved := abs(taken - min(writes, listing.on_host.get(row, 0))):
            listing.to_host[row] = moved

    def _touched(self, i: Instruction, operands: Sequence[float], results: float
                 ) -> tuple[list[float], float]:
        """The bytes that an instruction reads of each operand, and those that it writes. A fusion
        reads of an operand what those inside need of it, and writes what they put there in place.
        """
        if i.target in _IDLE:
            return [0.0] * len(operands), 0.0
        c = self._called(i, "fusion")
        if c is None:
            return touched(i.kind, operands, results)
        parts, writes = self._inside(c)
        return [parts.get(k, 0.0) * n for k, n in enumerate(operands)], writes

    def _inside(self, c: Computation) -> tuple[dict[int, float], float]:
        """The parts that a fused computation reads of its parameters, by their numbers, and the
        bytes that it writes."""
        if c.name in self._parts:
            return self._parts[c.name]
        given = dict[int, float]()
        self._parts[c.name] = given, 0.0  # for a damaged one that holds itself
        continued = self._continued[c.name]
        size = {x.name: 0.0 if x.name in continued else float(bytes_of(hlo_arrays(x.type)))
                for x in c.body.values()}
        moves = {x.name: self._touched(x, [size.get(o, 0.0) for o in x.operands], size[x.name])
                 for x in c.body.values()}
        made = {name: _in_place(c, name) for name in _results(c)}
        written = {x.name for found in made.values() if found for x in found[1:]}
        wanted = {c.root.name: 1.0}  # which part of each value
        for x in reversed(c.body.values()):
            part, reads = wanted.get(x.name, 0.0), moves[x.name][0]
            number = _PARAMETER.search(x.text) if x.opcode == "parameter" else None
            if x.name in continued:
                reads = [0.0] * len(reads)
            if number:
                given[int(number[1])] = part
            if puts(x.kind) and reads and x.name not in written:  # into a copy of it
                reads = [size.get(x.operands[0], 0.0), *reads[1:]]
            for o, n in zip(x.operands, reads, strict=True):
                if size.get(o):
                    wanted[o] = min(1.0, wanted.get(o, 0.0) + part * n / size[o])
        writes = sum([sum([moves[x.name][1] for x in found[1:]]) if found else size.get(name, 0.0)
                      for name, found in made.items()])
        self._parts[c.name] = given, writes
        return given, writes

    def _puts(self, i: Instruction) -> dict[int, int]:
        """Of results that are written where operands are, their positions and those of the
        operands."""
        if puts(i.kind):
            return {0: 0}
        c, found = self._called(i, "fusion", "async"), dict[int, Instruction]()
        if c and i.kind == "fusion":
            found = {k: chain[0] for k, name in enumerate(_results(c))
                     if (chain := _in_place(c, name))}
        elif c and c.root.opcode != i.opcode:  # it starts one operation
            given = [c.body.get(o) for o in c.root.operands]
            found = {k: x for k, n in self._puts(c.root).items() if (x := given[n]) is not None}
        return {k: int(number[1]) for k, x in found.items()
                if (number := _PARAMETER.search(x.text))}

    def _trips(self, i: Instruction, around: Computation) -> float | None:
        """How often a loop runs, as XLA says or as it counts."""
        if (said := trips_said(i)) is not None:
            return said
        test, body = (self._called(i, "while", k=k) for k in (0, 1))
        if test is None or body is None:
            return None
        made = around.body.get(next(iter(i.operands), ""))
        given = made.operands if made is not None and made.opcode == "tuple" else i.operands
        return trips(_known(test, test.root.name),
                     [*zip(given, _results(body), strict=False)],
                     partial(_known, around), partial(_known, body))

    def _calls_loop(self, i: Instruction) -> bool:
        """Whether an instruction calls a computation that is a loop, which writes in place."""
        called = self._called(i, "call")
        return called is not None and called.root.opcode == "while"

    def _called(self, i: Instruction, *kinds: str, k: int = 0) -> Computation | None:
        """The computation that an instruction of these kinds calls, or one of several."""
        if i.kind not in kinds or k >= len(i.called):
            return None
        c = self._computations.get(i.called[k])
        return c if c and c.body else None


def trips_said(i: Instruction) -> float | None:
    """How often a loop runs, as XLA says, which overlooks where numbers begin again behind the
    largest one; of those that it does not tell the first and the step of, such may be narrow."""
    said, counters = _TRIPS.search(i.text), hlo_arrays(i.type)
    if said and said[4] and int(said[4]) < len(counters):
        first, step = map(int, said.group(2, 3)) if said[2] else (0, 0)
        last = first + int(said[1]) * step if said[2] else (1 << 31) - 1
        if not Number(first, counters[int(said[4])][1]).reaches(last):
            return None
    return float(said[1]) if said else None


def _known(c: Computation, name: str, deep: bool = True) -> Known:
    """What is known of a value of a loop."""
    x = next(reversed(_chain(c, name, ("copy", "bitcast").__contains__)), None)
    if x is None:
        return None
    if x.opcode == "constant":
        number = _INTEGER.search(x.text)
        return Number(int(number[2]), number[1]) if number else None
    if x.opcode == "parameter":
        return Carried(0)
    if x.opcode == "get-tuple-element":
        index, given = _INDEX.search(x.text), [c.body[o] for o in x.operands if o in c.body]
        return Carried(int(index[1])) if index and any(
            [p.opcode == "parameter" for p in given]) else None
    tested = _DIRECTION.search(x.text)
    return (tested[1] if tested else x.opcode, *[_known(c, o, False) for o in x.operands]) \
        if deep else None


def _made(i: Instruction, operands: Arrays, arrays_of: Callable[[str], Arrays] = hlo_arrays
          ) -> Arrays:
    """The arrays that an instruction makes: what starts a move has its operands beside them, unless
    these are as many, and words of state."""
    made = list(arrays_of(i.type))
    if i.opcode.endswith("-start") and len(made) > len(operands):
        for array in operands:
            if array in made:
                made.remove(array)
        made = [array for array in made if array[0]] or made
    return tuple(made)


def _results(c: Computation) -> Sequence[str]:
    """The values that a computation gives; of one that starts a move those that it moves."""
    several = c.root.opcode == "tuple" or c.root.target == _CHAIN_START
    return c.root.operands if several else [c.root.name]


def _continued(c: Computation) -> set[str]:
    """What continues and ends moves between devices that another fusion has started, and what it
    hands on for them. A TPU's compiler writes such a move again in each fusion of a chain."""
    body = c.body.values()
    started = {o for x in body if x.target == _CHAIN_START for o in x.operands}
    found = {x.name for x in body if x.target == _CHAIN_END
             or ('chain_id="' in x.text and x.name not in started)}
    handed = [c.body[o] for o in _results(c) if o in c.body] if found else ()
    return found | {x.name for x in handed if x.opcode == "parameter"}


def _in_place(c: Computation, name: str) -> list[Instruction]:
    """A parameter, and what puts parts into it to make a value; none if that is made otherwise."""
    chain = _chain(c, name, lambda kind: kind == "bitcast" or puts(kind))
    written = [x for x in chain if puts(x.kind)]
    return [chain[-1], *written] if written and chain[-1].opcode == "parameter" else []


def _chain(c: Computation, name: str, passes: Callable[[str], bool]) -> list[Instruction]:
    """What makes a value, and what makes its first operand, as long as its kind passes.
    Each stands once, though in a damaged text they may read each other."""
    found = dict[str, Instruction]()
    while name in c.body and name not in found:
        x = found[name] = c.body[name]
        name = x.operands[0] if passes(x.kind) and x.operands else ""
    return [*found.values()]


def computations(text: str, places: Places) -> dict[str, Computation]:
    """The computations of a module, by name."""
    lines = text.splitlines()
    frames = _frames(lines, places)
    found: dict[str, Computation] = {}
    current: Computation | None = None
    for line in lines:
        if line.startswith((" ", "\t")):
            if current is not None and (start := _INSTRUCTION.match(line)):
                current.body[start[2]] = _instruction(line, start, frames, places)
        elif line.endswith("{") and (head := _HEAD.match(line)):
            current = Computation(head[2], head[1] is not None, _COMMENT.sub("", head[3] or ""), {})
            found[current.name] = current
        elif line.startswith("}"):
            current = None
    _take_lent(found)
    return found


def _take_lent(found: dict[str, Computation]) -> None:
    """Take from instructions the metadata of the loop or the call that they are in: XLA gives it to
    what it makes there, of whatever operation that is."""
    around: dict[str, set[tuple[str, int]]] = {}
    for c in reversed(found.values()):  # what is called comes before what calls it
        given = around.setdefault(c.name, set())
        for i in list(c.body.values()):
            own = {(i.op_name, i.place)} if i.opcode in _RUNNING and i.op_name else set()
            for name in i.called:
                around.setdefault(name, set()).update(given, own)
            if (i.op_name, i.place) in given and not own:
                c.body[i.name] = i._replace(op_name="", place=UNKNOWN)


def _instruction(line: str, start: re.Match[str], frames: dict[int, int], places: Places
                 ) -> Instruction:
    end = _type_end(line, start.end())
    opcode = _OPCODE.match(line, end)
    if opcode is None:
        return Instruction(start[2], line[start.end():end], text=line.strip())
    close = closing(line, opcode.end() - 1)
    operands = [name[1] for part in split(line[opcode.end():close], ",")
                if (name := _NAME.search(part.strip()))] if opcode[1] not in (
                    "constant", "parameter") else []
    rest = line[close:]
    called = [name.strip().lstrip("%") for many, one in _CALLED.findall(rest)
              for name in (many or one).split(",")] if "=" in rest else []
    fields: dict[str, str] = {}
    metadata = _METADATA.search(rest)
    if metadata:
        fields = {key: quoted or number for key, quoted, number in _FIELD.findall(metadata[1])}
        line = line[:close] + rest[:metadata.start()] + rest[metadata.end():]
    kind = plain(opcode[1])
    own = fields.get("op_name", "").partition(";jit(")[0]  # of two it makes one, with both names
    return Instruction(start[2], _COMMENT.sub("", line[start.end():end]), opcode[1], kind,
                       target_of(kind, rest), operands, called, _COMMENT.sub("", line.strip()),
                       own, _place(fields, frames, places))


def _type_end(line: str, start: int) -> int:
    """Where the type ends that starts there: a tuple's at its parenthesis, others at a space."""
    if line[start:start + 1] == "(":
        return closing(line, start) + 1
    end = line.find(" ", start)
    return len(line) if end < 0 else end


def closing(text: str, start: int) -> int:
    """Where the bracket that opens at `start` is closed; strings do not count."""
    end = text.find(")", start)
    if text[start] == "(" and end > 0 and "(" not in (inside := text[start + 1:end]) \
            and '"' not in inside:
        return end
    depth = 0
    quoted = False
    for i in range(start, len(text)):
        c = text[i]
        if c == '"' and text[i - 1] != "\\":
            quoted = not quoted
        elif not quoted:
            if c in "([{":
                depth += 1
            elif c in ")]}":
                depth -= 1
                if not depth:
                    return i
    return len(text)


def _place(fields: dict[str, str], frames: dict[int, int], places: Places) -> int:
    if "stack_frame_id" in fields and int(fields["stack_frame_id"]) in frames:
        return frames[int(fields["stack_frame_id"])]
    if "source_file" in fields and "source_line" in fields:
        return places.at(fields["source_file"], "", int(fields["source_line"]),
                         int(fields.get("source_column", 0)))
    return UNKNOWN


def _frames(lines: Sequence[str], places: Places) -> dict[int, int]:
    """The place of each stack frame in the tables at the head of a module."""
    tables: dict[str, dict[int, str]] = {name: {} for name in _TABLES}
    table: dict[int, str] | None = None
    for line in lines:
        if line in tables:
            table = tables[line]
        elif table is not None:
            number, _, value = line.partition(" ")
            if not number.isdigit():
                table = None
                if line:
                    break  # the first computation
            else:
                table[int(number)] = value
    files, functions = ({k: v[1:-1] for k, v in tables[name].items()} for name in _TABLES[:2])
    fields = [{k: {key: int(number) for key, _, number in _FIELD.findall(v)}
               for k, v in tables[name].items()} for name in _TABLES[2:]]
    # Some versions count parents from 2, with 1 for none; others from 1, with 0 for none.
    shift = int(fields[1].get(1, {}).get("parent_frame_id", 0) == 1)
    found: dict[int, int] = {}
    for frame_id, frame in fields[1].items():  # a caller comes before what it calls
        at = fields[0].get(frame.get("file_location_id", 0))
        if at is not None:
            found[frame_id] = places.at(
                files.get(at.get("file_name_id", 0), ""),
                functions.get(at.get("function_name_id", 0), ""), at.get("line", 0),
                at.get("column", 0),
                found.get(frame.get("parent_frame_id", 0) - shift, UNKNOWN))
    return found
