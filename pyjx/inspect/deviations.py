"""The first difference: which operation gives another value than it should, for two ways to run a
program.

Results that differ by no more than errors of rounding make of them agree. Where they differ by
more, or where these errors are as large as the results, each operation is run in the second way on
the operands that it had in the first: what it deviates by then is its own, whatever its operands
deviate by. How much of that is rounding is drawn, in double precision (`inspect/running.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

import pyjx as jax
from pyjx.core import dtypes
from pyjx.core.evaluation import eval_jaxpr, jaxpr_as_fun
from pyjx.core.jaxpr import ClosedJaxpr, DropVar, JaxprEqn, Literal
from pyjx.core.nested import all_eqns, holds_jaxprs
from pyjx.core.passes.dce import dce
from pyjx.engine.subjaxprs import consts_as_inputs
from pyjx.inspect.bad_values import Comparison, Deviation, Loss, Step, place_text
from pyjx.inspect.numpy_interpreter import Account, evaluate
from pyjx.inspect.running import Row, compared, double, raw, rows_of, scale_of
from pyjx.inspect.sharded import compare_whole
from pyjx.inspect.straight import (
    line_of,
    operands_of,
    programs_within,
    repeatable,
    straight,
    stretch,
    traced,
)

Way = str | Mapping[str, Any]

_MOST = 10  # of the worst operations, and of iterations of a loop that are looked into
_OPENED = ("cond", "scan", "while")


def compare(fun: Callable[..., Any], *args: Any, a: Way = "compiled", b: Way = "numpy-float64",
            **kwargs: Any) -> Comparison:
    """Find the first operation whose results in two ways to run a function differ by more than
    rounding, and than what its operands differ by; or say that nothing can be told, and which
    operation lost the digits.

    Args:
      fun: a function of arrays, jitted or not.
      args, kwargs: what it is called with.
      a, b: the ways: `compiled`, `eager` (operation by operation), `numpy-float64` (NumPy in double
        precision), the name of a platform that is here, XLA's options, by name, or a file that
        `record` wrote, as with another jaxlib. `b="whole"` is the function where each mesh has one
        device.

    Returns:
      A `Comparison`: true where they agree, and printed as a report of the first operation that
      deviates, the worst ten, and how the difference grows by line.

    Raises:
      ValueError: there is no such way, or a file is of another program.

    >>> import pyjx as jax
    >>> import pyjx.numpy as jnp
    >>> print(jax.inspect.compare(lambda x: jnp.sin(x) @ x, jnp.arange(4.0)))
    compiled and numpy-float64 agree
    >>> found = jax.inspect.compare(lambda x, y: jnp.sin((x - y) * 1e9), 0.3, 0.1)
    >>> bool(found), found.first, found.lost.operation
    (False, None, 'sin')
    """
    if b == "whole":
        return compare_whole(fun, args, kwargs)
    closed, leaves, _ = traced(fun, args, kwargs)
    closed, leaves, _ = repeatable(closed, leaves)
    return compare_program(closed, leaves, a, b)


def record(path: str, fun: Callable[..., Any], *args: Any, way: Way = "compiled", **kwargs: Any
           ) -> None:
    """Write the values of all operations of a function to a file that `compare` reads: on another
    machine, or with another jaxlib.

    Args:
      path: the file, `.npz`.
      fun: a function of arrays, jitted or not.
      args, kwargs: what it is called with.
      way: how it is run, as for `compare`. Loops run iteration by iteration.

    Raises:
      ValueError: there is no such way.

    >>> import os, tempfile
    >>> import pyjx as jax
    >>> path = os.path.join(tempfile.mkdtemp(), "here.npz")
    >>> jax.inspect.record(path, jax.numpy.sin, 1.0)
    >>> jax.inspect.compare(jax.numpy.sin, 1.0, b=path).rows[0][0]
    True
    """
    closed, leaves, _ = traced(fun, args, kwargs)
    closed, leaves, _ = repeatable(closed, leaves)
    np.savez_compressed(path, **dict(_recorded(closed, leaves, _Way(way), "")))


def compare_program(closed: ClosedJaxpr, leaves: Sequence[Any], a: Way = "compiled",
                    b: Way = "numpy-float64") -> Comparison:
    """As `compare`, of a program on flat arguments."""
    first, second = _Way(a), _Way(b)
    closed, given = dce(closed), list(leaves)
    rows = rows_of(closed, given, first.run("", closed, given), second.run("", closed, given))
    if second.file and first.file:  # each is to agree with what NumPy says
        found = [compare_program(closed, leaves, x, "numpy-float64") for x in (a, b)]
        return next((x for x in found if not x), found[1])._replace(rows=_public(rows))
    if second.file:
        first, second = second, first
    result = Comparison(first.name, second.name, _public(rows))
    deviations: list[Deviation] = []
    if not _agree(rows):
        for deviation in _deviations(closed, given, first, second, ()):
            deviations.append(deviation)
            if len(deviations) > 8 * _MOST:
                break
    if deviations:
        worst = sorted(deviations, key=lambda x: -x.found / max(x.allowed, 1e-300))[:_MOST]
        result = result._replace(first=deviations[0], worst=tuple(worst),
                                 growth=_growth(closed, given, first, second))
    lost = None if deviations else next(
        (_lost_in(closed, given, k) for k, row in enumerate(rows) if row.blind), None)
    held = {e.primitive.name for e in all_eqns(straight(closed)) if holds_jaxprs(e)
            and e.primitive.name not in _OPENED}
    return result._replace(lost=lost, whole=tuple(sorted(held | second.account.others)))


def _public(rows: Sequence[Row]) -> tuple[tuple[bool, float, float], ...]:
    return tuple([row[:3] for row in rows])


def _agree(rows: Sequence[Row]) -> bool:
    return all([row.ok and not row.blind for row in rows])


class _Way:
    """A way to run programs."""

    def __init__(self, way: Way) -> None:
        self.name = way if isinstance(way, str) else ", ".join(
            [f"{k}={v}" for k, v in way.items()])
        self.account = Account()
        self.file: Any = None
        self._jitted: dict[int, Any] = {}
        options, device = (dict(way) if isinstance(way, Mapping) else None), None
        if isinstance(way, str) and way.endswith(".npz"):
            self.file = np.load(way)
        elif isinstance(way, str) and way not in ("compiled", "eager", "numpy-float64"):
            try:
                device = jax.devices(way)[0]
            except RuntimeError as error:
                raise ValueError(
                    f"inspect.compare: {way!r} is neither compiled, eager, numpy-float64, a file "
                    f".npz of inspect.record nor a platform that is here: {error}") from None
        self._placed = device, options

    def run(self, key: str, closed: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
        """The results of a program; `key` says where it stands in that which was recorded."""
        if self.name == "numpy-float64":
            return double(closed, args, self.account)
        if self.file is not None and f"{key}0.0" in self.file:
            closed, args = _opened(closed, args)
            env = self.values(key, closed, args)
            return [v.val if isinstance(v, Literal) else env[v] for v in closed.jaxpr.outvars]
        typed = [x if dtypes.is_extended(a.dtype) else jax.numpy.asarray(x, dtype=a.dtype)
                 for x, a in zip(args, closed.in_avals, strict=True)]
        if self.name == "eager":
            return eval_jaxpr(closed.jaxpr, closed.consts, *typed)
        device, options = self._placed
        if id(closed) not in self._jitted:
            self._jitted[id(closed)] = closed, jax.jit(
                jaxpr_as_fun(closed), compiler_options=options)
        return self._jitted[id(closed)][1](  # type: ignore[no-any-return]
            *(typed if device is None else jax.device_put(typed, device)))

    def values(self, key: str, closed: ClosedJaxpr, args: Sequence[Any]) -> dict[Any, Any]:
        """The values of all variables of a program without calls and constants."""
        made = _made(closed)
        env: dict[Any, Any] = dict(zip(closed.jaxpr.invars, args, strict=True))
        if self.file is None:
            wanted = closed.replace(outvars=list(made))
            return {**env, **dict(zip(made, self.run(key, wanted, args), strict=True))}
        for v, (place, name) in made.items():
            known = str(self.file[f"{key}{place}"]) if f"{key}{place}" in self.file else "missing"
            if known != name:
                raise ValueError(f"inspect.compare: {self.name} is of another program: {name} of "
                                 f"this one is {known} there. Record the same function, with "
                                 "arguments of the same types.")
            x = self.file[f"{key}{place}.value"]
            env[v] = jax.random.wrap_key_data(x, impl=v.aval.dtype._impl.name) if (
                dtypes.is_extended(v.aval.dtype)) else x.view(v.aval.dtype)
        return env


def _made(closed: ClosedJaxpr) -> dict[Any, tuple[str, str]]:
    """The variables of a program, the place of each, and the operation that makes it."""
    return {v: (f"{i}.{k}", f"{eqn.primitive.name}:{v.aval.str_short()}")
            for i, eqn in enumerate(closed.eqns) for k, v in enumerate(eqn.outvars)
            if not isinstance(v, DropVar)}


def _opened(closed: ClosedJaxpr, args: Sequence[Any]) -> tuple[ClosedJaxpr, list[Any]]:
    """The program without calls and constants, and its arguments."""
    closed = dce(straight(closed))
    return consts_as_inputs(closed), [*closed.consts, *args]


def _recorded(closed: ClosedJaxpr, args: Sequence[Any], way: _Way, key: str
              ) -> Iterator[tuple[str, Any]]:
    """What a file has of a program: of each value which operation made it, and its numbers."""
    closed, args = _opened(closed, args)
    env = way.values(key, closed, args)
    for v, (place, name) in _made(closed).items():
        yield from [(f"{key}{place}", name), (f"{key}{place}.value", np.asarray(raw(env[v])))]
    for i, eqn in enumerate(closed.eqns):
        for text, program, given, _ in programs_within(eqn, operands_of(eqn, env), way.run):
            yield from _recorded(program, given, way, f"{key}{i}/{text}/")


def _flushed(x: Any) -> Any:
    """The operand as devices take it: numbers that have lost digits are 0."""
    dtype = getattr(x, "dtype", np.dtype(bool))
    if dtypes.is_extended(dtype) or not dtypes.issubdtype(dtype, np.floating):
        return x
    array = np.asarray(x)
    return np.where(np.abs(array.astype(np.float64)) < float(dtypes.finfo(dtype).tiny),
                    np.zeros((), array.dtype), array)


def _deviations(closed: ClosedJaxpr, args: Sequence[Any], first: _Way, second: _Way,
                steps: tuple[Step, ...], key: str = "") -> Iterator[Deviation]:
    """The operations of a program that deviate on the same operands, in order."""
    closed, args = _opened(closed, args)
    env = first.values(key, closed, args)
    for i, eqn in enumerate(closed.eqns):
        alone = stretch([eqn])
        given, ours = [[env[v] for v in vs] for vs in (alone.jaxpr.invars, alone.jaxpr.outvars)]
        rows = rows_of(alone, given, ours, second.run("", alone, given))
        if not all([row.ok for row in rows]):
            given = list(map(_flushed, given))
            rows = rows_of(alone, given, ours if first.file else first.run("", alone, given),
                           second.run("", alone, given))
        if _agree(rows):
            continue
        inner = False
        for deviation in _inside(eqn, operands_of(eqn, env), first, second, steps, f"{key}{i}/"):
            inner = True
            yield deviation
        wrong = [(found, allowed) for ok, found, allowed, _ in rows if not ok]
        if wrong and not inner:
            yield Deviation(eqn.primitive.name, line_of(eqn), steps, *max(wrong))


def _inside(eqn: JaxprEqn, xs: Sequence[Any], first: _Way, second: _Way, steps: tuple[Step, ...],
            key: str) -> Iterator[Deviation]:
    """The operations that deviate in the branch that is taken, or in the first iteration in which
    some do."""
    for text, body, given, outs in programs_within(
            eqn, xs, lambda text, *rest: first.run(f"{key}{text}/", *rest)):
        if _agree(rows_of(body, given, outs, second.run("", body, given))):
            continue
        found = list(_deviations(body, given, first, second, (*steps, Step.of(text, eqn)),
                                 f"{key}{text}/"))
        yield from found
        if found:
            return


def _growth(closed: ClosedJaxpr, args: Sequence[Any], first: _Way, second: _Way
            ) -> tuple[tuple[str, float], ...]:
    """For each line the largest difference between the two ways, in the order of the program."""
    closed, args = _opened(closed, args)
    ours, theirs = [way.values("", closed, args) for way in (first, second)]
    lines: dict[str, float] = {}
    for eqn in closed.eqns:
        place = place_text(line_of(eqn))
        for v in eqn.outvars:
            if v in ours and hasattr(v.aval, "shape") and not dtypes.is_extended(v.aval.dtype):
                found = compared(ours[v], theirs[v], 0.0, 0.0)[1]
                lines[place] = max(lines.get(place, 0.0), found)
    return tuple(lines.items())


# ---- where digits are lost ----------------------------------------------------------------


def _lost_in(closed: ClosedJaxpr, args: Sequence[Any], k: int) -> Loss:
    """Which operation loses the digits of a result, in the run whose rounding harms it most."""
    closed = dce(straight(closed.replace(outvars=[closed.jaxpr.outvars[k]])))
    exact = _evaluated(Account(), "", closed, args)
    errors = [_error(exact, _evaluated(_disturbed(i), "", closed, args)) for i in range(3)]
    worst = int(np.argmax(errors))
    found = _lost(closed, args, args, worst, min(errors[worst], 1.0) / 2, ())
    return found or Loss("the program", None, (), errors[worst], 0.0)


def _evaluated(account: Account, _: str, closed: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
    return evaluate(closed.jaxpr, closed.consts, args, account)


def _disturbed(seed: int) -> Account:
    return Account(np.random.default_rng(seed))


def _error(exact: Sequence[Any], noisy: Sequence[Any]) -> float:
    """The largest relative error of several values."""
    return max([scale_of(np.subtract(x, y)) / max(scale_of(x), 1e-300) if dtypes.issubdtype(
        np.asarray(raw(x)).dtype, np.inexact) else float(not np.array_equal(raw(x), raw(y)))
        for x, y in zip(exact, noisy, strict=True)], default=0.0)


def _lost(closed: ClosedJaxpr, exact: Sequence[Any], noisy: Sequence[Any], seed: int, limit: float,
          steps: tuple[Step, ...]) -> Loss | None:
    """The first operation whose relative error reaches a limit, where that of its operands does
    not."""
    closed, exact = _opened(closed, exact)
    noisy = [*exact[:len(exact) - len(noisy)], *noisy]
    made = list(_made(closed))
    accounts = Account(), _disturbed(seed)
    every = closed.replace(outvars=made)
    envs = [dict(zip([*closed.jaxpr.invars, *made], [*xs, *_evaluated(account, "", every, xs)],
                     strict=True)) for xs, account in zip((exact, noisy), accounts, strict=True)]
    for eqn in closed.eqns:
        operands = [operands_of(eqn, env) for env in envs]
        before = _error(*operands)
        after = _error(*[[env[v] for v in eqn.outvars if v in env] for env in envs])
        if before >= limit or after < limit:
            continue
        for (text, body, given, outs), (same, _, other, theirs) in zip(*[
                programs_within(eqn, xs, partial(_evaluated, account))
                for xs, account in zip(operands, accounts, strict=True)], strict=False):
            if text != same:
                break
            if _error(outs, theirs) >= limit:
                found = _lost(body, given, other, seed, limit, (*steps, Step.of(text, eqn)))
                if found is not None:
                    return found
        return Loss(eqn.primitive.name, line_of(eqn), steps, after, before)
    return None
