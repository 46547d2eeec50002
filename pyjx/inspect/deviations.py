"""The first difference: which operation gives another value than it should, for two ways to run a
program.

Results that differ by no more than errors of rounding make of them agree. Where they differ by
more, or where these errors are as large as the results, each operation is run in the second way on
the operands that it had in the first: what it deviates by then is its own, whatever its operands
deviate by. How much of that is rounding is drawn, in double precision (`inspect/running.py`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

import pyjx as jax
from pyjx.core import dtypes
from pyjx.core.evaluation import eval_jaxpr, jaxpr_as_fun
from pyjx.core.jaxpr import ClosedJaxpr, JaxprEqn, Literal
from pyjx.core.nested import all_eqns, holds_jaxprs
from pyjx.core.passes.dce import dce
from pyjx.inspect.bad_values import Comparison, Deviation, place_text
from pyjx.inspect.numpy_interpreter import Account, evaluate
from pyjx.inspect.running import Row, compared, double, raw, rows_of, scale_of
from pyjx.inspect.sharded import compare_whole
from pyjx.inspect.straight import line_of, operands_of, repeatable_of, straight, stretch
from pyjx.inspect.walking import Env, Judge, Part, Side, faults, made_by

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
      ValueError: there is no such way or file, a file is of another program or of other
        arguments, or `a` is another way than `compiled` where `b` is `whole`.

    >>> import pyjx as jax
    >>> import pyjx.numpy as jnp
    >>> print(jax.inspect.compare(lambda x: jnp.sin(x) @ x, jnp.arange(4.0)))
    compiled and numpy-float64 agree
    >>> found = jax.inspect.compare(lambda x, y: jnp.sin((x - y) * 1e9), 0.3, 0.1)
    >>> bool(found), found.first, found.lost.operation
    (False, None, 'sin')
    """
    if b == "whole":
        if a != "compiled":
            raise ValueError("inspect.compare: b='whole' is compared with a='compiled' alone, got "
                             f"a={a!r}.")
        return compare_whole(fun, args, kwargs)
    closed, leaves, _ = repeatable_of(fun, args, kwargs)
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
    closed, leaves, _ = repeatable_of(fun, args, kwargs)
    np.savez_compressed(path, **_named(closed, leaves), **dict(
        _recorded(closed, leaves, _Way(way), "")))


def compare_program(closed: ClosedJaxpr, leaves: Sequence[Any], a: Way = "compiled",
                    b: Way = "numpy-float64") -> Comparison:
    """As `compare`, of a program on flat arguments."""
    first, second = _Way(a), _Way(b)
    for way in (first, second):
        way.expect(closed, leaves)
    closed, given = dce(closed), list(leaves)
    rows = rows_of(closed, given, first.run("", closed, given), second.run("", closed, given))
    if second.file and first.file:  # each is to agree with what NumPy says
        each = [compare_program(closed, leaves, x, "numpy-float64") for x in (a, b)]
        return next((x for x in each if not x), each[1])._replace(rows=_public(rows))
    if second.file:
        first, second = second, first
    result = Comparison(first.name, second.name, _public(rows))
    deviations: list[Deviation] = []
    if not _agree(rows):
        found = faults(_Rerun(first, second), (first,), (closed,), (given,))
        deviations = list(itertools.islice(found, 8 * _MOST))
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


class _Way(Side):
    """A way to run programs."""

    def __init__(self, way: Way) -> None:
        self.name = way if isinstance(way, str) else ", ".join(
            [f"{k}={v}" for k, v in way.items()])
        self.account = Account()
        self.file: Any = None
        self._jitted: dict[int, Any] = {}
        options, device = (dict(way) if isinstance(way, Mapping) else None), None
        if isinstance(way, str) and way.endswith(".npz"):
            try:
                self.file = np.load(way)
            except (OSError, EOFError, ValueError) as error:
                raise ValueError(f"inspect.compare: {way!r} is no file of inspect.record that can "
                                 f"be read: {error}") from None
        elif isinstance(way, str) and way not in ("compiled", "eager", "numpy-float64"):
            try:
                device = jax.devices(way)[0]
            except RuntimeError as error:
                raise ValueError(
                    f"inspect.compare: {way!r} is neither compiled, eager, numpy-float64, a file "
                    f".npz of inspect.record nor a platform that is here: {error}") from None
        self._placed = device, options

    def expect(self, closed: ClosedJaxpr, args: Sequence[Any]) -> None:
        """Raise ValueError where a file has a result of other arguments."""
        if self.file is None:
            return
        for key, x in _named(closed, args).items():
            known = self.file.get(key, x)  # without it, it is of another program
            if known.shape == x.shape and known.tobytes() != x.tobytes():
                raise ValueError(f"inspect.compare: {self.name} was recorded with another {key}. "
                                 "Record the function again, with the same arguments.")

    def run(self, key: str, closed: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
        """The results of a program; `key` says where it stands in that which was recorded."""
        if self.name == "numpy-float64":
            return double(closed, args, self.account)
        if self.file is not None and f"{key}0.0" in self.file:
            closed, args = self.opened(closed, args)
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

    def values(self, key: str, closed: ClosedJaxpr, args: Sequence[Any]) -> Env:
        if self.file is None:
            return super().values(key, closed, args)
        env = dict(zip(list[Any](closed.jaxpr.invars), args, strict=True))
        for v, (place, name) in made_by(closed).items():
            known = str(self.file[f"{key}{place}"]) if f"{key}{place}" in self.file else "missing"
            if known != name:
                raise ValueError(f"inspect.compare: {self.name} is of another program: {name} of "
                                 f"this one is {known} there. Record the same function, with "
                                 "arguments of the same types.")
            x = self.file[f"{key}{place}.value"]
            env[v] = jax.random.wrap_key_data(x, impl=v.aval.dtype._impl.name) if (
                dtypes.is_extended(v.aval.dtype)) else x.view(v.aval.dtype)
        return env


def _named(closed: ClosedJaxpr, args: Sequence[Any]) -> dict[str, Any]:
    """The arguments of a program, as a file has them."""
    return {f"argument {i}": np.asarray(raw(x)) if dtypes.is_extended(a.dtype) else np.asarray(
        x, a.dtype) for i, (x, a) in enumerate(zip(args, closed.in_avals, strict=True))}


def _recorded(closed: ClosedJaxpr, args: Sequence[Any], way: _Way, key: str
              ) -> Iterator[tuple[str, Any]]:
    """What a file has of a program: of each value which operation made it, and its numbers."""
    closed, args = way.opened(closed, args)
    env = way.values(key, closed, args)
    for v, (place, name) in made_by(closed).items():
        yield from [(f"{key}{place}", name), (f"{key}{place}.value", np.asarray(raw(env[v])))]
    for i, eqn in enumerate(closed.eqns):
        for text, program, given, *_ in way.within("", eqn, operands_of(eqn, env)):
            yield from _recorded(program, given, way, f"{key}{i}/{text}/")


def _flushed(x: Any) -> Any:
    """The operand as devices take it: numbers that have lost digits are 0."""
    dtype = getattr(x, "dtype", np.dtype(bool))
    if dtypes.is_extended(dtype) or not dtypes.issubdtype(dtype, np.floating):
        return x
    array = np.asarray(x)
    return np.where(np.abs(array.astype(np.float64)) < float(dtypes.finfo(dtype).tiny),
                    np.zeros((), array.dtype), array)


class _Rerun(Judge):
    """Runs each operation in a second way, on the operands that it had in the first."""

    def __init__(self, first: _Way, second: _Way) -> None:
        self.first, self.second = first, second

    def of(self, sides: Sequence[Side], eqns: Sequence[JaxprEqn], envs: Sequence[Env]
           ) -> tuple[float, ...] | None:
        alone = stretch(eqns)
        given, ours = [[envs[0][v] for v in vs] for vs in (
            alone.jaxpr.invars, alone.jaxpr.outvars)]
        rows = rows_of(alone, given, ours, self.second.run("", alone, given))
        if not all([row.ok for row in rows]):
            given = list(map(_flushed, given))
            ours = ours if self.first.file else self.first.run("", alone, given)
            rows = rows_of(alone, given, ours, self.second.run("", alone, given))
        if _agree(rows):
            return None
        return max([(found, allowed) for ok, found, allowed, _ in rows if not ok], default=())

    def inside(self, parts: Sequence[Part]) -> bool:
        _, body, given, outs, _ = parts[0]
        return not _agree(rows_of(body, given, outs, self.second.run("", body, given)))


def _growth(closed: ClosedJaxpr, args: Sequence[Any], first: _Way, second: _Way
            ) -> tuple[tuple[str, float], ...]:
    """For each line the largest difference between the two ways, in the order of the program."""
    closed, args = first.opened(closed, args)
    ours, theirs = [way.values("", closed, args) for way in (first, second)]
    lines: dict[str, float] = {}
    for eqn in closed.eqns:
        place = place_text(line_of(eqn))
        for v in eqn.outvars:
            if v in ours and hasattr(v.aval, "shape") and not dtypes.is_extended(v.aval.dtype):
                found = compared(ours[v], theirs[v])[1]
                lines[place] = max(lines.get(place, 0.0), found)
    return tuple(lines.items())


# ---- where digits are lost ----------------------------------------------------------------


def _lost_in(closed: ClosedJaxpr, args: Sequence[Any], k: int) -> Deviation:
    """Which operation loses the digits of a result, in the run whose rounding harms it most."""
    closed = dce(straight(closed.replace(outvars=[closed.jaxpr.outvars[k]])))
    exact = _Drawn(None).run("", closed, args)
    errors = [_error(exact, _Drawn(i).run("", closed, args)) for i in range(3)]
    worst = int(np.argmax(errors))
    found = faults(_Lost(min(errors[worst], 1.0) / 2), (_Drawn(None), _Drawn(worst)),
                   (closed, closed), (args, args))
    return next(found, None) or Deviation("the program", None, (), errors[worst], 0.0)


class _Drawn(Side):
    """By NumPy, with errors of rounding that are drawn, or none."""

    def __init__(self, seed: int | None) -> None:
        self.account = Account(None if seed is None else np.random.default_rng(seed))

    def run(self, key: str, closed: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
        return evaluate(closed.jaxpr, closed.consts, args, self.account)


class _Lost(Judge):
    """Looks for where the relative error reaches a limit."""

    def __init__(self, limit: float) -> None:
        self.limit = limit

    def of(self, sides: Sequence[Side], eqns: Sequence[JaxprEqn], envs: Sequence[Env]
           ) -> tuple[float, ...] | None:
        pairs = list(zip(eqns, envs, strict=True))
        before = _error(*[operands_of(eqn, env) for eqn, env in pairs])
        after = _error(*[[env[v] for v in eqn.outvars if v in env] for eqn, env in pairs])
        return (after, before) if before < self.limit <= after else None

    def inside(self, parts: Sequence[Part]) -> bool:
        return parts[0][0] == parts[1][0] and _error(*[p[3] for p in parts]) >= self.limit


def _error(exact: Sequence[Any], noisy: Sequence[Any]) -> float:
    """The largest relative error of several values."""
    return max([compared(x, y)[1] / max(scale_of(x), 1e-300) if dtypes.issubdtype(
        np.asarray(raw(x)).dtype, np.inexact) else float(not np.array_equal(raw(x), raw(y)))
        for x, y in zip(exact, noisy, strict=True)], default=0.0)
