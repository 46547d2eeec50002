"""Programs run: their results beside those of other interpreters, and where their time goes."""

from __future__ import annotations

import sys
import time
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np

import pyjx as jax
from pyjx.core import dtypes
from pyjx.core.array_type import ArrayLike
from pyjx.core.evaluation import eval_jaxpr
from pyjx.core.jaxpr import ClosedJaxpr
from pyjx.core.passes.dce import dce
from pyjx.core.records import Record
from pyjx.core.value_texts import counted
from pyjx.engine.physical import physicalize
from pyjx.inspect.bad_values import Deviation, Step, exit_text
from pyjx.inspect.figures import recorded
from pyjx.inspect.interpreter import RefusedError, interpret
from pyjx.inspect.numpy_interpreter import Account, Ranged, Rounded, evaluate, limits_of
from pyjx.inspect.program import TracedProgram, UnsupportedError
from pyjx.inspect.straight import line_of, straight
from pyjx.lax import digamma_p, lgamma_p
from pyjx.viewer.hlo import hlo_listing, instruction_names
from pyjx.viewer.jaxprs import jaxpr_listing
from pyjx.viewer.links import count_kernels, name_products
from pyjx.viewer.listing import Listing, Places
from pyjx.viewer.ranking import BALANCES, costs, lines_of


class CheckError(RuntimeError):
    """The program cannot be checked in this way.

    Ways out: another of the ways, which are `numpy-float64`, `eager` and `interpreter`, as the
    message says why this one does not serve.
    """


class Run(Record):
    """What running a program gave.

    Attributes:
      results: pairs of name and array.
      seconds: how long each run took.
    """

    results: list[tuple[str, Any]]
    seconds: list[float]


class Agreement(Record):
    """How results of two ways to compute a program compare; true where they agree.

    Attributes:
      how: the second way.
      rows: for each result its name, whether it agrees, the largest difference, and the difference
        that is let pass.
      others: operations that the second way computed as the first one does.
      blind: the results of which nothing can be told, because rounding alone explains differences
        as large as their numbers.
      nans: for each result how many of its numbers are NaN in both ways, which agrees.
    """

    how: str
    rows: list[tuple[str, bool, float, float]]
    others: tuple[str, ...] = ()
    blind: tuple[str, ...] = ()
    nans: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        return all([ok for _, ok, _, _ in self.rows]) and not self.blind

    def __str__(self) -> str:
        lines = [(f"nothing can be told of {name}: largest difference {found:.3g}, and rounding "
                  f"explains {allowed:.3g}, as much as its numbers" if name in self.blind else
                  f"{'agrees' if ok else 'DIFFERS':8} {name}: largest difference {found:.3g}, "
                  f"allowed {allowed:.3g}") + (
                      f"; nan in both: {counted(nans, 'number')}" if nans else "")
                 for (name, ok, found, allowed), nans in zip_longest(self.rows, self.nans)]
        if self.others:
            lines.append(f"not in float64: {', '.join(self.others)}")
        return "\n".join([f"check {self.how}:", *lines])


def arguments(closed: ClosedJaxpr, seed: int = 0) -> list[Any]:
    """Random arguments of the types of a program: normal numbers, small integers, keys."""
    rng = np.random.default_rng(seed)
    return [_argument(aval, rng) for aval in closed.in_avals]


def _argument(aval: Any, rng: np.random.Generator) -> Any:
    dtype, shape = aval.dtype, aval.shape
    if dtypes.is_extended(dtype):
        keys = jax.random.wrap_key_data(
            rng.integers(0, 2**32, (*shape, *dtype._impl.key_shape), np.uint32),
            impl=dtype._impl.name) if hasattr(dtype, "_impl") else jax.random.key(0)
        return keys
    if dtype == np.bool_:
        return rng.integers(0, 2, shape).astype(bool)
    if dtypes.issubdtype(dtype, np.complexfloating):
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
    if dtypes.issubdtype(dtype, np.integer):
        return rng.integers(0, 4, shape).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


def _given(caller: str, closed: ClosedJaxpr, args: Sequence[Any] | None) -> list[Any]:
    given = arguments(closed) if args is None else list(args)
    if len(given) != len(closed.in_avals):
        raise TypeError(f"inspect.{caller}: the program takes {len(closed.in_avals)} flat "
                        f"arguments, got {len(given)}.")
    return given


def run(program: TracedProgram, args: Sequence[Any] | None = None, times: int = 1) -> Run:
    """Run a program on this machine.

    Args:
      program: the program.
      args: its flat arguments; by default random ones.
      times: how often.

    Raises:
      TypeError: there are more or fewer arguments than the program takes.
      ValueError: it is to run less than once.

    >>> import pyjx as jax
    >>> from pyjx import inspect
    >>> program = inspect.trace(lambda x: x + 1, jax.ShapeDtypeStruct((), "float32"))
    >>> [(name, float(x)) for name, x in inspect.run(program, [2.0]).results]
    [('result', 3.0)]
    """
    once = runner("run", program, args, times)
    done = [once() for _ in range(times)]
    out = jax.tree.leaves(done[-1][0])
    return Run(list(zip(_names(program.jaxpr), out, strict=True)), [seconds for _, seconds in done])


def runner(caller: str, program: TracedProgram, args: Sequence[Any] | None, times: int
           ) -> Callable[[], tuple[Any, float]]:
    """What runs a program once, on these flat arguments: it gives the result, and the seconds.

    Raises:
      TypeError: there are more or fewer arguments than the program takes.
      ValueError: it is to run less than once.
    """
    closed = program.jaxpr
    if times < 1:
        raise ValueError(f"inspect.{caller}: a program runs at least once, got {times} times.")
    given = _given(caller, closed, args)
    compiled = program.compiled()
    call = jax.tree.unflatten(compiled.in_tree, typed(closed, given))
    donates = any(program.traced._traced.donated)

    def once() -> tuple[Any, float]:
        args, kwargs = jax.tree.map(jax.numpy.copy, call) if donates else call
        start = time.perf_counter()
        out = jax.block_until_ready(compiled(*args, **kwargs))
        return out, time.perf_counter() - start

    return once


def _names(closed: ClosedJaxpr) -> Sequence[str]:
    return closed.jaxpr.debug_info.result_paths or [
        f"result[{i}]" for i in range(len(closed.out_avals))]


def check(program: TracedProgram, how: str, args: Sequence[Any] | None = None) -> Agreement:
    """Compare what the compiled program computes with another way to compute it.

    Args:
      program: the program.
      how: `interpreter` (StableHLO's reference interpreter), `numpy-float64` (NumPy in double
        precision) or `eager` (operation by operation). Results may differ by what errors of
        rounding make of them, which is tried in double precision.
      args: its flat arguments; by default random ones.

    Raises:
      CheckError: the other way does not know an operation of the program.

    >>> import pyjx as jax
    >>> from pyjx import inspect
    >>> program = inspect.trace(lambda x: jax.numpy.sin(x), jax.ShapeDtypeStruct((3,), "float32"))
    >>> bool(inspect.check(program, "numpy-float64"))
    True
    """
    if how not in _WAYS:
        raise ValueError(f"check: how must be one of {[*_WAYS]}, got {how!r}")
    closed = program.jaxpr
    given = _given("check", closed, args)
    ours = [x for _, x in run(program, given).results]
    account = Account()
    theirs = _WAYS[how](program, given, account)
    rows, _ = ranged(closed, given, ours, theirs, rows_of(closed, given, ours, theirs))
    named = [(name, *row) for name, row in zip(_names(closed), rows, strict=True)]
    return Agreement(how, [row[:4] for row in named], tuple(sorted(account.others)),
                     tuple([name for name, *_, blind, _ in named if blind]),
                     tuple([row.nans for row in rows]))


class Row(NamedTuple):
    """How a result compares: whether it agrees, the largest difference, and that which is let pass;
    `blind` where nothing can be told, because rounding explains what is as large as the result, and
    how many numbers are NaN in both ways."""

    ok: bool
    found: float
    allowed: float
    blind: bool
    nans: int


def rows_of(closed: ClosedJaxpr, args: Sequence[Any], ours: Sequence[Any], theirs: Sequence[Any]
            ) -> list[Row]:
    """How the results of a program compare. What differs is no fault yet: how far errors of
    rounding go depends on program and arguments."""
    plain = [Row(*compared(x, _settled(x, y)), False, _nans(x, y))
             for x, y in zip(ours, theirs, strict=True)]
    if all([row.ok for row in plain]):
        return plain
    sizes = sorted(filter(None, map(scale_of, args)))
    size = max([s for s in sizes if s <= 1e4 * sizes[(len(sizes) - 1) // 2]], default=0.0)
    odd = any([not row.ok and not _is_inexact(y) for row, y in zip(plain, theirs, strict=True)])
    rows, spread = [], spread_of(closed, args, 16 if odd else 3)
    # These are 0 by a difference of their own, which is none of the program's.
    rooted = [v for e in closed.eqns if e.primitive in (digamma_p, lgamma_p) for v in e.outvars]
    for old, x, y, (s, zero), v in zip(
            plain, ours, theirs, spread, closed.jaxpr.outvars, strict=True):
        # What is 0, as far as is known, may cancel in other digits: not beside numbers of another
        # order, such as what a mask puts in the place of numbers.
        share = _share(x) * size if zero or v in rooted else -1.0
        blind = s > 0 and _is_inexact(y) and _SPREADS * s >= scale_of(y) and max(
            scale_of(y), old.found) > share
        rows.append(old if old.ok else Row(*compared(x, _settled(x, y), _SPREADS * s), blind,
                                           old.nans))
    return rows


def _nans(ours: Any, theirs: Any) -> int:
    a, b = np.asarray(raw(ours)), np.asarray(raw(theirs))
    return int(((a != a) & (b != b)).sum()) if a.shape == b.shape else 0


def _share(x: Any) -> float:
    """What part of a number of a type is little."""
    return float(dtypes.finfo(x.dtype).eps) ** 0.6


def _settled(ours: Any, theirs: Any) -> Any:
    """Their numbers, with ours where one of the two is just beyond the range of the type."""
    if not dtypes.has_dtype(ours, np.floating) or np.shape(ours) != np.shape(theirs):
        return theirs
    x = np.asarray(ours)
    y, most = np.asarray(theirs).astype(np.float64), 0.99 * float(dtypes.finfo(x.dtype).max)
    wide = x.astype(np.float64)
    near = (np.abs(wide) >= most) & (np.abs(y) >= most) & (np.sign(wide) == np.sign(y))
    return np.where(near, wide, y)


_SPREADS = 8  # how many times as far as in the runs that are drawn errors may go


def spread_of(closed: ClosedJaxpr, given: Sequence[Any], times: int) -> list[tuple[float, bool]]:
    """How far each result goes from that in double precision, at most, if each number that is
    computed has an error of rounding in its own type; drawn so many times. Infinitely far where it
    leaves the range of the type. And whether errors of double precision would explain it, so that
    it may be 0."""
    account = Account()
    exact = double(closed, given, account)
    spread = [0.0] * len(exact)
    for i in range(times):
        drawn = [x.astype(a.dtype) if _is_inexact(x) else x for x, a in zip(
            double(closed, given, Rounded(np.random.default_rng(i))), closed.out_avals,
            strict=True)]
        spread = [max(s, compared(x, _settled(x, y))[1])
                  for s, x, y in zip(spread, drawn, exact, strict=True)]
    least = float(np.finfo(np.float64).eps) * _SPREADS
    return [(s, account.narrow or (_is_inexact(x) and scale_of(x) <= least * s / float(
        dtypes.finfo(a.dtype).eps))) for s, x, a in zip(
            spread, exact, closed.out_avals, strict=True)]


def ranged(closed: ClosedJaxpr, args: Sequence[Any], ours: Sequence[Any], theirs: Sequence[Any],
           rows: Sequence[Row]) -> tuple[list[Row], Deviation | None]:
    """The rows of a program, where it is a number that leaves the range of its type that makes
    the difference without what rounding would explain; and the operation of the first such one."""
    rows, first = list(rows), None
    for k, (row, *xs) in enumerate(zip(rows, ours, theirs, strict=True)):
        if row.ok and not row.blind:
            continue
        found = _left_range(closed, args, k, xs)
        if found is not None:
            rows[k] = Row(*compared(xs[0], _settled(*xs)), False, row.nans)
            first = first or found
    return rows, first


def _left_range(closed: ClosedJaxpr, args: Sequence[Any], k: int, seen: Sequence[Any]
                ) -> Deviation | None:
    """The operation whose numbers leave the range of their type, where that makes a result what
    it was `seen` to be in one of two ways; None where it does not."""
    closed = dce(straight(closed.replace(outvars=[closed.jaxpr.outvars[k]])))

    def run(most: int) -> tuple[Any, Ranged]:
        account = Ranged(most)
        (out,) = double(closed, args, account)
        return out.astype(closed.out_avals[0].dtype), account

    def differs(most: int) -> bool:
        out, _ = run(most)
        return not compared(out, _settled(out, exact))[0]

    (exact, _), (out, all_of_it) = run(0), run(sys.maxsize)
    if not differs(sys.maxsize) or not any([
            compared(x, out)[1] < 0.1 * compared(x, exact)[1] for x in seen]):
        return None
    exits = all_of_it.exits
    eqn, steps, number, dtype = exits[bisect_left(
        range(1, len(exits)), True, key=differs)]
    least, most = limits_of(dtype)
    small = number < most
    return Deviation(
        eqn.primitive.name, line_of(eqn), tuple([Step.of(*step) for step in steps]), float(number),
        least if small else most, exit_text(small, dtype))


def _is_inexact(x: Any) -> bool:
    return dtypes.issubdtype(np.asarray(raw(x)).dtype, np.inexact)


def _eager(program: TracedProgram, args: Sequence[Any], account: Account) -> list[Any]:
    closed = program.jaxpr
    return eval_jaxpr(closed.jaxpr, closed.consts, *typed(closed, args))


def typed(closed: ClosedJaxpr, args: Sequence[Any], array: Callable[..., Any] = jax.numpy.asarray
          ) -> list[Any]:
    """The arguments of a program as arrays of the types that it takes; keys as they are."""
    return [x if dtypes.is_extended(a.dtype) else array(x, dtype=a.dtype)
            for x, a in zip(args, closed.in_avals, strict=True)]


def double(closed: ClosedJaxpr, args: Sequence[Any], account: Account) -> list[Any]:
    """The results of a program by NumPy, in double precision."""
    return evaluate(closed.jaxpr, closed.consts, typed(closed, args, np.asarray), account)


def _interpreted(program: TracedProgram, args: Sequence[Any], account: Account) -> list[Any]:
    physical = physicalize(program.jaxpr)
    lowered = program.lowered._program
    given = [np.asarray(raw(x)).astype(a.dtype, copy=False) for x, a, kept in zip(
        args, physical.in_avals, lowered.kept, strict=True) if kept]
    try:
        return interpret(program.stablehlo(), [
            *[np.asarray(raw(c)) for c in lowered.const_args], *given], physical.out_avals)
    except RefusedError as error:
        raise CheckError(f"StableHLO's interpreter cannot run it: {error}") from None


_WAYS = {"interpreter": _interpreted, "eager": _eager,
         "numpy-float64": lambda program, *rest: double(program.jaxpr, *rest)}


def raw(x: Any) -> Any:
    """Keys as their words, and tangents of integers, of which there is one, as booleans."""
    dtype = getattr(x, "dtype", None)
    if dtype == dtypes.float0:
        return np.zeros(x.shape, bool)
    if dtype is not None and dtypes.is_extended(dtype):
        return np.asarray(jax.random.key_data(x))
    return x


def scale_of(x: ArrayLike) -> float:
    """The largest finite number in an array."""
    array = np.asarray(raw(x))
    if not dtypes.issubdtype(array.dtype, np.inexact):
        return 0.0
    finite = np.abs(array[np.isfinite(array)].astype(np.complex128))
    return float(finite.max(initial=0.0))


def compared(ours: Any, theirs: Any, spread: float = 0.0) -> tuple[bool, float, float]:
    """Whether two arrays agree, their largest difference, and that which is let pass: `spread`, if
    that is more than a share of the numbers. What is finite in one alone differs infinitely."""
    a = np.asarray(raw(ours))
    b = np.asarray(raw(theirs))
    if a.shape != b.shape:
        return False, float("inf"), 0.0
    if not dtypes.issubdtype(a.dtype, np.inexact):
        differ = a != b.astype(a.dtype)
        wide = np.abs(a.astype(np.float64) - b.astype(np.float64))
        found = float(wide.max(initial=0.0))
        return not differ.any() or (spread > 0 and found <= spread), found, spread
    with np.errstate(all="ignore"):
        b = b.astype(a.dtype)  # with what overflows in that type
    kind = np.complex128 if dtypes.issubdtype(a.dtype, np.complexfloating) else np.float64
    share = _share(a)
    a, b = a.astype(kind), b.astype(kind)
    finite = np.isfinite(a) & np.isfinite(b)
    same = (a == b) | (np.isnan(a) & np.isnan(b)) | finite
    allowed = max(share * max(scale_of(b[finite]), 1e-30), spread)
    found = float(np.abs(a[finite] - b[finite]).max(initial=0.0)) if same.all() else float("inf")
    return found <= allowed, found, allowed


# -- where the time goes ---------------------------------------------------------------------------


class OperationTime(Record):
    """An operation of the compiled program.

    Attributes:
      name: in the optimised HLO.
      times: how often it ran.
      seconds: of all that, on all devices.
      lines: the places in the source that it computes for; a fusion, or a loop that is one kernel,
        may have many.
    """

    name: str
    times: int
    seconds: float
    lines: tuple[str, ...]


class LineTime(Record):
    """A line of the source.

    Attributes:
      line: file and number; empty for what XLA added.
      seconds: of operations that are of this line alone.
      shared: of those that compute for other lines as well, which count for each of these.
    """

    line: str
    seconds: float
    shared: float


class Measurement(Record):
    """Where the time of some runs went.

    Attributes:
      runs: how many.
      operations: the longest first.
    """

    runs: int
    operations: list[OperationTime]

    @property
    def seconds(self) -> float:
        """Of all operations of all runs."""
        return sum([o.seconds for o in self.operations])

    @property
    def by_line(self) -> list[LineTime]:
        """The lines, that with the most time first."""
        alone: dict[str, float] = {}
        shared: dict[str, float] = {}
        for o in self.operations:
            counted = alone if len(o.lines) < 2 else shared
            for line in o.lines or ("",):
                counted[line] = counted.get(line, 0.0) + o.seconds
        rows = [LineTime(line, alone.get(line, 0.0), shared.get(line, 0.0))
                for line in {**alone, **shared}]
        return sorted(rows, key=lambda r: (-r.seconds - r.shared, r.line))


def measure(program: TracedProgram, args: Sequence[Any] | None = None, runs: int = 10
            ) -> Measurement:
    """Run a program on this machine while XLA's profiler watches.

    Args:
      program: the program.
      args: its flat arguments; by default random ones.
      runs: how often, after one run that does not count.

    Raises:
      TypeError: there are more or fewer arguments than the program takes.
      ValueError: it is to run less than once.
      UnsupportedError: the runtime does not tell of operations, or something else profiles.

    >>> import pyjx as jax
    >>> from pyjx import inspect
    >>> def f(x):
    ...     return jax.numpy.sort(x)
    ...
    >>> program = inspect.trace(f, jax.ShapeDtypeStruct((1000,), "float32"))
    >>> measured = inspect.measure(program, runs=3)
    >>> measured.seconds > 0, measured.runs
    (True, 3)
    """
    modules = program.executable.hlo_modules()
    once = runner("measure", program, args, runs)
    once()
    _, events = recorded(lambda: [once() for _ in range(runs)],
                         lambda event: (dict(event.stats), event.duration_ns))
    found: dict[str, dict[str, tuple[int, float]]] = {m.name: {} for m in modules}
    for told, duration in events:
        of_module = found.get(told.get("hlo_module", ""))
        if of_module is not None and "hlo_op" in told:
            times, seconds = of_module.get(told["hlo_op"], (0, 0.0))
            of_module[told["hlo_op"]] = times + 1, seconds + duration / 1e9
    if not any(found.values()):
        raise UnsupportedError("XLA's profiler told of no operations: this platform does not, or "
                               "the process is profiled already")
    places, balance = Places(), BALANCES[program.platform.name]
    jaxpr = jaxpr_listing(program.jaxpr, places)
    rows = [row for m in modules for row in _attributed(
        found.pop(m.name, {}), m.to_string(), jaxpr, places, balance)]
    program.measured = {r.name: r.seconds for r in rows}
    return Measurement(runs, sorted(rows, key=lambda r: (-r.seconds, r.name)))


def _attributed(found: Mapping[str, tuple[int, float]], module: str, jaxpr: Listing,
                places: Places, balance: float) -> list[OperationTime]:
    """The operations of a module with their lines, of several first those that are estimated to
    take the most. Loops and branches are left out where what they run is there itself."""
    listing = hlo_listing(module, places, "")
    count_kernels(listing, jaxpr, places)
    name_products(listing, jaxpr, places)
    lines, ends, names = lines_of(listing, places), listing.ends(), instruction_names(listing)
    known, rows = {name: row for row, name in enumerate(names)}, []
    spent = costs(listing, balance).own
    for name, (times, seconds) in found.items():
        own = [known[name]] if name in known else []
        inner = [r for row in own for r in listing.inside(row, ends)]
        if not any([names[r] in found for r in inner]):
            share = dict[tuple[str, int], float]()
            for r in (*own, *inner):
                if (line := lines[r]) is not None:
                    share[line] = share.get(line, 0.0) + spent[r]
            dearest = sorted(share, key=share.__getitem__, reverse=True)
            rows.append(OperationTime(name, times, seconds, tuple(
                [f"{file}:{number}" for file, number in dearest])))
    return rows
