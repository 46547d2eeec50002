"""`python -m pyjx report PROGRAM.py`: where the time of a process went, by stage, function and
line, and what would shorten it."""

from __future__ import annotations

import builtins
import html
import json
import linecache
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from pyjx import configuration
from pyjx.cli import programs
from pyjx.core.frames import shown_path
from pyjx.core.records import Record
from pyjx.core.value_texts import size_text
from pyjx.runtime import cache, explain, ledger
from pyjx.runtime.costs import FREE
from pyjx.viewer import ranking
from pyjx.viewer.jaxprs import jaxpr_listing
from pyjx.viewer.listing import Places

_ROWS = 20
_ARGUMENTS = 8  # that are listed
_SHORT = 0.1  # seconds of operations that nobody need shorten
_MANY_SIZES = 16  # of one operation
_LONG = 24  # characters of a cell that may take several lines


class Seconds(float):
    """A time: a number of seconds in data."""

    def __str__(self) -> str:
        return explain.time_text(self)


class Share(float):
    """A part of the whole."""

    def __str__(self) -> str:
        return f"{self:.0%}"


class Count(float):
    """A number of operations or bytes, of which three digits tell enough."""

    def __str__(self) -> str:
        return f"{self:.3g}"


class Size(int):
    """What an array takes: a number of bytes in data."""

    def __str__(self) -> str:
        return size_text(int(self))


class Function(str):
    """The name of a function, of which several may have it: the anchor tells them apart."""

    anchor: str

    def __new__(cls, name: str, place: str) -> Function:
        made = super().__new__(cls, name)
        made.anchor = html.escape(f"of-{name}-at-{place}")
        return made


class Section(Record):
    """A part of the page: a table, with what it is in one sentence."""

    title: str
    note: str
    head: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    def __str__(self) -> str:
        return "\n".join([f"{self.title}: {self.note}", *explain.table(self.head, self.rows)])

    @property
    def data(self) -> list[dict[str, Any]]:
        """The rows as JSON has them, without what is drawn."""
        return [{name: value for name, value in zip(self.head, row, strict=True) if name}
                for row in self.rows]

    @property
    def anchor(self) -> str:
        return self.title.replace(" ", "-").lower()

    def html(self, compiled: frozenset[str]) -> str:
        """The section as HTML. The names of functions that were compiled lead to the first of their
        compilations."""
        are_these = self.head[:2] == ("function", "trace")

        def cell(name: str, value: Any) -> str:
            text = html.escape(str(value))
            kind = " class=long" if name and len(text) > _LONG else ""
            if isinstance(value, Function) and value.anchor in compiled and not are_these:
                text = f"<a href='#{value.anchor}'>{text}</a>"
            elif not name and set(text) <= {"#"}:
                text = f"<i style='width:{len(text) / 4}em'></i>"
            return f"<td{kind}>{text}</td>"

        head = "".join([f"<th>{html.escape(name)}</th>" for name in self.head])
        first = {row[0].anchor: row for row in reversed(self.rows)} if are_these else {}
        names = [f" id='{row[0].anchor}'" if are_these and first[row[0].anchor] is row else ""
                 for row in self.rows]
        rows = "\n".join([f"<tr{name}>{''.join(map(cell, self.head, row))}</tr>"
                          for name, row in zip(names, self.rows, strict=True)])
        table = f"\n<table><tr>{head}</tr>\n{rows}</table>" if rows else ""
        return (f"<h2 id={self.anchor}>{html.escape(self.title)}</h2>\n"
                f"<p>{html.escape(self.note)}</p>{table}")


class Timer:
    """The clock of a process, and what its imports took; those of the program, the outermost ones.
    """

    def __init__(self) -> None:
        self.before = time.process_time()  # the interpreter, numpy, jaxlib and pyjx
        self.start = time.perf_counter()
        self.imports = self.whole = 0.0
        self._depth = 0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Within it the program runs."""
        plain = builtins.__import__
        builtins.__import__ = self._timed(plain)
        try:
            yield
        finally:
            builtins.__import__ = plain
            self.whole = time.perf_counter() - self.start

    def _timed(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        def import_(name: str, *args: Any, **kwargs: Any) -> Any:
            if name in sys.modules:
                return plain(name, *args, **kwargs)
            start, self._depth = time.perf_counter(), self._depth + 1
            try:
                return plain(name, *args, **kwargs)
            finally:
                self._depth -= 1
                if not self._depth:
                    self.imports += time.perf_counter() - start
        return import_


def sections(timer: Timer) -> list[Section]:
    """The parts of the page."""
    found = explain.explain()
    every = [_times(timer, found), _advice(found), _functions(found), _compilations(found),
             *_lines()]
    return every if found.functions else [s for s in every if s.rows]


def _times(timer: Timer, found: explain.ProcessExplanation) -> Section:
    each = found.functions
    loaded = [p.seconds for e in each for t in e.traces for p in t.programs if p.from_disk is True]
    rows = {"interpreter, numpy, jaxlib, pyjx": timer.before,
            "imports of the program": timer.imports,
            # with the functions within
            "trace": sum([t.trace_seconds for e in each for t in e.traces if not t.within]),
            "lower": sum([e.lower_seconds for e in each]),
            "compile": sum([e.compile_seconds for e in each]) - sum(loaded),
            "load from disk": sum(loaded),
            "operations outside of jit": sum([row.seconds for row in found.operations]),
            "first runs": sum([e.run_seconds for e in each])}
    whole = timer.before + timer.whole
    rows["all else"] = max(whole - sum(rows.values()), 0.0)
    return Section("Time", f"{explain.time_text(whole)} in all; what runs in several threads, or "
                   "in an import, counts twice.", ("stage", "time", "share", ""),
                   tuple([(k, Seconds(v), Share(v / whole), "#" * round(40 * v / whole))
                          for k, v in rows.items()]))


def _advice(found: explain.ProcessExplanation) -> Section:
    rows: list[tuple[float, str, str]] = []
    for e in found.functions:
        name = Function(e.function, e.place)
        again: dict[tuple[Any, ...], list[explain.Trace]] = {}
        for trace in e.traces:
            causes = tuple([(c.where, cure) for c, _, cure in explain.cured(trace.changes)])
            again.setdefault(causes, []).append(trace)
            rows += [(seconds, name, f"compiled again, {why}: {cure}")
                     for why, cure, seconds in explain.compiled_again(trace)]
        again.pop((), None)  # the first one
        for traces in again.values():
            times = "" if len(traces) == 1 else f" {len(traces)} times"
            spent = sum([t.trace_seconds + t.lower_seconds + t.compile_seconds for t in traces])
            why = [f"{text}: {cure}" for _, text, cure in explain.cured(traces[-1].changes)]
            rows.append((spent, name, f"traced again{times}, {'; '.join(why)}"))
        reasons = {p.from_disk for t in e.traces for p in t.programs if type(p.from_disk) is str}
        rows += [(e.compile_seconds, name, f"not kept on disk: {r}") for r in sorted(reasons)]
    rows += [(seconds, "operations outside of jit", why)
             for seconds, why in _advice_on_operations(found)]
    if cache.folder() is None:
        rows.append((sum([e.compile_seconds for e in found.functions]), "the process",
                     "the disk cache is off: a second run compiles all again"))
    return Section("What would shorten it", "the dearest first." if rows else "nothing was found.",
                   ("function", "time", "why, and what to do"),
                   tuple([(name, Seconds(seconds), why)
                          for seconds, name, why in sorted(rows, reverse=True)[:_ROWS]]))


def _advice_on_operations(found: explain.ProcessExplanation) -> Iterator[tuple[float, str]]:
    sizes = {explain.called(operation): (n, line)
             for n, line, operation in sorted(ledger.operation_sizes(), key=lambda row: row[:2])}
    others = []
    for row in found.operations:
        n, line = sizes.get(row.name, (0, ""))
        if n < _MANY_SIZES:
            others.append(row)
        elif row.seconds > _SHORT:
            yield row.seconds, (f"{row.name} was compiled for {n} sizes at {shown_path(line)}: "
                                "jit a function that has them all in each call, or use few, as by "
                                "padding, as jit compiles each apart, too")
    if (seconds := sum([row.seconds for row in others])) > _SHORT:
        names = ", ".join([row.name for row in others[:5]])
        lines = ledger.operation_lines()[:1]
        at = "".join([f", such as the one at {shown_path(line)}" for line in lines])
        yield seconds, f"jit the function that calls {names}{at}"


def _functions(found: explain.ProcessExplanation) -> Section:
    rows = [(Function(e.function, e.place), e.n_traces, e.n_programs, e.n_from_disk, *map(Seconds, (
        e.trace_seconds, e.lower_seconds, e.compile_seconds, e.run_seconds)), e.place)
        for e in found.functions]
    return Section("Functions", "what was traced and compiled, the dearest first.",
                   ("function", "traces", "programs", "from disk", "trace", "lower", "compile",
                    "first runs", "defined at"), tuple(rows))


def _compilations(found: explain.ProcessExplanation) -> Section:
    rows = [(Function(e.function, e.place), t.number, t.cache or "no program", *map(Seconds, (
        t.trace_seconds, t.lower_seconds, t.compile_seconds)), t.caller,
             "; ".join([str(t.cause) if t.changes else _first(t.arguments), *[
                 f"compiled again: {why}" for why, *_ in explain.compiled_again(t)]]))
            for e in found.functions for t in e.traces]
    return Section("Compilations", "each trace, its caller, and why it was made.",
                   ("function", "trace", "cache", "tracing", "lowering", "compile", "called at",
                    "why, or for what"),
                   tuple(rows))


def _first(arguments: Sequence[str]) -> str:
    more = len(arguments) - _ARGUMENTS
    return ", ".join([*arguments[:_ARGUMENTS], *([f"and {more} more"] if more > 0 else [])])


def _lines() -> list[Section]:
    """Of the programs that users' functions were traced to, but for those within others."""
    lines: dict[str, Any] = {}
    left_out: set[str] = set()
    devices = 1
    values: set[tuple[float, str, str, str, str]] = set()
    for name, closed in [(Function(h.name, h.place), closed) for h in ledger.histories()
                         for e in h.entries if not e.within and (e.compiled or not e.tool)
                         if (closed := e.program()) is not None]:
        places = Places()
        listing = jaxpr_listing(closed, places)
        devices = max(devices, listing.devices)
        if listing.unsized:
            left_out.add(name)
        spent = ranking.costs(listing)
        where = ["?" if at is None else f"{shown_path(at[0])}:{at[1]}"
                 for at in places.own_lines(listing)]
        sizes, ends = ranking.arrays(listing, spent.runs, FREE), listing.ends()
        for row, own in enumerate(spent.own):
            if own:
                work = listing.flops[row], listing.traffic[row]
                lines[where[row]] = lines.get(where[row], 0.0) + np.array(
                    [own * spent.whole, *[spent.runs[row] * x for x in work]])
            if sizes[row]:
                values.update([(n, text, listing.operation[row], name, where[row])
                               for n, text in ranking.own_results(listing, row, ends) if n])
    whole = sum([sums[0] for sums in lines.values()]) or 1.0
    slowest = sorted(lines.items(), key=lambda item: -item[1][0])[:_ROWS]
    largest = sorted(values, key=lambda row: (-row[0], row))[:_ROWS]
    return [
        Section("Lines", "one run of each program, by arithmetic and traffic, the dearest first; "
                f"XLA fuses operations, so these are bounds.{_of_what(devices, left_out)}",
                ("line", "share", "operations", "bytes", "", "source"),
                tuple([(line, Share(sums[0] / whole), *map(Count, sums[1:]),
                        "#" * round(40 * sums[0] / whole), _source(line))
                       for line, sums in slowest])),
        Section("Largest arrays", "values that programs compute, whether or not they are ever in "
                "memory.", ("array", "size", "operation", "function", "line"),
                tuple([(text, Size(n), *rest) for n, text, *rest in largest]))]


def _of_what(devices: int, left_out: set[str]) -> str:
    one = f" What shard_map runs counts on one of {devices} devices." if devices > 1 else ""
    none = f" Of {', '.join(sorted(left_out))} nothing is known, as sizes are symbols." \
        if left_out else ""
    return one + none


def _source(line: str) -> str:
    file, _, number = line.rpartition(":")
    return linecache.getline(os.path.abspath(file), int(number)).strip() if number.isdigit() else ""


def page(title: str, found: Sequence[Section]) -> str:
    """One HTML file that needs nothing else."""
    links = " ".join([f"<a href=#{s.anchor}>{html.escape(s.title)}</a>" for s in found])
    compiled = frozenset([row[0].anchor for s in found if s.title == "Compilations"
                          for row in s.rows])
    parts = "\n".join([section.html(compiled) for section in found])
    style = files("pyjx.viewer").joinpath("assets", "report.css").read_text(encoding="utf-8")
    return (f"<!doctype html><html lang=en><meta charset=utf-8><title>{html.escape(title)}</title>"
            f"<style>{style}</style><h1>{html.escape(title)}</h1>\n<nav>{links}</nav>\n{parts}\n"
            "</html>\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; its exit status is that of the program."""
    parser = programs.Parser(
        prog="python -m pyjx report",
        description="Run a program as `python -m pyjx` does, then tell where its time went.")
    parser.add_argument("-o", dest="file", type=Path,
                        help="write the report there: .html is a page, .json data in seconds and "
                             "bytes, else text; "
                             "by default it goes to the standard error")
    options, program = programs.parted(parser, arguments)
    file = None if options.file is None else options.file.absolute()  # the program may move on
    if file is not None and file.is_dir():
        parser.error(f"-o {options.file}: that is a folder; name a file")
    if file is not None and not file.parent.is_dir():
        parser.error(f"-o {options.file}: there is no folder {options.file.parent}")
    if file is None and "-o" in program[1:]:
        print("python -m pyjx report: -o stands behind the program, and is the program's own; the "
              "report's goes before it", file=sys.stderr)
    process = os.getpid()
    configuration.report.update(True)
    timer = Timer()
    try:
        with timer.running():
            return programs.main(program)
    finally:
        try:
            if process == os.getpid():  # not one that the program made of itself
                _write(file, " ".join(program), sections(timer))
        except Exception as error:  # the program's end counts
            print(f"python -m pyjx report: {type(error).__name__}: {error}", file=sys.stderr)


def _write(file: Path | None, title: str, found: Sequence[Section]) -> None:
    text = "\n\n".join(map(str, found)) + "\n"
    if file is None:
        print(f"\n{text}", end="", file=sys.stderr)
        return
    if file.suffix == ".html":
        text = page(title, found)
    elif file.suffix == ".json":
        text = json.dumps({s.title: s.data for s in found}, indent=1)
    file.write_text(text, encoding="utf-8")
