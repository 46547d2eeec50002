"""The smallest program that still fails, found from one that does.

A candidate is a jaxpr without constants, and its arguments; it is written as Python and tried in a
process of its own. First the program is cut before and behind what fails, by halving: values that
cross a cut are computed, and become arguments. What is left loses operations one by one, loops and
branches are opened, sizes go down, values become simple. Nothing is drawn: the same program gives
the same result.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np

import pyjx as jax
from pyjx.core import dtypes
from pyjx.core.avals import ShapedArray
from pyjx.core.evaluation import all_eqns, bind_eqn, jaxpr_as_fun, map_jaxprs, read_in, walk
from pyjx.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Var, jaxprs_in_params
from pyjx.core.passes.dce import dce
from pyjx.core.records import Record
from pyjx.core.trace import trace_to_jaxpr
from pyjx.core.value_texts import counted, shortened
from pyjx.engine.subjaxprs import consts_as_inputs
from pyjx.inspect.loops import Loop
from pyjx.inspect.python_text import UnwritableError, array_text, python_file
from pyjx.inspect.straight import program_on, repeatable_of, straight, stretch
from pyjx.inspect.tries import Outcome, Tries

_MOST_OPENED = 8  # iterations of a loop each of which is tried alone
HANGS = 1.5  # seconds that a part of a program that hangs may run before it is taken to hang, too


class NothingFailsError(ValueError):
    """The program that is to be reduced does not fail.

    Ways out: run it once by itself, and tell by `fails` what is wrong with it: that, not only an
    error, is what is kept as the program becomes smaller.
    """


class CommandNotFoundError(ValueError):
    """The command that is to tell whether a program fails cannot be started.

    Ways out: write the path of the command, and let the file be executable.
    """


class Reduced(Record):
    """The smallest program that was found.

    Attributes:
      jaxpr: the program, without constants.
      args: its arguments, NumPy arrays.
      how: how it fails, in words, with what the process said last.
      operations: how many there are.
      tries: how many programs were tried.
      seconds: how long that took.
      python: the text of a file that imports jax and numpy alone, and fails.
    """

    jaxpr: ClosedJaxpr
    args: tuple[Any, ...]
    how: str
    operations: int
    tries: int
    seconds: float
    python: str

    @property
    def stablehlo(self) -> str:
        """The program as XLA gets it."""
        return str(jax.jit(jaxpr_as_fun(self.jaxpr)).lower(*self.args).as_text())

    def save(self, path: str) -> None:
        """Write the Python file, and beside it the StableHLO, as `.mlir`."""
        for name, text in ((path, self.python), (f"{os.path.splitext(path)[0]}.mlir",
                                                 self.stablehlo)):
            Path(name).write_text(text, encoding="utf-8")

    def __str__(self) -> str:
        return (f"{counted(self.operations, 'operation')} left after {self.tries} tries in "
                f"{self.seconds:.1f} s; {self.how}\n\n{self.python}")


def reduce(fun: Callable[..., Any], args: Sequence[Any],
           fails: Callable[[Callable[..., Any], list[Any]], Any] | str | None = None, *,
           seconds: float = 10.0, memory: int = 4 << 30,
           progress: Callable[[str], None] | None = None) -> Reduced:
    """Find the smallest program that still fails, from a function and arguments that do.

    Each try is a process of its own, so crashes, aborts and endless loops are failures, too. A
    Ctrl-C gives the smallest that was found so far.

    Args:
      fun: a function of arrays, jitted or not.
      args: its arguments, a sequence.
      fails: `(program, args) -> bool`, where `program(*args)` gives a tuple: a function of a module
        that other processes can import, or of the script that is run, which these load as a
        module; or a command of the shell, in which `{}` stands for a Python file with the program,
        and whose exit status is not 0 where it fails. By default a program fails that does not
        come to its end. What raises, crashes or hangs must do so as the first program does. Where
        `fails` itself raises, the first program is refused, and a smaller one does not fail.
      seconds: how long a try may take.
      memory: bytes that a try may take, where Linux counts them; a command bounds itself, as by
        `ulimit -v`.
      progress: is told what was found, line by line.

    Raises:
      NothingFailsError: the program does not fail.
      ValueError: there is no such command, `fails` itself raises, or a bound is not positive.
      TypeError: no other process finds `fails`, or the program holds what no Python text stands
        for, such as a local function.

    >>> import pyjx as jax
    >>> import pyjx.numpy as jnp
    >>> def grows(x):
    ...     y = jnp.sin(x) + 1
    ...     return jax.lax.while_loop(lambda y: y[0] > 0, lambda y: y + 1, y).sum()
    ...
    >>> found = jax.inspect.reduce(grows, [jnp.ones(4)], seconds=2.0)
    >>> found.how.split(";")[0], found.jaxpr.eqns[0].primitive.name
    ('it does not end in time', 'while')
    """
    if not isinstance(args, Sequence):
        raise TypeError(f"inspect.reduce: args is the sequence of the arguments, got "
                        f"{shortened(args)}. Write [x] for a function of one.")
    closed, leaves, _ = repeatable_of(fun, args, {})
    return reduce_program(closed, leaves, fails, seconds, memory, progress)


def reduce_program(closed: ClosedJaxpr, leaves: Sequence[Any], fails: Any, seconds: float = 10.0,
                   memory: int = 4 << 30, progress: Callable[[str], None] | None = None) -> Reduced:
    """As `reduce`, of a program on flat arguments."""
    start = time.monotonic()
    closed, values = _on_arrays(closed, leaves)
    for name, bound in (("seconds", seconds), ("memory", memory)):
        if not isinstance(bound, (int, float)) or bound <= 0:
            raise ValueError(f"inspect.reduce: {name} must be a positive number, got {bound!r}.")
    tell = progress or (lambda text: None)
    with _tries(fails, memory) as tries:
        search = _Search(tries, closed, values, seconds, tell)
        try:
            search.run()
            if not search.stays(seconds):  # a slow one was taken for one that hangs
                search = _Search(tries, closed, values, seconds, tell, seconds)
                search.run()
        except KeyboardInterrupt:
            tell("interrupted; this is the smallest so far")
        expected = search.expected() if search.outcome.kind == "true" else None
    closed, values = search.closed, search.args
    n = _count(closed)
    how = str(search.outcome)
    said = search.outcome.words.strip().splitlines()
    text = python_file(closed, values, f"{counted(n, 'operation')}; {how}.")
    if expected is not None:
        text += _CHECK.format(", ".join(map(array_text, expected)))
    return Reduced(closed, tuple(values), how + (f"; it said: {said[-1]}" if said else ""), n,
                   tries.count, time.monotonic() - start, text)


_CHECK = """    expected = [{}]  # by NumPy, in double precision
    for found, wanted in zip(jax.jit(program)(*args), expected):
        np.testing.assert_allclose(found, wanted, rtol=1e-2, atol=1e-4)
"""


def _on_arrays(closed: ClosedJaxpr, leaves: Sequence[Any]) -> tuple[ClosedJaxpr, list[Any]]:
    """The program without constants and with words in place of keys, and its arguments for
    NumPy."""
    values = [*closed.consts, *leaves]
    closed = consts_as_inputs(closed)
    avals = closed.in_avals
    keys = {i: a.dtype._impl.name for i, a in enumerate(avals) if dtypes.is_extended(a.dtype)}
    if keys:
        values = [jax.random.key_data(x) if i in keys else x for i, x in enumerate(values)]
        inner = jaxpr_as_fun(closed)
        avals = [jax.typeof(x) if i in keys else a
                 for i, (a, x) in enumerate(zip(avals, values, strict=True))]
        closed = trace_to_jaxpr(lambda *xs: inner(*[
            jax.random.wrap_key_data(x, impl=keys[i]) if i in keys else x
            for i, x in enumerate(xs)]), avals)
    return closed, [np.asarray(x, a.dtype) for x, a in zip(values, closed.in_avals, strict=True)]


def _tries(fails: Any, memory: int) -> Any:
    if isinstance(fails, str):
        return _Commands(fails, memory)
    if fails is not None:
        try:
            signature(fails).bind(None, None)
        except (TypeError, ValueError) as error:
            raise TypeError(f"inspect.reduce: fails is a function of a program and its arguments, "
                            f"as in fails(program, args), or a command; got {fails!r}: {error}."
                            ) from None
    try:
        return Tries(fails, memory)
    except Exception as error:
        raise _unfound(fails, error, "Define it by def at the top of a file that is run or "
                       "imported, or give a command.") from None


def _unfound(fails: Any, why: Any, cure: str) -> TypeError:
    return TypeError(f"inspect.reduce: fails is {fails!r}, which another process cannot import: "
                     f"{why}. {cure}")


class _Commands(Tries):
    """Tries by a command of the shell; values of programs are computed as ever."""

    def __init__(self, command: str, memory: int) -> None:
        super().__init__(None, memory)
        self._command = command

    def run(self, source: str, args: Sequence[Any], seconds: float, running: float,
            how: str = "fails") -> Outcome:
        if how != "fails":
            return super().run(source, args, seconds, running, how)
        self.count += 1
        with tempfile.TemporaryDirectory(prefix="pyjx-reduce-") as folder:
            path = os.path.join(folder, "program.py")
            Path(path).write_text(source, encoding="utf-8")
            command = self._command if "{}" in self._command else f"{self._command} {{}}"
            process = subprocess.Popen(command.replace("{}", path), shell=True, text=True,
                                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                       start_new_session=True)
            try:
                said, _ = process.communicate(timeout=seconds)
            except subprocess.TimeoutExpired:
                return Outcome("time")
            finally:
                if process.returncode is None:
                    os.killpg(process.pid, 9)
                    process.communicate()
        status = process.returncode
        if status in (126, 127) and self.count == 1:  # of the shell, which cannot start it
            raise CommandNotFoundError("inspect.reduce: the shell cannot start the command "
                                       f"{self._command!r}: {said.strip()[-500:]}")
        return Outcome("fine") if not status else Outcome("signal", f"exit {status}", said[-2000:])


class _Search:
    """The search: the smallest program so far, and how it fails."""

    def __init__(self, tries: Any, closed: ClosedJaxpr, args: list[Any], seconds: float,
                 tell: Callable[[str], None], hangs: float = HANGS) -> None:
        self.tries, self.tell, self.seconds, self.running = tries, tell, seconds, seconds
        self.closed, self.args = closed, args
        self.known: dict[str, bool] = {}
        self.text = ""
        start = time.monotonic()
        self.outcome: Outcome = self.tried(closed, args)
        if self.outcome.kind == "unfound":
            raise _unfound(tries.fails, self.outcome.detail, "Write what its file does, besides "
                           "defining functions, below `if __name__ == \"__main__\":`.")
        if self.outcome.kind == "broken":
            raise ValueError(
                f"inspect.reduce: fails raises {self.outcome.detail}\nThe program does not, so "
                "this is no fault of it. It gives a tuple of arrays, also where there is one.")
        if not self.outcome.fails:
            raise NothingFailsError("inspect.reduce: the program does not fail: " + (
                "the command ends with 0, given a file with all of it. It is to fail as long as "
                "the fault is there." if isinstance(tries, _Commands) else
                "it runs to its end in a process of its own."))
        took = time.monotonic() - start
        if self.outcome.kind == "time":  # what ends does so sooner, as it is smaller
            self.running = min(seconds, hangs)
        else:
            self.seconds = min(seconds, 4 * took + 2)
        tell(f"{counted(len(closed.eqns), 'operation')}: {self.outcome}")

    def tried(self, closed: ClosedJaxpr, args: Sequence[Any], how: str = "fails") -> Outcome:
        inline = isinstance(self.tries, _Commands) and how == "fails"
        source = python_file(closed, args if inline else None, "")
        found: Outcome = self.tries.run(source, args, self.seconds, self.running, how)
        return found

    def attempt(self, closed: ClosedJaxpr, args: Sequence[Any]) -> bool:
        """Whether a program fails as the first one does; then it is the smallest so far."""
        closed, args = _without_unread(dce(closed), args)
        try:
            key = python_file(closed, args, "")
        except UnwritableError:
            return False
        if key == self.text:
            return False
        if key not in self.known:
            found = self.tried(closed, args)
            self.known[key] = found.key == self.outcome.key
            if self.known[key]:
                self.outcome = found
        if self.known[key]:
            self.closed, self.args, self.text = closed, list(args), key
            self.tell(counted(_count(closed), "operation"))
        return self.known[key]

    def values(self, wanted: Sequence[Var]) -> list[Any] | None:
        """The values of variables of the program; None where they can't be computed."""
        inputs = dict(zip(self.closed.jaxpr.invars, self.args, strict=True))
        missing = [v for v in dict.fromkeys(wanted) if v not in inputs]
        if missing:
            closed, args = _without_unread(
                dce(program_on(self.closed.jaxpr.invars, missing, self.closed.eqns)), self.args)
            found = self.tried(closed, args, "values")
            if found.kind != "fine":
                return None
            inputs.update(zip(missing, found.values, strict=True))
        return [inputs[v] for v in wanted]

    def stays(self, seconds: float) -> bool:
        """Whether the smallest program fails in this time, too."""
        self.seconds = self.running = seconds
        return self.outcome.kind != "time" or self.tried(self.closed, self.args).kind == "time"

    def expected(self) -> list[Any] | None:
        """The results by NumPy in double precision, where those of the program differ."""
        found, wanted = [self.tried(self.closed, self.args, how) for how in ("values", "numpy")]
        if not found.kind == wanted.kind == "fine":
            return None
        wrong = [not np.allclose(x, y, 1e-2, 1e-4, equal_nan=True)
                 for x, y in zip(found.values, wanted.values, strict=True)]
        return [y.astype(x.dtype) for x, y in zip(found.values, wanted.values, strict=True)] \
            if any(wrong) else None

    # -- what is tried

    def run(self) -> None:
        self.attempt(straight(self.closed), self.args)
        while True:
            before = self.size()
            self.cut()
            self.drop()
            while any(self.attempt(smaller, self.args) for smaller in self.opened()):
                self.cut()
                self.drop()
            self.thin()
            self.shrink()
            self.simplify()
            if self.size() >= before:
                return

    def size(self) -> tuple[int, int]:
        return (_count(self.closed), sum([x.size for x in self.args]))

    def cut(self) -> None:
        """Cut the program behind the first operation with which it fails, and before the last one
        from which on it fails."""
        jaxpr, args = self.closed.jaxpr, self.args
        low, high = 0, len(jaxpr.eqns)  # it fails with `high` operations
        while high - low > 1:
            middle = (low + high) // 2
            wanted = _crossing(jaxpr.eqns, middle, jaxpr.outvars)
            if self.attempt(program_on(jaxpr.invars, wanted, jaxpr.eqns[:middle]), args):
                high = middle
            else:
                low = middle
        places = {v: i for i, e in enumerate(self.closed.eqns) for v in e.outvars}
        low, high = 0, len(self.closed.eqns)  # it fails without `low` operations
        last = [high - 1] if high > 2 else []
        while high - low > 1:
            middle = last.pop() if last else (low + high) // 2
            if self._from(places, middle):
                low = middle
            else:
                high = middle

    def _from(self, places: dict[Any, int], start: int) -> bool:
        """Whether what is left from an operation on fails, on the values that those before give."""
        rest = [e for e in self.closed.eqns if e.outvars and places[e.outvars[0]] >= start]
        made = {v for e in rest for v in e.outvars}
        part = stretch(rest, [v for v in self.closed.jaxpr.outvars if v in made])
        read = part.jaxpr.invars
        values = None if any(map(_is_key, read)) else self.values(read)
        return bool(values is not None and part.out_avals) and self.attempt(part, values or [])

    def drop(self) -> None:
        """Drop results, and operations: in their place stand an operand, or their values."""
        for i in reversed(range(len(self.closed.jaxpr.outvars))):
            outs = self.closed.jaxpr.outvars
            if len(outs) > 1 and i < len(outs):
                self.attempt(self.closed.replace(outvars=[*outs[:i], *outs[i + 1:]]), self.args)
        i = len(self.closed.eqns) - 1
        while i >= 0 and len(self.closed.eqns) > 1:
            self._without(i)
            i = min(i, len(self.closed.eqns)) - 1

    def _without(self, i: int) -> bool:
        jaxpr, eqn = self.closed.jaxpr, self.closed.eqns[i]
        rest = [*jaxpr.eqns[:i], *jaxpr.eqns[i + 1:]]
        outs = [v for v in jaxpr.outvars if v not in eqn.outvars]
        if any([self.attempt(ClosedJaxpr(j, []), self.args) for j in _skipped(jaxpr, i)]):
            return True
        if not outs or any(map(_is_key, eqn.outvars)):
            return False
        values = self.values(eqn.outvars)
        return values is not None and self.attempt(
            program_on([*jaxpr.invars, *eqn.outvars], outs, rest), [*self.args, *values])

    def thin(self) -> None:
        """Drop operations of the programs that loops and branches hold."""
        start = 0
        while True:
            for i, jaxpr in enumerate(_thinner(self.closed.jaxpr)):
                if i >= start and self.attempt(ClosedJaxpr(jaxpr, []), self.args):
                    start = i
                    break
            else:
                return

    def opened(self) -> Iterator[ClosedJaxpr]:
        """The program with a loop or a branch opened, or a loop with fewer iterations."""
        for i, eqn in enumerate(self.closed.eqns):
            for inside in _openings(eqn):
                smaller = self._with(i, inside)
                if smaller is not None:
                    yield straight(smaller)

    def _with(self, i: int, inside: Callable[..., Sequence[Any]]) -> ClosedJaxpr | None:
        """The program where a function takes the place of an equation; None where it can't."""
        jaxpr = self.closed.jaxpr
        try:
            return _again(jaxpr, jaxpr.in_avals, lambda eqn, xs: inside(*xs) if (
                eqn is jaxpr.eqns[i]) else bind_eqn(eqn, xs))
        except (TypeError, ValueError, IndexError):
            return None

    def shrink(self) -> None:
        """Make dimensions smaller, the largest first."""
        sizes = sorted({d for x in self.args for d in x.shape if d > 1}, reverse=True)
        for size in sizes:
            for less in (1, 2, size // 2):
                if less < size and self._resize(size, less):
                    break

    def _resize(self, size: int, less: int) -> bool:
        args = [x[tuple([slice(less) if d == size else slice(None) for d in x.shape])]
                for x in self.args]
        avals = [a.update(shape=x.shape) for a, x in zip(self.closed.in_avals, args, strict=True)]
        try:
            closed = _again(self.closed.jaxpr, avals,
                            lambda eqn, xs: bind_eqn(_resized(eqn, size, less), xs))
        except Exception:  # whatever a shape rule says of other shapes
            return False
        return self.attempt(closed, args)

    def simplify(self) -> None:
        """Make values simple."""
        for i, x in enumerate(self.args):
            for simple in _simpler(x):
                if not np.array_equal(simple, x) and self.attempt(
                        self.closed, [*self.args[:i], simple, *self.args[i + 1:]]):
                    break


def _simpler(x: Any) -> Iterator[Any]:
    yield np.zeros_like(x)
    yield np.ones_like(x)
    if x.dtype.kind == "f" and x.size:
        with np.errstate(all="ignore"):
            yield np.full_like(x, x.flat[0])
            yield np.round(x.astype(np.float64), 1).astype(x.dtype)


def _count(closed: ClosedJaxpr) -> int:
    return sum([1 for _ in all_eqns(closed)])


def _crossing(eqns: Sequence[JaxprEqn], at: int, outvars: Sequence[Any]) -> list[Any]:
    """What operations before a cut give to those behind it, or to the results; and what the last
    one of them gives."""
    made = [v for e in eqns[:at] for v in e.outvars]
    read = {*[v for e in eqns[at:] for v in e.invars], *outvars, *eqns[at - 1].outvars}
    return [v for v in made if v in read and not _is_key(v)]


def _without_unread(closed: ClosedJaxpr, args: Sequence[Any]) -> tuple[ClosedJaxpr, list[Any]]:
    """The program without inputs that nothing reads."""
    jaxpr = closed.jaxpr
    read = read_in(jaxpr)
    kept = [(v, x) for v, x in zip(jaxpr.invars, args, strict=True) if v in read]
    return ClosedJaxpr(jaxpr.replace(invars=[v for v, _ in kept]), []), [x for _, x in kept]


def _again(jaxpr: Jaxpr, avals: Sequence[Any], apply: Callable[..., Sequence[Any]]) -> ClosedJaxpr:
    """The program traced anew, where `apply(eqn, operands)` gives results of equations."""
    return trace_to_jaxpr(lambda *xs: walk(jaxpr, [], xs, apply), avals)


def _skipped(jaxpr: Jaxpr, i: int) -> Iterator[Jaxpr]:
    """The program without an operation, in the place of whose result an operand of its type is."""
    eqn = jaxpr.eqns[i]
    for operand in eqn.invars if len(eqn.outvars) == 1 else ():
        if operand.aval.same_type(eqn.outvars[0].aval):
            env: dict[Any, Any] = {eqn.outvars[0]: operand}
            yield jaxpr.replace(outvars=[env.get(v, v) for v in jaxpr.outvars], eqns=[
                e.replace(invars=[env.get(v, v) for v in e.invars])
                for e in (*jaxpr.eqns[:i], *jaxpr.eqns[i + 1:])])


def _thinner(jaxpr: Jaxpr, inside: bool = False) -> Iterator[Jaxpr]:
    """The program with an operation less in a program that it holds, where an operand has the type
    of its result."""
    for i, eqn in enumerate(jaxpr.eqns):
        for thin in _skipped(jaxpr, i) if inside else ():
            yield dce(ClosedJaxpr(thin, [])).jaxpr
        for k, held in enumerate(jaxprs_in_params(eqn.params)):
            for thin in _thinner(held, True):
                yield jaxpr.replace(eqns=[*jaxpr.eqns[:i], _holding(eqn, k, thin),
                                          *jaxpr.eqns[i + 1:]])


def _holding(eqn: JaxprEqn, k: int, program: Jaxpr) -> JaxprEqn:
    """The equation with another program in the place of the k-th that it holds."""
    places = itertools.count()
    return eqn.replace(params=map_jaxprs(
        eqn.params, lambda c: ClosedJaxpr(program, []) if next(places) == k else c,
        lambda j: program if next(places) == k else j))


def _is_key(v: Any) -> bool:
    return bool(dtypes.is_extended(v.aval.dtype))


# Parameters that say sizes.
_SIZES = ("shape", "new_sizes", "sizes", "slice_sizes", "limit_indices", "length", "result_avals")


def _resized(eqn: JaxprEqn, size: int, less: int) -> JaxprEqn:
    """The equation with another size in its parameters, and in the programs that it holds."""
    def resize(value: Any) -> Any:
        if type(value) is tuple:
            return tuple(map(resize, value))
        if isinstance(value, ShapedArray):
            return value.update(shape=resize(value.shape))
        return less if type(value) is int and value == size else value

    def inner(closed: ClosedJaxpr) -> ClosedJaxpr:
        jaxpr = closed.jaxpr
        return _again(jaxpr, [a.update(shape=resize(a.shape)) for a in jaxpr.in_avals],
                      lambda e, xs: bind_eqn(_resized(e, size, less), xs))

    params = map_jaxprs(eqn.params, inner, lambda jaxpr: inner(ClosedJaxpr(jaxpr, [])).jaxpr)
    return eqn.replace(params={k: resize(v) if k in _SIZES else v for k, v in params.items()})


def _openings(eqn: JaxprEqn) -> Iterator[Callable[..., Sequence[Any]]]:
    """What may stand in the place of a loop or a branch, the smallest first."""
    name = eqn.primitive.name
    if name == "cond":
        for branch in eqn.params["branches"]:
            yield lambda index, *xs, branch=branch: jaxpr_as_fun(branch)(*xs)
    elif name == "while":
        loop = Loop.of(eqn)
        yield lambda *xs: jaxpr_as_fun(loop.body)(*xs[loop.before:])
        yield lambda *xs: xs[loop.first:]
    elif name == "scan":
        loop = Loop.of(eqn)
        n, length, rows = loop.n_carry, loop.length, loop.first + loop.n_carry

        def once(*xs: Any, at: int) -> list[Any]:
            outs = jaxpr_as_fun(loop.body)(*xs[:rows], *[x[at] for x in xs[rows:]])
            return [*outs[:n], *[jax.numpy.broadcast_to(y, (length, *np.shape(y)))
                                 for y in outs[n:]]]

        def half(*xs: Any) -> list[Any]:
            fewer = {**eqn.params, "length": length // 2, "unroll": 1}
            outs = eqn.primitive.bind(*xs[:rows], *[x[:length // 2] for x in xs[rows:]], **fewer)
            return [*outs[:n], *[jax.numpy.resize(y, (length, *y.shape[1:])) for y in outs[n:]]]

        for at in range(length) if length <= _MOST_OPENED else (0, length - 1):
            yield lambda *xs, at=at: once(*xs, at=at)
        if length > 1:
            yield half
