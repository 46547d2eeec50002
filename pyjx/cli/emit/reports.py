"""What is said beside the program: counts, times, bounds, passes, results, differences."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import webbrowser
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from emit_hlo.arguments import Options, chip_of
from pyjx.cli.emit import targets, writing
from pyjx.cli.emit.messages import CommandError, of_xla, say, working
from pyjx.core.frames import shown_path
from pyjx.core.value_texts import counted
from pyjx.inspect.comparison import diff
from pyjx.inspect.figures import roofline
from pyjx.inspect.platforms import UnavailableError
from pyjx.inspect.program import Program, TracedProgram, UnsupportedError
from pyjx.inspect.running import raw
from pyjx.lazy import deferred
from pyjx.runtime.abstract import ShapeDtypeStruct
from pyjx.runtime.shield import environment_of_child

# -- counts, times, bounds -------------------------------------------------------------------------

running = deferred("pyjx.inspect.running")  # with the interpreters
deviations = deferred("pyjx.inspect.deviations")
finding = deferred("pyjx.inspect.finding")
reducing = deferred("pyjx.inspect.reducing")
straight = deferred("pyjx.inspect.straight")
jaxprs = deferred("pyjx.viewer.jaxprs")

_PASSES = 12  # of XLA's are shown
_OPERATIONS = 16  # of those that were measured


def report(options: Options, program: Program) -> int:
    """Say on stderr what was asked for beside the output; 1 where a check failed."""
    status = 0
    if options.passes is not None:
        _passes(options, program)
    if options.stats:
        _statistics(options, program)
    if options.roofline is not None:
        _roofline(program, options.roofline)
    if options.reduce:
        return _reduce(options, program)
    if options.run or options.check or options.find:
        status = _run(options, program)
    if options.time:
        _times(program)
    return status


def _tell(text: str) -> None:
    sys.stderr.write(text.rstrip("\n") + "\n")


def _statistics(options: Options, program: Program) -> None:
    for output in options.emit:
        kind = output.kind if output.kind in ("jaxpr", "stablehlo", "hlo", "hlo-opt") \
            else "stablehlo"
        counts = program.statistics(kind)
        rows = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
        _tell("\n".join([f"{kind}: {sum(counts.values())} operations",
                         *[f"{n:8} {name}" for name, n in rows]]))


def _times(program: Program) -> None:
    total = sum(program.seconds.values())
    rows = [f"{name:10} {1000 * s:10.1f} ms" for name, s in program.seconds.items()]
    rows.append(f"{'total':10} {1000 * total:10.1f} ms")
    if program.xla_seconds:
        rows.append("XLA's passes, some of which hold others:")
        rows += [f"  {1000 * p.seconds:10.1f} ms {p.times:5} x {p.name}"
                 for p in program.xla_seconds[:_PASSES]]
    _tell("\n".join(rows))


def _roofline(program: Program, text: str) -> None:
    chip = chip_of(text)
    cost = program.cost
    of = f", for what all {cost.devices} devices do" if cost.devices > 1 else ""
    lines = [f"at {chip.flops / 1e12:g} TFLOP/s and {chip.bandwidth / 1e9:g} GB/s{of}"]
    for title, costs in (("operation", cost.by_operation), ("line", cost.by_line)):
        lines.append(f"{title:56} {'flops':>10} {'bytes':>10} {'flops/byte':>11} "
                     f"{'at least':>11} bound by")
        bounds = roofline(costs, *chip)
        for b in bounds:
            name = shown_path(b.name, 56) if title == "line" else b.name[-56:]
            lines.append(f"{name:56} {b.flops:10.3g} {b.bytes:10.3g} {b.intensity:11.3g} "
                         f"{1e6 * b.seconds:8.3f} us {b.bound}")
    lines.append(f"{'total':56} {'':10} {'':10} {'':11} "
                 f"{1e6 * sum([b.seconds for b in bounds]):8.3f} us")
    _tell("\n".join(lines))


def _passes(options: Options, program: Program) -> None:
    assert options.passes is not None
    for step in jaxprs.passes(program.lowered):
        if step.name not in options.passes:
            continue
        before, after = str(step.before), str(step.after)
        found = diff(before, after, (f"before {step.name}", f"after {step.name}"))
        if not found:
            _tell(f"==== {step.name}: {counted(len(step.before.eqns), 'equation')}, no change")
        else:
            _tell(f"==== {step.name}: {counted(len(step.before.eqns), 'equation')} become "
                  f"{len(step.after.eqns)}\n{found.text}")


def open_page(options: Options, program: Program) -> None:
    """Show the page in the user's browser."""
    path = next((o.path for o in options.emit if o.kind == "html" and o.path), None)
    if path is None and options.folder:
        path = writing.path_in_folder(options.output or "", "html", program.name)
    if path is None and options.output not in (None, "-"):
        path = options.output
    if path is None:
        descriptor, path = tempfile.mkstemp(prefix="emit-hlo-", suffix=".html")
        os.close(descriptor)
        writing.write(program.emit("html"), path)
    if not webbrowser.open(f"file://{os.path.abspath(path)}"):
        _tell(f"emit-hlo: no browser was found; the page is {path}")


_UNTOLD = 7  # the exit status where nothing can be told


def _run(options: Options, program: Program) -> int:
    assert isinstance(program, TracedProgram)
    program.check_static("what is run")
    if not program.platform.is_here:
        raise UnavailableError(f"no {program.platform.name} device is here to run on; without "
                               "--run and --check it is only compiled for")
    status, values = 0, _values(program)
    try:
        if options.run:
            with working(f"running {program.name}", options.quiet):
                done = running.run(program, values, options.run)
            lines = [f"result {name}: {_summary(x)}" for name, x in done.results]
            if options.run > 1:
                lines.append(f"{options.run} runs: least {1e6 * min(done.seconds):.1f} us, median "
                             f"{1e6 * float(np.median(done.seconds)):.1f} us")
            _tell("\n".join(lines))
        measure(options, program)
        if options.check:
            with working(f"checking {program.name}", options.quiet):
                agreement = running.check(program, options.check, values)
            _tell(str(agreement))
            status, untold = 0 if agreement else 1, bool(agreement.blind)
            if status and options.check != "interpreter":
                found = deviations.compare_program(program.jaxpr, values, "compiled", options.check)
                _tell(str(found))
                untold = found.lost is not None and not found.lost.leaves
            if untold and status:
                status = _UNTOLD
        if options.find:
            with working(f"looking for {options.find} in {program.name}", options.quiet):
                found = finding.find_in(program.jaxpr, values, options.find)
            _tell(str(found))
            status = 1 if found else status
    except running.CheckError as error:
        raise CommandError(f"--check {options.check}: {error}", 4) from None
    except RuntimeError as error:
        raise CommandError(f"{program.name} cannot be run: {of_xla(error)}", 5) from error
    return status


def _values(program: TracedProgram) -> list[Any]:
    """The arguments that the command line has the data of, and random ones for types."""
    return [drawn if isinstance(x, ShapeDtypeStruct) else x for drawn, x in zip(
        running.arguments(program.jaxpr), program.given, strict=True)]


def _reduce(options: Options, program: Program) -> int:
    assert isinstance(program, TracedProgram)
    program.check_static("what is run")
    closed, values, _ = straight.repeatable(program.jaxpr, _values(program))
    command = None if options.reduce == "crash" else options.reduce
    try:
        found = reducing.reduce_program(closed, values, command, progress=_tell)
    except reducing.NothingFailsError as error:
        _tell(f"emit-hlo: {error}")
        return 1
    except reducing.CommandNotFoundError as error:
        raise CommandError(str(error)) from None
    path = options.output or f"{program.name}_reduced.py"
    found.save(path)
    _tell(f"{found}\nwritten to {path}")
    return 0


def measure(options: Options, program: Program) -> None:
    """Tell the time of source lines and operations, or why there is none, if `--run` and `--time`
    ask for it and it was not told yet."""
    if not (options.run and options.time and isinstance(program, TracedProgram)
            and program.platform.is_here and not program.measured):
        return
    runs = options.run
    try:
        measured = running.measure(program, _values(program), runs)
    except UnsupportedError as error:
        _tell(f"no times of operations: {error}")
        return
    each = 1e6 / runs
    rows = [f"operations: {each * measured.seconds:.1f} us a run, while XLA's profiler watches",
            f"{'us alone':>12} {'with others':>12}  line"]
    rows += [f"{each * line.seconds:12.1f} {each * line.shared:12.1f}  "
             f"{shown_path(line.line) or 'of no line'}" for line in measured.by_line]
    rows.append(f"{'us':>12} {'times':>12}  operation")
    rows += [f"{each * o.seconds:12.1f} {o.times / runs:12g}  {o.name}"
             f"{_shown_lines(o.lines)}" for o in measured.operations[:_OPERATIONS]]
    more = len(measured.operations) - _OPERATIONS
    _tell("\n".join([*rows, *([f"... and {more} more operations"] if more > 0 else [])]))


def _shown_lines(lines: Sequence[str]) -> str:
    shown = ", ".join(map(shown_path, lines[:3]))
    return f"  ({shown}{', ...' if len(lines) > 3 else ''})" if lines else ""


def _summary(x: Any) -> str:
    array = np.asarray(raw(x))
    if x is not raw(x):  # keys, and the words behind them
        return f"{x.dtype}{list(x.shape)} {array.tolist() if array.size <= 8 else '...'}"
    if array.size <= 8:
        return f"{array.dtype}{list(array.shape)} {array.tolist()}"
    wide = array.astype(np.float64) if array.dtype.kind not in "c" else np.abs(array)
    return (f"{array.dtype}{list(array.shape)} least {wide.min():.6g}, mean {wide.mean():.6g}, "
            f"most {wide.max():.6g}")


# -- differences -----------------------------------------------------------------------------------

DIFFERS = 1


def expect(options: Options, made: str | bytes) -> int:
    """Compare with a file that is kept; 1 where they differ."""
    path = options.expect
    assert path is not None
    try:
        with open(path, "rb") as file:
            kept: bytes | None = file.read()
    except FileNotFoundError:
        kept = None
    except OSError as error:
        raise CommandError(f"--expect {path}: {error.strerror}.") from None
    content = made.encode() if isinstance(made, str) else made
    if options.update:
        if kept != content:
            writing.write(made, path)
            say(f"wrote {path}", options.quiet)
        return 0
    if kept is None:
        say(f"there is no {path}; --update writes it", options.quiet)
        return DIFFERS
    if kept == content:
        return 0
    if isinstance(made, bytes) or options.emit[0].kind == "html":
        say(f"{path} differs: {len(kept)} bytes are expected, there are {len(content)}",
            options.quiet)
        return DIFFERS
    found = diff(kept.decode(errors="replace"), made, (path, "now"))
    if not found:  # names or places alone
        return 0
    return _show(options, found, f"{path} differs; --update writes it anew")


def against(options: Options, program: Any, make: Callable[[], str]) -> int:
    """Compare with another target, a file, or a version in git; 1 where they differ."""
    other = options.diff
    assert other is not None
    ours = make()
    kind = options.emit[0].kind
    if other == "-" or (os.path.isfile(other) and not other.endswith(".py")):
        if kind == "stablehlo" and other.endswith(".mlirbc"):
            theirs = _emitted(options, [other], None)
        else:
            content = targets.read_program(other)
            theirs = content if isinstance(content, str) else _emitted(options, [other], None)
    elif ":" in other:
        theirs = _emitted(options, [other, *options.specs], None)
    else:
        theirs = _older(options, other)
    names = (other, options.target or "-c")
    found = diff(theirs, ours, names)
    if not found:
        say(f"{names[1]} and {other} do not differ", options.quiet)
        return 0
    return _show(options, found, "")


def _show(options: Options, found: Any, message: str) -> int:
    text = found.text + "\n"
    if writing.is_colored(options.color, sys.stdout) and options.output in (None, "-"):
        text = writing.colored(text, writing.DIFF)
    writing.write(text, options.output)
    lines = "1 line differs" if found.removed == 1 else f"{found.removed} lines differ"
    say(f"{lines} from {found.added}" + (f": {message}" if message else ""), options.quiet)
    return DIFFERS


def _emitted(options: Options, words: list[str], folder: str | None) -> str:
    """What the same command says of another target, in a process of its own."""
    command = [sys.executable, "-m", "emit_hlo", *_others(options), "-q", "-o", "-", "--color",
               "never", "--", *words]
    with working(f"making what {options.diff} is compared with", options.quiet):
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder,
                              env=environment_of_child())
    if done.returncode:
        said = done.stderr.strip().removeprefix("emit-hlo: ")
        raise CommandError(f"--diff {options.diff}: {said}", done.returncode)
    return done.stdout


_FLAGS = ("-q", "--quiet", "-v", "--verbose", "--watch", "--open", "--time", "--stats", "--update")
_VALUED = ("--diff", "-o", "--output", "--color", "--roofline", "--expect", "--check", "--find",
           "--reduce")
_KEPT = ("--emit", "--static", "--donate", "--memory-budget", "--flag", "--xla", "--platform",
         "--target", "--mesh", "--in-shardings", "--out-shardings", "--outline", "--names",
         "--locs", "-c")


def _others(options: Options) -> list[str]:
    """The options of this command line that say what is made, without target and arguments."""
    kept: list[str] = []
    words = iter(options.argv)
    for word in words:
        name, equals, _ = word.partition("=")
        if word == "-c":
            next(words, None)
        elif name in _VALUED:
            if not equals:
                next(words, None)
        elif name in _KEPT:
            kept += [word] if equals else [word, next(words, "")]
        elif word.startswith("--") and word not in _FLAGS and len(word) > 2:
            kept.append(word)
    return kept


def _older(options: Options, revision: str) -> str:
    """The same of an older version of the files, as git has it."""
    place = (options.target or "").rpartition(":")[0]
    near = place if place.endswith(".py") else ""
    folder = os.path.dirname(os.path.abspath(near)) if near else os.getcwd()
    if shutil.which("git") is None:
        raise CommandError(f"--diff {revision}: there is no such file, and git is not installed.")
    if options.code is not None or targets.is_program(options.target or ""):
        raise CommandError(f"--diff {revision}: there is no such file; an older version there is "
                           "of functions in files and modules.")
    root = _git(folder, "rev-parse", "--show-toplevel", refusal=(
        f"--diff {revision}: there is no such file, and {folder} is in no git repository."))
    commit = _git(folder, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}", refusal=(
        f"--diff {revision}: {revision} is neither a file, nor a target with ':', nor a version in "
        "git."))
    with tempfile.TemporaryDirectory(prefix="emit-hlo-") as copy:
        archive = subprocess.run(["git", "-C", root, "archive", commit], capture_output=True)
        unpacked = subprocess.run(["tar", "-x", "-C", copy], input=archive.stdout,
                                  capture_output=True)
        if archive.returncode or unpacked.returncode:
            raise CommandError(f"--diff {revision}: git cannot unpack it.")
        here = os.path.join(copy, os.path.relpath(os.getcwd(), root)) if _inside(
            os.getcwd(), root) else copy
        target = options.target or ""
        if near:
            name, kept = target.rpartition(":")[2], os.path.relpath(os.path.realpath(near), root)
            if not os.path.exists(os.path.join(copy, kept)):
                raise CommandError(f"--diff {revision}: {near} is not in that version; commit it, "
                                   "or name a version that has it.")
            target = os.path.join(copy, kept) + f":{name}"
        os.makedirs(here, exist_ok=True)
        # Places in the older files are shown as those in the files that are here.
        return _emitted(options, [target, *options.specs], here).replace(
            os.path.realpath(copy), root).replace(copy, root)


def _inside(path: str, root: str) -> bool:
    return os.path.commonpath([os.path.realpath(path), os.path.realpath(root)]) == \
        os.path.realpath(root)


def _git(folder: str, *words: str, refusal: str) -> str:
    done = subprocess.run(["git", "-C", folder, *words], capture_output=True, text=True)
    if done.returncode:
        raise CommandError(refusal)
    return done.stdout.strip()
