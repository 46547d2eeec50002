"""The first difference: which operation gives another value than it should, for two ways to run a
program.

Results that differ by no more than errors of rounding make of them agree. Where they differ by
more, each operation is run in the second way on the operands that it had in the first: what it
deviates by then is its own, whatever its operands deviate by. How much of that is rounding is
drawn, in double precision, as for whole programs (`inspect/running.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

import pyjx as jax
from pyjx.core import dtypes
from pyjx.core.evaluation import eval_jaxpr, jaxpr_as_fun
from pyjx.core.frames import Frame
from pyjx.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal
from pyjx.core.nested import holds_jaxprs
from pyjx.core.records import Record
from pyjx.engine.subjaxprs import consts_as_inputs
from pyjx.inspect.bad_values import Step, place_text
from pyjx.inspect.numpy_interpreter import Account
from pyjx.inspect.running import SPREADS, compared, double, scale_of, spread_of
from pyjx.inspect.straight import line_of, repeatable, straight, traced

Way = str | Mapping[str, Any] | Callable[..., Any]

_MOST = 10  # of the worst operations, and of iterations of a loop that are looked into


class Deviation(Record):
    """An operation that deviates.

    Attributes:
      operation, line: its name, and the user's line that made it.
      steps: the iterations and branches that hold it, outermost first.
      found: the largest difference between the two ways on the same operands.
      allowed: what rounding makes of it.
    """

    operation: str
    line: Frame | None
    steps: tuple[Step, ...]
    found: float
    allowed: float

    def __str__(self) -> str:
        inside = "".join([f", in {step.text}" for step in self.steps])
        return (f"{self.operation} at {place_text(self.line)}{inside}: differs by {self.found:.3g} "
                f"on the same operands, rounding explains {self.allowed:.3g}")


class Comparison(Record):
    """How a program compares with itself, run in another way; true where it agrees.

    Attributes:
      a, b: the two ways.
      rows: for each result whether it agrees, the largest difference, and what is let pass.
      first: the first operation that deviates; None where none does.
      worst: those that deviate most, the worst first.
      growth: for each line the largest difference of its values, in the order of the program.
    """

    a: str
    b: str
    rows: tuple[tuple[bool, float, float], ...]
    first: Deviation | None = None
    worst: tuple[Deviation, ...] = ()
    growth: tuple[tuple[str, float], ...] = ()

    def __bool__(self) -> bool:
        return self.first is None

    def __str__(self) -> str:
        if self:
            said = "agree" if all([ok for ok, _, _ in self.rows]) else (
                "agree operation by operation: what their results differ by is rounding, which "
                "the program makes larger")
            return f"{self.a} and {self.b} {said}"
        lines = [f"{self.a} and {self.b} differ, first in {self.first}", "the worst:",
                 *[f"  {x}" for x in self.worst], "how it grows, by line:",
                 *[f"  {found:10.3g}  {line}" for line, found in self.growth]]
        return "\n".join(lines)


def compare(fun: Callable[..., Any], *args: Any, a: Way = "compiled", b: Way = "numpy-float64",
            **kwargs: Any) -> Comparison:
    """Find the first operation whose results in two ways to run a function differ by more than
    rounding, and than what its operands differ by.

    Args:
      fun: a function of arrays, jitted or not.
      args, kwargs: what it is called with.
      a, b: the ways: `compiled`, `eager` (operation by operation), `numpy-float64` (NumPy in double
        precision), the name of a platform that is here, or XLA's options, by name.

    Returns:
      A `Comparison`: true where they agree, and printed as a report of the first operation that
      deviates, the worst ten, and how the difference grows by line.

    Raises:
      ValueError: there is no such way.

    >>> import pyjx as jax
    >>> import pyjx.numpy as jnp
    >>> print(jax.inspect.compare(lambda x: jnp.sin(x) @ x, jnp.arange(4.0)))
    compiled and numpy-float64 agree
    """
    closed, leaves, _ = traced(fun, args, kwargs)
    closed, leaves, _ = repeatable(closed, leaves)
    return compare_program(closed, leaves, a, b)


def compare_program(closed: ClosedJaxpr, leaves: Sequence[Any], a: Way = "compiled",
                    b: Way = "numpy-float64") -> Comparison:
    """As `compare`, of a program on flat arguments."""
    first, second = _Way(a), _Way(b)
    given = list(leaves)
    rows = _rows(closed, given, first.run(closed, given), second.run(closed, given))
    if all([ok for ok, _, _ in rows]):
        return Comparison(first.name, second.name, rows)
    found: list[Deviation] = []
    for deviation in _deviations(closed, given, first, second, ()):
        found.append(deviation)
        if len(found) > 8 * _MOST:
            break
    worst = sorted(found, key=lambda x: -x.found / max(x.allowed, 1e-300))[:_MOST]
    growth = _growth(closed, given, first, second) if found else ()
    return Comparison(first.name, second.name, rows, found[0] if found else None, tuple(worst),
                      growth)


class _Way:
    """A way to run programs."""

    def __init__(self, way: Way) -> None:
        self.name = way if isinstance(way, str) else ", ".join(
            [f"{k}={v}" for k, v in way.items()]) if isinstance(way, Mapping) else "?"
        options = dict(way) if isinstance(way, Mapping) else None
        if way == "numpy-float64":
            self.run: Callable[..., list[Any]] = lambda closed, args: double(
                closed, args, Account())
        elif way == "eager":
            self.run = lambda closed, args: eval_jaxpr(
                closed.jaxpr, closed.consts, *_typed(closed, args))
        elif way == "compiled" or options is not None:
            self.run = lambda closed, args: jax.jit(
                jaxpr_as_fun(closed), compiler_options=options)(*_typed(closed, args))
        elif isinstance(way, str):
            try:
                device = jax.devices(way)[0]
            except RuntimeError as error:
                raise ValueError(
                    f"inspect.compare: {way!r} is neither compiled, eager, numpy-float64 nor a "
                    f"platform that is here: {error}") from None
            self.run = lambda closed, args: jax.jit(jaxpr_as_fun(closed))(
                *jax.device_put(_typed(closed, args), device))
        else:
            raise ValueError("inspect.compare: a way is a name, or a dict of XLA's options; got "
                             f"{way!r}")


def _typed(closed: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
    return [x if dtypes.is_extended(a.dtype) else jax.numpy.asarray(x, dtype=a.dtype)
            for x, a in zip(args, closed.in_avals, strict=True)]


def _rows(closed: ClosedJaxpr, args: Sequence[Any], ours: Sequence[Any], theirs: Sequence[Any]
          ) -> tuple[tuple[bool, float, float], ...]:
    """For each result whether it agrees, the largest difference, and that which is let pass."""
    size = max([scale_of(x) for x in args], default=0.0)

    def rows(spread: Sequence[float]) -> tuple[tuple[bool, float, float], ...]:
        return tuple([compared(x, _settled(x, y), size, SPREADS * s)
                      for x, y, s in zip(ours, theirs, spread, strict=True)])

    found = rows([0.0] * len(ours))
    return found if all([ok for ok, _, _ in found]) else rows(spread_of(closed, args))


def _settled(ours: Any, theirs: Any) -> Any:
    """Their numbers, with ours where one of the two is just beyond the range of the type."""
    x = np.asarray(ours) if not dtypes.is_extended(getattr(ours, "dtype", np.dtype(bool))) else None
    if x is None or not dtypes.issubdtype(x.dtype, np.floating):
        return theirs
    y, most = np.asarray(theirs).astype(np.float64), 0.99 * float(dtypes.finfo(x.dtype).max)
    wide = x.astype(np.float64)
    near = (np.abs(wide) >= most) & (np.abs(y) >= most) & (np.sign(wide) == np.sign(y))
    return np.where(near, wide, y)


def _flushed(x: Any) -> Any:
    """The operand as devices take it: numbers that have lost digits are 0."""
    dtype = getattr(x, "dtype", np.dtype(bool))
    if dtypes.is_extended(dtype) or not dtypes.issubdtype(dtype, np.floating):
        return x
    array = np.asarray(x)
    return np.where(np.abs(array.astype(np.float64)) < float(dtypes.finfo(dtype).tiny),
                    np.zeros((), array.dtype), array)


def _values(way: _Way, closed: ClosedJaxpr, args: Sequence[Any]) -> dict[Any, Any]:
    """The values of all variables of a straight program."""
    wanted = [v for e in closed.eqns for v in e.outvars]
    env = dict(zip(closed.jaxpr.invars, args, strict=True))
    env.update(zip(wanted, way.run(closed.replace(outvars=wanted), args), strict=True))
    return env


def _deviations(closed: ClosedJaxpr, args: Sequence[Any], first: _Way, second: _Way,
                steps: tuple[Step, ...]) -> Iterator[Deviation]:
    """The operations of a program that deviate on the same operands, in order."""
    args = [*closed.consts, *args]
    closed = consts_as_inputs(closed)
    closed = straight(closed)
    args = [*closed.consts, *args]
    closed = consts_as_inputs(closed)
    env = _values(first, closed, args)
    for eqn in closed.eqns:
        xs = [v for v in dict.fromkeys(eqn.invars) if not isinstance(v, Literal)]
        alone = ClosedJaxpr(Jaxpr([], xs, eqn.outvars, [eqn], eqn.effects), [])
        operands = [env[v] for v in xs]
        ours = [env[v] for v in eqn.outvars]
        rows = _rows(alone, operands, ours, second.run(alone, operands))
        if not all([ok for ok, _, _ in rows]):
            flushed = list(map(_flushed, operands))
            rows = _rows(alone, flushed, first.run(alone, flushed), second.run(alone, flushed))
        if all([ok for ok, _, _ in rows]):
            continue
        inner = list(_inside(eqn, [v.val if isinstance(v, Literal) else env[v]
                                   for v in eqn.invars], first, second, steps)) \
            if holds_jaxprs(eqn) else []
        yield from inner or [Deviation(eqn.primitive.name, line_of(eqn), steps, *max(
            [(found, allowed) for ok, found, allowed in rows if not ok]))]


def _inside(eqn: JaxprEqn, xs: Sequence[Any], first: _Way, second: _Way, steps: tuple[Step, ...]
            ) -> Iterator[Deviation]:
    """The operations that deviate in the branch that is taken, or the first iteration in which some
    do."""
    p, name = eqn.params, eqn.primitive.name
    if name == "cond":
        index = int(np.clip(int(xs[0]), 0, len(p["branches"]) - 1))
        yield from _deviations(p["branches"][index], xs[1:], first, second,
                               (*steps, Step.of(f"branch {index} of cond", eqn)))
    if name != "scan":
        return
    a, n, body = p["num_consts"], p["num_carry"], p["jaxpr"]
    carry = list(xs[a:a + n])
    for i in range(p["length"]):
        at = p["length"] - 1 - i if p["reverse"] else i
        given = [*xs[:a], *carry, *[x[at] for x in xs[a + n:]]]
        outs = first.run(body, given)
        if not all([ok for ok, _, _ in _rows(body, given, outs, second.run(body, given))]):
            yield from _deviations(body, given, first, second,
                                   (*steps, Step.of(f"iteration {i} of scan", eqn)))
            return
        carry = outs[:n]


def _growth(closed: ClosedJaxpr, args: Sequence[Any], first: _Way, second: _Way
            ) -> tuple[tuple[str, float], ...]:
    """For each line the largest difference between the two ways, in the order of the program."""
    args = [*closed.consts, *args]
    closed = straight(consts_as_inputs(closed))
    args = [*closed.consts, *args]
    closed = consts_as_inputs(closed)
    ours, theirs = _values(first, closed, args), _values(second, closed, args)
    lines: dict[str, float] = {}
    for eqn in closed.eqns:
        place = place_text(line_of(eqn))
        for v in eqn.outvars:
            if hasattr(v.aval, "shape") and not dtypes.is_extended(v.aval.dtype):
                found = compared(ours[v], theirs[v], 0.0, 0.0)[1]
                lines[place] = max(lines.get(place, 0.0), found)
    return tuple(lines.items())
