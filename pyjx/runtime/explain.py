"""`explain`: what was traced and compiled in this process, why, what it cost, what caches hold."""

from __future__ import annotations

import logging
import platform
import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from pyjx import configuration, jaxlib_api, tree_util
from pyjx.core import bounded
from pyjx.core.avals import AbstractValue, ShapedArray
from pyjx.core.call_code import is_listed
from pyjx.core.frames import is_internal, own_frame, own_line
from pyjx.core.options import MEMORY_BUDGET
from pyjx.core.records import Record
from pyjx.core.symbolic.solving import constraints_in
from pyjx.core.value_texts import counted, in_short, operator_of, size_text
from pyjx.guards import guard
from pyjx.runtime import backends, cache, ledger, programs
from pyjx.runtime.ledger import Entry, History, Layout, Path, Program, Static, layout_of
from pyjx.version import PYJX_VERSION


class Cache(Record):
    """One cache: how much it holds, and what bounds it.

    Attributes:
      name: what it holds.
      entries: how many.
      bytes: how much memory or disk, about; None where only the number is known.
      bound: what it is bounded by, such as `4.0 GiB (jax_pyjx_programs_max_bytes)`.
      place: the folder of a cache on disk.
    """

    name: str
    entries: int
    bytes: int | None
    bound: str
    place: str = ""

    def __str__(self) -> str:
        size = "" if self.bytes is None else f", {size_text(self.bytes)}"
        place = f" in {self.place}" if self.place else ""
        return f"cache of {self.name}{place}: {self.entries}{size}; at most {self.bound}"


def caches() -> tuple[Cache, ...]:
    """The caches of the process, and the one on disk."""
    limit = configuration.programs_max_bytes.value
    found = [
        Cache("compiled programs", programs.loaded_count(), programs.loaded_bytes(),
              "any number" if limit < 0
              else f"{size_text(limit)} (jax_pyjx_programs_max_bytes)"),
        Cache("operations outside of jit", programs.operation_count(), None,
              f"{2 * programs.OPERATIONS} programs"),
        Cache("calls that C++ makes", programs.fast_paths.size(), None,
              f"{programs.FAST_PATHS} calls"),
    ]
    found += [Cache(what, entries, None, f"{capacity} entries")
              for what, (entries, capacity) in sorted(bounded.sizes().items())]
    folder = cache.folder()
    if folder is not None:
        n, size = cache.contents(folder)
        found.append(Cache("programs on disk", n, size,
                           f"{size_text(cache.maximum_bytes())} (jax_pyjx_cache_max_bytes)",
                           folder))
    return tuple(found)


class Change(Record):
    """One difference between a trace and an earlier one.

    Attributes:
      kind: what differs: `shape`, `rank`, `dtype`, `shape and dtype`, `rank and dtype`,
        `weak type`, `sharding`, `answer` (of what the function asks of sizes that have names),
        `static` (of a static argument; `static number`, `static function` or `static object`, one
        made anew, by what it is), `default` (it was left out), `structure`, `keyword`, `function`,
        `options`, `flag`, `axes`, `tracer`, `cleared` or `evicted`.
      where: the argument with its path, such as `batch['x']`, or the flag; empty for the function.
      before, after: what it was and what it is.
    """

    kind: str
    where: str
    before: str
    after: str

    def __str__(self) -> str:
        where = f"{self.where}: " if self.where else ""
        return f"{where}{self.before} -> {self.after}" if self.before else f"{where}{self.after}"


class RetraceWarning(UserWarning):
    """A function was traced again so often that compiling may take longer than computing.

    The flags `jax_pyjx_retraces_warn_count` (-1 for never) and `jax_pyjx_retraces_warn_seconds`
    say after how many retraces, and after how long a time. It ends a program only where a filter
    names it (`warnings.simplefilter("error", RetraceWarning)`); where all warnings are errors, it
    is logged.

    >>> import pyjx as jax
    >>> issubclass(jax.RetraceWarning, UserWarning)
    True
    """


class Trace(Record):
    """One trace of a function.

    Attributes:
      number: among the traces that the program asked for, from 1; 0 of others.
      arguments: what it was traced for, such as `('x: f32[3]', 'n = 2')`.
      changes: what differs from the nearest earlier trace; none for the first.
      caller: `file.py:12`, the user's line that asked for it.
      within: the name of the function that was being traced around it; empty if none.
      trace_seconds, lower_seconds, compile_seconds: what it cost, its derivatives' programs
        included; the time of a trace includes the functions traced within.
      programs: what was compiled for it.
      is_own: whether the function that is explained was jitted with the same options.
      tool: that which looked at the function, such as `inspect.find`, which is no call of the
        program's; empty if none.
    """

    number: int
    arguments: tuple[str, ...]
    changes: tuple[Change, ...]
    caller: str
    within: str
    trace_seconds: float
    lower_seconds: float
    compile_seconds: float
    programs: tuple[Program, ...]
    is_own: bool = True
    tool: str = ""

    @property
    def cause(self) -> str:
        """Why it was traced."""
        return "looked at" if self.tool else "; ".join(map(str, self.changes)) or (
            "first trace" if self.number == 1 else "the traces before are not known any more")

    @property
    def cache(self) -> str:
        """Where its programs came from: `disk`, `compiled`, both, or empty if there is none."""
        return " and ".join([word for word, found in [
            ("disk", any([p.from_disk is True for p in self.programs])),
            ("compiled", any([p.from_disk is not True for p in self.programs]))] if found])


@guard
class Explanation:
    """What became of one function, however often it was jitted or made by the same code.

    Attributes:
      function: its name.
      place: `file.py:12`, where it is defined; empty if it is not written in Python.
      traces: the latest traces, each a `Trace`; `n_traces` says how many there were.
      trace_seconds, lower_seconds, compile_seconds: the sums over all of them.
      run_seconds: what the first runs took, where `jax_pyjx_report` is on; else 0.
      n_programs, n_from_disk: programs compiled, and how many of them the disk cache had.
      is_shared: whether some of the traces are those of other jitted objects.
      buckets: of a function jitted with `dynamic`, for each program the largest sizes, those that
        there were, the number of calls, and the share of padding in the padded arguments.
    """

    __slots__ = ("buckets", "compile_seconds", "function", "is_shared", "lower_seconds",
                 "n_from_disk", "n_programs", "n_traces", "place", "run_seconds", "trace_seconds",
                 "traces")

    def __init__(self, function: str, history: History | None, buckets: Sequence[Any] = (),
                 own: ledger.Traces | None = None) -> None:
        self.function = function
        self.buckets = tuple(buckets)
        costs = ledger.Costs() if history is None else history.costs
        self.place = "" if history is None else history.place
        entries = [] if history is None else list(history.entries)
        self.traces = tuple([
            _trace(e, entries[:i])._replace(is_own=own is None or own.options == e.options)
            for i, e in enumerate(entries)])
        made: list[Entry | ledger.Traces] = [*entries, *([] if own is None else [own])]
        self.is_shared = len({(x.function, x.options) for x in made}) > 1
        self.n_traces = costs.traces
        self.n_programs = costs.programs
        self.n_from_disk = costs.from_disk
        self.trace_seconds = costs.trace
        self.lower_seconds = costs.lower
        self.compile_seconds = costs.compile
        self.run_seconds = costs.run

    @property
    def seconds(self) -> float:
        """All that tracing, lowering and compiling took."""
        return self.trace_seconds + self.lower_seconds + self.compile_seconds

    def __str__(self) -> str:
        where = f", defined at {self.place}" if self.place else ""
        if not self.traces:
            return f"{self.function}{where}: not traced yet"
        lines = [f"{self.function}{where}: {counted(self.n_traces, 'trace')}, "
                 f"{counted(self.n_programs, 'program')} ({self.n_from_disk} from disk)"
                 f"{', of all that is jitted of its code' * self.is_shared}",
                 f"traced {time_text(self.trace_seconds)}, lowered "
                 f"{time_text(self.lower_seconds)}, compiled {time_text(self.compile_seconds)}"
                 + (f", first runs {time_text(self.run_seconds)}" if self.run_seconds else "")]
        if (latest := len([t for t in self.traces if not t.tool])) < self.n_traces:
            lines.append(f"the latest {latest} traces:")
        for t in self.traces:
            cause = t.cause if t.changes else f"{t.cause} ({', '.join(t.arguments)})"
            within = "".join([f", within {name}" for name in (t.within, t.tool) if name])
            other = ", jitted with other options" * (not t.is_own)
            lines.append(f"{t.number or '-':>3} {t.caller}{within}{other}: {cause}")
            lines += [f"    {line}" for line in _program_lines(t)]
        return "\n".join([*lines, *map(str, self.buckets)])

    __repr__ = __str__


class OperationCosts(Record):
    """What a function of the library's cost when it was called outside of `jit`."""

    name: str
    traces: int = 0
    programs: int = 0
    from_disk: int = 0
    seconds: float = 0.0


@guard
class ProcessExplanation:
    """What became of all functions of the process.

    Attributes:
      functions: an `Explanation` of each of the user's, or public one, the one that cost most
        first.
      operations: what the library's own functions cost when they were called outside of `jit`, an
        `OperationCosts` of each, the costliest first.
    """

    __slots__ = ("functions", "operations")

    def __init__(self) -> None:
        found = [Explanation(h.name, h) for h in ledger.histories()
                 if (is_listed(h.name) and h.costs.traces)  # which only tools have called, if 0
                 or not is_internal(h.place.rpartition(":")[0])]
        self.functions = tuple(sorted(found, key=lambda e: -e.seconds))
        rows: dict[str, OperationCosts] = {}
        for operation, c in ledger.operations().items():
            name = called(operation)
            row = rows.get(name, OperationCosts(name))
            rows[name] = OperationCosts(name, row.traces + c.traces, row.programs + c.programs,
                                        row.from_disk + c.from_disk, row.seconds + c.seconds)
        self.operations = tuple(sorted(rows.values(), key=lambda row: -row.seconds))

    @property
    def caches(self) -> tuple[Cache, ...]:
        """What the caches hold now; the folder of the one on disk is looked through."""
        return caches()

    def __str__(self) -> str:
        lines = [f"{counted(len(self.functions), 'function')} traced"]
        lines += table(
            ("function", "traces", "programs", "disk", "trace", "lower", "compile", "defined at"),
            [(e.function, e.n_traces, e.n_programs, e.n_from_disk, time_text(e.trace_seconds),
              time_text(e.lower_seconds), time_text(e.compile_seconds), e.place)
             for e in self.functions[:20]])
        if len(self.functions) > 20:
            lines.append(f"... and {len(self.functions) - 20} more")
        n_programs = sum([row.programs for row in self.operations])
        n_disk = sum([row.from_disk for row in self.operations])
        seconds = sum([row.seconds for row in self.operations])
        lines.append(f"operations outside of jit: {counted(n_programs, 'program')} ({n_disk} from "
                     f"disk), {time_text(seconds)}")
        costliest = [f"{row.name} {time_text(row.seconds)}" for row in self.operations[:5]]
        if costliest:
            lines.append(f"  costliest: {', '.join(costliest)}")
        return "\n".join([*lines, *[str(c) for c in self.caches if c.entries or c.place]])

    __repr__ = __str__


def called(operation: ledger.Operation) -> str:
    """The public function or method that the user has called, for which an operation was compiled;
    else, or where that maps another function over a tree, what the operation is called."""
    name, code = operation
    said = "<" if code is None or code.co_filename == tree_util.__file__ else code.co_qualname
    return said if "<" not in said and "__" not in said and is_listed(said.partition(".")[0]) \
        else operator_of(name)


def explain() -> ProcessExplanation:
    """What was traced and compiled in this process, and what it cost.

    Printed, it is a report; `f.explain()` of a jitted function says why that was traced each time.

    >>> import pyjx as jax
    >>> @jax.jit
    ... def thrice(x):
    ...     return 3 * x
    ...
    >>> _ = thrice(1.0), thrice(jax.numpy.ones(3))
    >>> [str(t.cause) for t in thrice.explain().traces]
    ['first trace', 'x: weak f32[] -> f32[3]']
    >>> [e.n_traces for e in jax.explain().functions if e.function == "thrice"]
    [2]
    """
    return ProcessExplanation()


class PaddedCalls(Protocol):
    """What `pyjx/dynamic` knows of the calls of a function."""

    def buckets(self) -> Sequence[object]: ...

    def clear(self) -> None: ...


def explain_function(spec: Any) -> Explanation:
    """What became of a jitted function."""
    padded = () if spec.padded is None else spec.padded.buckets()
    return Explanation(spec.name, ledger.history_of(spec), padded, spec.traces)


def _trace(entry: Entry, earlier: Sequence[Entry]) -> Trace:
    costs = entry.costs
    return Trace(entry.number, tuple(arguments(entry)), changes_of(entry, earlier),
                 own_line(entry.traceback) or "?", entry.within, costs.trace, costs.lower,
                 costs.compile, entry.compiled, tool=entry.tool)


def _program_lines(trace: Trace) -> list[str]:
    """A line for each program, that says what is not plain of it."""
    cache = f" ({trace.cache})" if trace.cache else ""
    lines = [f"trace {time_text(trace.trace_seconds)}, lower {time_text(trace.lower_seconds)}, "
             f"compile {time_text(trace.compile_seconds)}{cache}"]
    lines += [f"compiled again, not traced: {why}" for why, *_ in compiled_again(trace)]
    reasons = [p.from_disk for p in trace.programs if isinstance(p.from_disk, str)]
    lines += [f"not kept on disk: {reason}" for reason in dict.fromkeys(reasons)]
    lines += dict.fromkeys([p.memory for p in trace.programs if p.memory])
    lines += ["calls for the same run by this trace"] * bool(trace.tool and trace.programs)
    if derived := sum([p.derived for p in trace.programs]):
        lines.append(f"{counted(derived, 'program')} of derivatives, batches or buckets of it")
    return lines


def compiled_again(trace: Trace) -> list[tuple[str, str, float]]:
    """Why there is another program of a trace, each time, what to do about it, and its seconds."""
    found = []
    for before, now in pairwise([p for p in trace.programs if not p.derived]):
        why = {kind: f"{'compiler ' * (kind == 'options')}{kind} {getattr(before, kind)} -> "
                     f"{getattr(now, kind)}" for kind in ("device", "shardings", "options")
               if getattr(before, kind) != getattr(now, kind)} or (
            {"budget": "for the budget, by the compiler's word"} if now.memory
            else {"evicted": "its program had been dropped"})
        found.append((" and ".join(why.values()), "; ".join([CURES[k] for k in why]), now.seconds))
    return found


def time_text(seconds: float) -> str:
    """`12.3 ms`, or `1.20 s`."""
    return f"{seconds * 1e3:.1f} ms" if seconds < 0.1 else f"{seconds:.2f} s"


def table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[str]:
    """The lines of a table; the first and the last column stand on the left, others on the right.
    """
    if not rows:
        return []
    texts = [list(map(str, row)) for row in (head, *rows)]
    widths = [max([len(row[i]) for row in texts]) for i in range(len(head))]
    last = len(head) - 1
    return ["  " + "  ".join([
        cell.ljust(width) if i in (0, last) else cell.rjust(width)
        for i, (cell, width) in enumerate(zip(row, widths, strict=True))]).rstrip()
        for row in texts]


# -- why a function was traced again ---------------------------------------------------------------


CURES = {
    "shape": "pad the argument to one of a few shapes, or have jit do it by its option dynamic",
    "rank": "give the argument the same number of axes in each call",
    "answer": "each answer to what the function asks of its sizes is traced apart: let it compute "
              "with them by jax.numpy, or accept a trace for each",
    "dtype": "convert the argument to one dtype before the call",
    "shape and dtype": "convert the argument to one dtype, and pad it to one of a few shapes or "
                       "have jit do it by its option dynamic",
    "rank and dtype": "convert the argument to one dtype, and give it the same number of axes in "
                      "each call",
    "sharding": "give the argument one sharding before the calls, by jax.device_put(x, sharding)",
    "weak type": "always pass an array, as by jnp.asarray(x, dtype), or always a Python number",
    "static number": "pass the value as an array, if it is a number and neither shapes nor Python "
                     "control flow depend on it",
    "static": "each value is traced apart: give few of them, and pass as arrays the numbers in it "
              "that neither shapes nor Python control flow depend on",
    "static function": "make the function once, outside of the loop or function that makes it",
    "static object": "give the class of the argument __eq__ and __hash__, or make the object once",
    "default": "give {} in each call, or in none",
    "structure": "pass the same structure in each call",
    "metadata": "make what the object holds besides arrays once, or give the classes of that "
                "__eq__ and __hash__",
    "keyword": "pass the argument in the same way, by position or by keyword, in each call",
    "function": "make and transform the function once, outside of the loop or function that calls "
                "it",
    "options": "jit the function once, with the same options",
    "flag": "set the flag once, before the first call",
    "axes": "use the same names and sizes of axes",
    "tracer": "pass the value that the function closes over as an argument",
    "cleared": "clear the caches less often",
    "evicted": "call the function with fewer signatures",
    "device": "put the arguments on one device, or let jit take a function for each of them",
    "shardings": "give the arguments the same shardings in each call, or jit the function with "
                 "in_shardings",
    "budget": "give it more memory",
}


def cure_for(change: Change) -> str:
    """What to do about it."""
    return CURES[change.kind].format(change.where)


def cured(changes: Sequence[Change]) -> Iterator[tuple[Change, str, str]]:
    """All that is to be done about a trace that differs so: of each cure the first change that it
    is for, with a text of that and of how many others there are."""
    found: dict[str, list[Change]] = {}
    for change in changes:
        found.setdefault(cure_for(change), []).append(change)
    for cure, (first, *more) in found.items():
        yield first, f"{first}{f', and {len(more)} more' if more else ''}", cure


def type_text(aval: AbstractValue) -> str:
    """`f32[3]`, or `weak f32[]` for what Python numbers make."""
    text: str = aval.str_short(True)
    return f"weak {text}" if getattr(aval, "weak_type", False) else text


def layout(entry: Entry) -> Layout:
    """The structure of an entry's arguments."""
    if entry.layout is None:
        entry.layout, entry.tree = layout_of(entry.source, entry.tree, entry.static), None
    return entry.layout


def arguments(entry: Entry) -> list[str]:
    """What the function was traced for: `x: f32[3]` for each leaf, and the static arguments."""
    paths = layout(entry).leaves
    texts = [f"{''.join(p)}: {type_text(a)}" for p, a in zip(paths, entry.avals, strict=True)]
    return texts + [f"{s.name} = {s.text}" for s in entry.static]


def changes_of(entry: Entry, earlier: Sequence[Entry]) -> tuple[Change, ...]:
    """What differs from the nearest of the earlier entries; empty for the first one, and for what
    was only looked at."""
    earlier = [e for e in earlier if not e.tool]
    if entry.tool or not earlier:
        return ()
    earlier = [e for e in earlier if e.options == entry.options] or earlier
    own = [e for e in earlier if e.function == entry.function]
    if not own:
        nearest = min(reversed(earlier), key=lambda e: _distance(_signature_changes(e, entry)))
        return (_new_function(nearest, entry), *_signature_changes(nearest, entry))
    return min([_signature_changes(e, entry) for e in reversed(own)], key=_distance) or (
        _dropped(own, entry),)


_DISTANCES = {"structure": 8, "rank and dtype": 6, "rank": 4, "shape and dtype": 4,
              "weak type": 1, "keyword": 1}


def _distance(changes: Sequence[Change]) -> tuple[int, int]:
    """How far a trace is from another, by what differs, and of shapes by how many dimensions do."""
    sizes = [[c.before.split(","), c.after.split(",")] for c in changes if "shape" in c.kind]
    return (sum([_DISTANCES.get(c.kind, 2) for c in changes]),
            sum([a != b for then, now in sizes for a, b in zip(then, now, strict=False)]))


def _new_function(before: Entry, after: Entry) -> Change:
    """A function like one before, but another object: what it has with it may differ."""
    made = {
        "partial": "a functools.partial made anew",
        "method": "a method of another object",
        "object": "another callable object",
        "wrapper": "a transformed function made anew",
    }.get(after.source.made, "a function made anew by the same code")
    then = dict(before.source.captured)
    differing = [f"{name}: {then[name]} -> {text}" for name, text in after.source.captured
                 if name in then and then[name] != text]
    having = f", with {', '.join(differing)}" if differing else ""
    return Change("function", "", "", made + having)


def _dropped(own: Sequence[Entry], entry: Entry) -> Change:
    """It had been traced for the same before."""
    if entry.captures_tracers:
        return Change("tracer", "", "", "the function closes over a value that is being traced, "
                                        "and is traced anew with each")
    if entry.clears > own[-1].clears:
        return Change("cleared", "", "", "the traces had been cleared (clear_caches, clear_cache)")
    return Change("evicted", "", "", "the trace had been dropped: only so many signatures are kept")


def _signature_changes(before: Entry, after: Entry) -> tuple[Change, ...]:
    if before.options != after.options:  # it would be traced whatever else differs
        then, now = _named(before.options), _named(after.options)
        return tuple([Change("options", f"jit(..., {name})", in_short(then[name]), in_short(x))
                      for name, x in now.items() if then[name] != x])
    changes: list[Change] = []
    if before.tree_hash != after.tree_hash or layout(before) != layout(after):
        changes += _structure_changes(before, after)
    changes += _type_changes(before, after)
    changes += _static_changes(before, after)
    if before.flags != after.flags:
        then, now = dict(before.flags), dict(after.flags)
        for name in sorted({*then, *now}):
            if then.get(name) != now.get(name):
                changes.append(Change("flag", name, then.get(name, "default"),
                                      now.get(name, "default")))
    if before.axes != after.axes:
        changes.append(Change("axes", "named axes", before.axes or "none", after.axes or "none"))
    return tuple(changes)


def _named(options: Any) -> dict[str, Any]:
    """The options by the names that `jit` has for them."""
    named = options._asdict()
    of_compiler = dict(named["compiler_options"])
    budget = of_compiler.pop(MEMORY_BUDGET, None)
    return {**named, "compiler_options": tuple(of_compiler.items()), MEMORY_BUDGET: budget,
            "dynamic": named["dynamic"] and dict(named["dynamic"])}


def _type_changes(before: Entry, after: Entry) -> list[Change]:
    then = dict(zip(layout(before).leaves, before.avals, strict=True))
    changes, answers = [], _answers(before, after)
    for path, now in zip(layout(after).leaves, after.avals, strict=True):
        old = then.get(path)
        if old is not None and old is not now and old != now:
            texts = type_text(old), type_text(now)
            if texts[0] != texts[1] or not answers:
                changes.append(Change(_kind(old, now), "".join(path), *texts))
    return changes + answers


def _answers(before: Entry, after: Entry) -> list[Change]:
    """What a function was told otherwise that asks of sizes that have names."""
    then, now = constraints_in(before.avals), constraints_in(after.avals)
    gone = ", ".join([text for text in then if text not in now])
    told = ", ".join([text + (place and f", asked at {place}") for text, place in now.items()
                      if text not in then])
    return [Change("answer", "its sizes", gone, told or "not asked")] if gone or told else []


def _kind(old: Any, now: Any) -> str:
    if not (isinstance(old, ShapedArray) and isinstance(now, ShapedArray)):
        return "dtype"
    shape = "rank" if len(old.shape) != len(now.shape) else "shape" * (old.shape != now.shape)
    if old.dtype != now.dtype:
        return f"{shape} and dtype" if shape else "dtype"
    return shape or ("weak type" if old.weak_type != now.weak_type else "sharding")


def _static_changes(before: Entry, after: Entry) -> list[Change]:
    names = {s.name for s in (*before.static, *after.static)}
    defaults = {s.name: s for s in after.source.defaults if s.name in names}
    then, now = [defaults | {s.name: s for s in e.static} for e in (before, after)]
    changes = []
    for name in {**now, **then}:
        old, new = then.get(name), now.get(name)
        if old is None or new is None:
            changes.append(Change("default", name, *[x.text if x else "not given"
                                                     for x in (old, new)]))
        elif old._replace(way=new.way) != new:
            kind, text = "static", new.text
            if old.text == text and old.kind != new.kind:
                text += f" of type {new.kind}"
            elif old.text == text:
                kind, text = new.role, f"another {new.kind} that does not equal it"
            if "static number" in (old.role, new.role):
                kind = "static number"
            changes.append(Change(kind, name, _with_way(old, old.text), _with_way(new, text)))
        elif old != new:
            left_out = "by default" in (old.way, new.way)
            texts = [_with_way(x, x.text) if left_out else x.way for x in (old, new)]
            changes.append(Change("default" if left_out else "keyword", name, *texts))
    return changes


def _with_way(argument: Static, text: str) -> str:
    return f"{text} by default" if argument.way == "by default" else text


def _structure_changes(before: Entry, after: Entry) -> list[Change]:
    """Nodes that differ, and leaves that came or went where no node around them tells more."""
    old, new = layout(before), layout(after)
    then, now = dict(old.nodes), dict(new.nodes)
    changes = []
    told: set[Path] = set()
    old_types = dict(zip(old.leaves, before.avals, strict=True))
    new_types = dict(zip(new.leaves, after.avals, strict=True))

    def text(nodes: dict[Path, str], types: dict[Path, Any], path: Path) -> str:
        return nodes.get(path) or (type_text(types[path]) if path in types else "not given")

    paths = list(dict.fromkeys([p for p, _ in new.nodes] + list(new.leaves)
                               + [p for p, _ in old.nodes] + list(old.leaves)))
    for path in sorted(paths, key=len):
        if any([path[:n] in told for n in range(1, len(path))]):
            continue
        a, b = text(then, old_types, path), text(now, new_types, path)
        if (path in old_types and path in new_types) or a == b:
            continue
        told.add(path)
        keys = _key_changes(path, old, new) if a.startswith("dict") and b.startswith("dict") else []
        where = "".join(path)
        kind = "default" if "not given" in (a, b) and where.isidentifier() else "structure"
        changes += keys or [Change(kind, where, a, b)]
    if not changes:
        known = dict(old.metadata)
        changes = [Change("metadata", "".join(path), now[path],
                          "another, whose data besides arrays do not equal its")
                   for path, data in new.metadata if known.get(path) != data]
    if not changes and old.keywords != new.keywords:
        for name in sorted({*old.keywords} ^ {*new.keywords}):
            by = ("by keyword", "by position") if name in old.keywords else (
                "by position", "by keyword")
            changes.append(Change("keyword", name, *by))
    return changes or [Change("structure", "the arguments", "", "another structure of containers")]


def _key_changes(path: Path, old: Layout, new: Layout) -> list[Change]:
    """Keys that a dict has more or less."""
    n = len(path)

    def keys(layout: Layout) -> list[str]:
        inside = [p[n] for p in (*layout.leaves, *[p for p, _ in layout.nodes])
                  if len(p) > n and p[:n] == path]
        return list(dict.fromkeys(inside))

    then, now, where = keys(old), keys(new), "".join(path)
    return [
        *[Change("structure", where + k, "", "new key") for k in now if k not in then],
        *[Change("structure", where + k, "", "key gone") for k in then if k not in now],
    ]


# -- messages at a miss ----------------------------------------------------------------------------


def report_miss(history: History, entry: Entry, warns: bool) -> None:
    """Log why a function was traced, where the flag wants it; `warns`: it was too often."""
    entries = list(history.entries)
    earlier = entries[:entries.index(entry)]
    if configuration.explain_cache_misses.value:
        _log_miss(history, entry, changes_of(entry, earlier))
    if warns:
        _warn(history, entry, changes_of(entry, earlier))


def _log_miss(history: History, entry: Entry, changes: Sequence[Change]) -> None:
    frame = own_frame(entry.traceback)
    where = "? (?)" if frame is None else (
        f"{frame.file_name}:{frame.start_line} ({frame.function_name})")
    of = f"{history.name} defined at {history.place}" if history.place else history.name
    lines = [f"TRACING CACHE MISS at {where}:"]
    if not changes:
        lines += [f"  never seen function: {of}", f"  for {', '.join(arguments(entry))}"]
    else:
        lines.append(f"  for {of}, traced {history.costs.traces} times; now:")
        lines += [f"  * {change}" for change in changes]
    logging.getLogger(__name__).warning("%s", "\n".join(lines))


def _warn(history: History, entry: Entry, changes: Sequence[Change]) -> None:
    entries = list(history.entries)
    kinds: Counter[str] = Counter()
    for i, e in enumerate(entries[1:], 1):
        kinds.update(dict.fromkeys([c.kind for c in changes_of(e, entries[max(0, i - 8):i])], 1))
    usual = [kind for kind, n in kinds.items() if 2 * n >= max(kinds.values())]
    now = [f"Now {text}. Cure: {cure}. " for _, text, cure in cured(
        [c for c in changes if c.kind in usual] or changes)]
    why = f"Mostly the cause was: {' and '.join(usual)}. {''.join(now)}" if now else ""
    frame = own_frame(entry.traceback)
    try:
        warnings.warn_explicit(
            f"{history.name}{f' ({history.place})' if history.place else ''} was traced "
            f"{history.costs.traces} times, which took {time_text(history.seconds())} with "
            f"compiling. {why}Its explain() lists the traces; the flag "
            "jax_pyjx_retraces_warn_count says after how many to warn (-1: never).",
            RetraceWarning, *(("<unknown>", 1) if frame is None else (
                frame.file_name, frame.start_line)))
    except RetraceWarning as advice:
        # Whoever makes all warnings errors does not mean those that a slow machine alone gives.
        if any([category is RetraceWarning for _, _, category, *_ in warnings.filters]):
            raise
        logging.getLogger(__name__).warning("%s", advice)


# -- the machine -----------------------------------------------------------------------------------


def print_environment_info(return_string: bool = False) -> str | None:
    """Print the versions of pyjx, jaxlib, NumPy and Python, the devices and the platform.

    Args:
      return_string: return the text in place of printing it.

    >>> import pyjx as jax
    >>> "jaxlib" in jax.print_environment_info(return_string=True)
    True
    """
    devices = backends.devices()
    kinds = ", ".join(sorted({d.device_kind for d in devices}))
    lines = [
        f"pyjx:   {PYJX_VERSION}",
        f"jaxlib: {jaxlib_api.JAXLIB_RELEASE}",
        f"numpy:  {np.__version__}",
        f"python: {sys.version}",
        f"device info: {kinds}-{len(devices)}, {backends.local_device_count()} local devices",
        f"process_count: {backends.process_count()}",
        f"platform: {platform.uname()}",
    ]
    text = "\n".join(lines)
    if return_string:
        return text
    print(text)
    return None
