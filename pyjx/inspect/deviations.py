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
from contextlib import ExitStack, nullcontext
from typing import Any

import numpy as np

import pyjx as jax
from pyjx import configuration
from pyjx.core import dtypes
from pyjx.core.array_type import Array
from pyjx.core.evaluation import all_eqns, eval_jaxpr, holds_jaxprs, jaxpr_as_fun, program_of
from pyjx.core.jaxpr import ClosedJaxpr, DropVar, JaxprEqn, Literal
from pyjx.core.passes.dce import dce
from pyjx.engine.moves import sharding_constraint_p
from pyjx.engine.subjaxprs import consts_as_inputs
from pyjx.inspect.bad_values import Comparison, Deviation, Step, exit_text, place_text
from pyjx.inspect.finding import WHOLE, OnDevices, Whole
from pyjx.inspect.loops import programs_within
from pyjx.inspect.numpy_interpreter import Account, Rounded, adds_up, evaluate, limits_of
from pyjx.inspect.running import Row, compared, double, ranged, raw, rows_of, scale_of, typed
from pyjx.inspect.straight import (
    changed,
    check_keywords,
    line_of,
    opened,
    operands_of,
    repeatable_of,
    straight,
    stretch,
)
from pyjx.lax import copy_p
from pyjx.parallel.mapping import on_one_device
from pyjx.runtime.meshes import get_mesh

# -- one walk through a program --------------------------------------------------------------------

Env = dict[Any, Any]
Part = tuple[str, ClosedJaxpr, list[Any], list[Any], "Side"]


class Side:
    """A way in which a program runs. A key says where in the whole a part of it stands."""

    def run(self, key: str, closed: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
        """The results of a program."""
        raise NotImplementedError

    def constant(self, x: Any) -> Any:
        """A constant of the program as an argument."""
        return x

    def values(self, key: str, closed: ClosedJaxpr, args: Sequence[Any]) -> Env:
        """The values of all variables of a program without calls and constants."""
        made = made_by(closed)
        outs = self.run(key, closed.replace(outvars=list(made)), args)
        return dict(zip([*closed.jaxpr.invars, *made], [*args, *outs], strict=True))

    def within(self, key: str, eqn: JaxprEqn, xs: list[Any]) -> Iterator[Part]:
        """What an equation runs: as `programs_within`, each with the way in which it does."""
        for part in programs_within(eqn, xs, lambda text, *rest: self.run(f"{key}{text}/", *rest)):
            yield (*part, self)

    def opened(self, closed: ClosedJaxpr, args: Sequence[Any]) -> tuple[ClosedJaxpr, list[Any]]:
        """The program without calls and constants, and its arguments."""
        closed = dce(straight(closed))
        return consts_as_inputs(closed), [*map(self.constant, closed.consts), *args]


class Judge:
    """Who says what is wrong."""

    def of(self, sides: Sequence[Side], eqns: Sequence[JaxprEqn], envs: Sequence[Env]
           ) -> tuple[Any, ...] | None:
        """What a `Deviation` says of an operation whose results are wrong, from `found` on; None if
        they are right, and nothing where that is to be seen in the programs that it holds."""
        raise NotImplementedError

    def inside(self, parts: Sequence[Part]) -> bool:
        """Whether the results of what an equation runs are wrong."""
        raise NotImplementedError

    def fault(self, eqn: JaxprEqn, steps: tuple[Step, ...], wrong: tuple[Any, ...]) -> Deviation:
        return Deviation(eqn.primitive.name, line_of(eqn), steps, *wrong)


def made_by(closed: ClosedJaxpr) -> dict[Any, tuple[str, str]]:
    """The variables of a program, the place of each, and the operation that makes it."""
    return {v: (f"{i}.{k}", f"{eqn.primitive.name}:{v.aval.str_short()}")
            for i, eqn in enumerate(closed.eqns) for k, v in enumerate(eqn.outvars)
            if not isinstance(v, DropVar)}


def faults(judge: Judge, sides: Sequence[Side], programs: Sequence[ClosedJaxpr],
           args: Sequence[Sequence[Any]], steps: tuple[Step, ...] = (), key: str = ""
           ) -> Iterator[Deviation]:
    """The operations that are wrong, in order; of a loop those of the first iteration that is."""
    opened = [side.opened(closed, xs) for side, closed, xs in zip(
        sides, programs, args, strict=True)]
    envs = [side.values(key, *given) for side, given in zip(sides, opened, strict=True)]
    for i, eqns in enumerate(zip(*[closed.eqns for closed, _ in opened], strict=False)):
        wrong = judge.of(sides, eqns, envs)
        if wrong is None:
            continue
        inner = False
        for parts in zip(*[side.within(f"{key}{i}/", eqn, operands_of(eqn, env)) for side, eqn, env
                           in zip(sides, eqns, envs, strict=True)], strict=False):
            if not judge.inside(parts):
                continue
            texts, bodies, given, _, ways = zip(*parts, strict=True)
            for found in faults(judge, ways, bodies, given, (*steps, Step.of(texts[0], eqns[0])),
                                f"{key}{i}/{texts[0]}/"):
                inner = True
                yield found
            if inner:
                break
        if wrong and not inner:
            yield judge.fault(eqns[0], steps, wrong)


# -- the first difference --------------------------------------------------------------------------

Way = str | Mapping[str, Any]

_MOST = 10  # of the worst operations, and of iterations of a loop that are looked into
_OPENED = ("cond", "scan", "while")


def compare(fun: Callable[..., Any], *args: Any, a: Way = "compiled", b: Way = "numpy-float64",
            **kwargs: Any) -> Comparison:
    """Find the first operation whose results in two ways to run a function differ by more than
    rounding, and than what its operands differ by; or say which operation lost the digits, by
    rounding, so that nothing can be told, or as its numbers leave the range of their type.

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
    check_keywords("compare", fun, kwargs, "a", "b")
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
    check_keywords("record", fun, kwargs, "way")
    closed, leaves, _ = repeatable_of(fun, args, kwargs)
    np.savez_compressed(path, **_named(closed, leaves), **dict(
        _recorded(closed, leaves, _Way(way, "way"), "")))


def compare_program(closed: ClosedJaxpr, leaves: Sequence[Any], a: Way = "compiled",
                    b: Way = "numpy-float64") -> Comparison:
    """As `compare`, of a program on flat arguments."""
    first, second = _Way(a, "a"), _Way(b, "b")
    for way in (first, second):
        way.expect(closed, leaves)
    closed, given = dce(closed), list(leaves)
    ours, theirs = [way.run("", closed, given) for way in (first, second)]
    rows = rows_of(closed, given, ours, theirs)
    if second.file and first.file:  # each is to agree with what NumPy says
        each = [compare_program(closed, leaves, x, "numpy-float64") for x in (a, b)]
        return next((x for x in each if not x), each[1])._replace(**_public(rows))
    if second.file:
        first, second = second, first
    result = Comparison(first.name, second.name, **_public(rows))
    deviations: list[Deviation] = []
    if not _agree(rows):
        found = faults(_Rerun(first, second), (first,), (closed,), (given,))
        deviations = list(itertools.islice(found, 8 * _MOST))
    lost = next((x for x in deviations if x.leaves), None)
    deviations = [x for x in deviations if not x.leaves]
    if deviations:
        worst = sorted(deviations, key=lambda x: -x.found / max(x.allowed, 1e-300))[:_MOST]
        result = result._replace(first=deviations[0], worst=tuple(worst),
                                 growth=_growth(closed, given, first, second))
    elif lost is None and not _agree(rows):
        rows, lost = ranged(closed, given, ours, theirs, rows)
        result = result._replace(**_public(rows))
        lost = lost or next(
            (_lost_in(closed, given, k) for k, row in enumerate(rows) if row.blind), None)
    held = second.account.others | {e.primitive.name for e in all_eqns(straight(closed))
                                    if holds_jaxprs(e) and e.primitive.name not in _OPENED and (
                                        program_of(e.primitive, e.params) is None or not opened(e))}
    return result._replace(lost=None if deviations else lost, whole=tuple(sorted(held)))


def _public(rows: Sequence[Row]) -> dict[str, Any]:
    """What a `Comparison` says of results."""
    return {"rows": tuple([row[:3] for row in rows]), "nans": tuple([row.nans for row in rows])}


def _agree(rows: Sequence[Row]) -> bool:
    return all([row.ok and not row.blind for row in rows])


class _Way(Side):
    """A way to run programs."""

    def __init__(self, way: Way, argument: str) -> None:
        if not isinstance(way, (str, Mapping)):
            raise TypeError(f"inspect.compare: {argument} must be 'compiled', 'eager', "
                            "'numpy-float64', the name of a platform or file, or XLA's options, "
                            f"by name; got {way!r}.")
        self.name = way if isinstance(way, str) else ", ".join([f"{k}={v}" for k, v in way.items()])
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
                    f"inspect.compare: {way!r} is neither 'compiled', 'eager', 'numpy-float64', a "
                    f"file .npz of inspect.record nor a platform that is here: {error}") from None
        self._placed = device, options

    def expect(self, closed: ClosedJaxpr, args: Sequence[Any]) -> None:
        """Raise ValueError where a file has a result of other arguments."""
        if self.file is None:
            return
        named = _named(closed, args)
        for key in {**named, **{k: None for k in self.file if k.startswith("argument ")}}:
            known, x = self.file.get(key), named.get(key)
            if known is None or x is None or known.shape != x.shape or (
                    known.dtype.kind != "V" and known.dtype != x.dtype):  # V: of ml_dtypes
                raise ValueError(f"inspect.compare: {self.name} is of another program, with an "
                                 f"{key} of another type. Record the same function, with "
                                 "arguments of the same types.")
            if known.tobytes() != x.tobytes():
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
        given = typed(closed, args)
        if self.name == "eager":
            return eval_jaxpr(closed.jaxpr, closed.consts, *given)
        device, options = self._placed
        if id(closed) not in self._jitted:
            self._jitted[id(closed)] = closed, jax.jit(
                jaxpr_as_fun(closed), compiler_options=options)
        return self._jitted[id(closed)][1](  # type: ignore[no-any-return]
            *(given if device is None else jax.device_put(given, device)))

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
    if not dtypes.has_dtype(x, np.floating):
        return x
    array = np.asarray(x)
    return np.where(np.abs(array.astype(np.float64)) < float(dtypes.finfo(x.dtype).tiny),
                    np.zeros((), array.dtype), array)


_PRODUCTS = ("cumprod", "linear_recurrence", "reduce_prod", "scatter_mul")


def _left(alone: ClosedJaxpr, given: Sequence[Any], ours: Any, theirs: Any
          ) -> tuple[float, float, str] | None:
    """What is said of a sum or product that is no number, or 0, in one way alone, if it is because
    partial results may leave the range of their type; else None."""
    neutral = float(alone.eqns[0].primitive.name in _PRODUCTS)
    if not dtypes.has_dtype(ours, np.floating) or not (neutral or adds_up(alone.eqns[0])):
        return None
    # Of all numbers that make a partial result larger, or of a product smaller.
    (large,), (small,) = [double(alone, [
        further(np.where(np.isfinite(x) & (x != 0), np.abs(x), neutral), neutral)
        if dtypes.has_dtype(x, np.floating) else x for x in given], Account())
        for further in (np.maximum, np.minimum)]
    least, most = limits_of(ours.dtype)
    over = ~(np.isfinite(ours) & np.isfinite(theirs)) & (large >= most)
    under = ((ours == 0) != (theirs == 0)) & (small < least * neutral)
    left = over | under
    if not compared(np.where(left, 0, ours), np.where(left, 0, theirs))[0]:
        return None
    number, limit = (large[over].max(), most) if over.any() else (small[under].min(), least)
    return float(number), limit, f"(at worst, on the way) {exit_text(limit == least, ours.dtype)}"


class _Rerun(Judge):
    """Runs each operation in a second way, on the operands that it had in the first."""

    def __init__(self, first: _Way, second: _Way) -> None:
        self.first, self.second = first, second

    def of(self, sides: Sequence[Side], eqns: Sequence[JaxprEqn], envs: Sequence[Env]
           ) -> tuple[Any, ...] | None:
        alone = stretch(eqns)
        given, ours = [[envs[0][v] for v in vs] for vs in (alone.jaxpr.invars, alone.jaxpr.outvars)]
        theirs = self.second.run("", alone, given)
        rows = rows_of(alone, given, ours, theirs)
        if not all([row.ok for row in rows]):
            given = list(map(_flushed, typed(alone, given, np.asarray)))
            ours = ours if self.first.file else self.first.run("", alone, given)
            theirs = self.second.run("", alone, given)
            rows = rows_of(alone, given, ours, theirs)
        if _agree(rows):
            return None
        wrong = [(row.found, row.allowed, "") for row in rows if not row.ok]
        if len(rows) == len(wrong) == 1:
            wrong = [_left(alone, given, *map(np.asarray, (*ours, *theirs))) or wrong[0]]
        return max(wrong, default=())

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
        self.account = Account() if seed is None else Rounded(np.random.default_rng(seed))

    def run(self, key: str, closed: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
        return evaluate(closed.jaxpr, closed.consts, args, self.account)


class _Lost(Judge):
    """Looks for where the relative error reaches a limit."""

    def __init__(self, limit: float) -> None:
        self.limit = limit

    def of(self, sides: Sequence[Side], eqns: Sequence[JaxprEqn], envs: Sequence[Env]
           ) -> tuple[Any, ...] | None:
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


# -- a program of several devices against one ------------------------------------------------------

# What the devices have of a value may be the same on all, parts of it, or what is to be added up or
# compared yet. An operation after which it is none of these, though it was before, is wrong: a sum
# that is counted twice, or one that never was. Integers are passed by, as the numbers of devices
# are such.


def compare_whole(fun: Callable[..., Any], args: Any, kwargs: Any) -> Comparison:
    """The comparison of a function with itself where each mesh has one device."""
    closed, leaves, _ = repeatable_of(fun, args, kwargs)
    args, kwargs = jax.tree.map(_here, (args, kwargs))
    try:
        with _alone():
            alone, given, _ = repeatable_of(fun, args, kwargs)
    except Exception as error:
        why = ", as it knows how large parts are" if "shape" in str(error) else ""
        raise ValueError(f"inspect.compare: the function is no program for one device{why}: {error}"
                         ) from error
    alone = changed(alone, lambda eqn: eqn.replace(primitive=copy_p, params={})
                    if eqn.primitive is sharding_constraint_p else eqn)
    sides = [_Devices(WHOLE, where) for where in (nullcontext, _alone)]
    outs = [side.run("", *each) for side, each in zip(
        sides, ((closed, leaves), (alone, given)), strict=True)]
    with _alone():
        rows = rows_of(alone, given, *outs)
    result = Comparison("sharded", "whole", **_public(rows))
    if all([row.ok for row in rows]):
        return result
    return result._replace(first=next(
        faults(_Parts(), sides, (closed, alone), (leaves, given)), None))


def _alone() -> ExitStack:
    """A context in which each mesh has one device."""
    entered = ExitStack()
    entered.enter_context(configuration.one_device_meshes(True))
    if not get_mesh().empty:
        entered.enter_context(jax.set_mesh(on_one_device(get_mesh())))
    return entered


def _here(x: Any) -> Any:
    """An array on no device."""
    return np.asarray(x) if isinstance(x, Array) and not dtypes.is_extended(x.dtype) else x


class _Devices(Side):
    """On the devices of a scope, in a context."""

    def __init__(self, scope: Whole, where: Callable[[], Any]) -> None:
        self.scope, self.where = scope, where

    def constant(self, x: Any) -> Any:
        return self.scope.stacked(x)

    def run(self, key: str, closed: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
        with self.where():
            return list(self.scope.compiled(jaxpr_as_fun(closed))(*args))

    def within(self, key: str, eqn: JaxprEqn, xs: list[Any]) -> Iterator[Part]:
        name, p = eqn.primitive.name, eqn.params
        if self.scope is not WHOLE:
            xs = [self.scope.stacked(x) if isinstance(v, Literal) else x
                  for v, x in zip(eqn.invars, xs, strict=True)]
        if eqn.primitive.holder.within is not None:
            inner = OnDevices(p, self.scope)
            with self.where():
                parts = inner.entered(xs, p["in_specs"])
            yield name, p["jaxpr"], parts, [], _Devices(inner, self.where)
            return
        if self.scope is not WHOLE and name == "scan":
            n = p["num_consts"] + p["num_carry"]
            xs = [*xs[:n], *[np.moveaxis(np.asarray(x), 1, 0) for x in xs[n:]]]
        elif self.scope is not WHOLE and name == "cond":
            if len(set(np.asarray(xs[0]).tolist())) > 1:  # devices take several branches
                return
            xs = [np.asarray(xs[0])[0], *xs[1:]]
        yield from super().within(key, eqn, xs)


class _Parts(Judge):
    """Looks for where the parts do not make up the whole."""

    def of(self, sides: Sequence[Any], eqns: Sequence[JaxprEqn], envs: Sequence[Env]
           ) -> tuple[Any, ...] | None:
        eqn, other = eqns
        if eqn.primitive not in (other.primitive, sharding_constraint_p):
            return None  # the function asks for the number of devices
        apart = [(*_apart(envs[0][v], envs[1][w], sides[0].scope), k) for k, (v, w) in enumerate(
            zip(eqn.outvars, other.outvars, strict=True)) if v in envs[0]]
        return max([x for x in apart if x[0] > x[1]], default=None)

    def inside(self, parts: Sequence[Any]) -> bool:
        (_, _, _, ours, side), (_, _, _, theirs, _) = parts
        errors = [_apart(x, y, side.scope) for x, y in zip(ours, theirs, strict=True)]
        return not errors or any([error > allowed for error, allowed in errors])

    def fault(self, eqn: JaxprEqn, steps: tuple[Step, ...], wrong: tuple[Any, ...]) -> Deviation:
        if eqn.primitive.holder.within is not None:  # all is right within
            body, k = straight(eqn.params["jaxpr"]), wrong[2]
            steps = (*steps, Step.of(f"result {k} of {eqn.primitive.name}, which out_specs takes "
                                     f"for {eqn.params['out_specs'][k]}", eqn))
            eqn = next((e for e in body.eqns if body.jaxpr.outvars[k] in e.outvars), eqn)
        return super().fault(eqn, steps, wrong[:2])


def _apart(parts: Any, whole: Any, scope: Whole) -> tuple[float, float]:
    """How far what devices have of a value is from making it up, and what rounding explains."""
    if not dtypes.has_dtype(whole, np.inexact):
        return 0.0, 0.0
    wide = np.complex128 if dtypes.has_dtype(whole, np.complexfloating) else np.float64
    x, y = [np.asarray(value).astype(wide) for value in (parts, whole)]
    allowed = float(dtypes.finfo(whole.dtype).eps) ** 0.4 * max(scale_of(y), 1e-30)
    if scope is not WHOLE:
        x, y = x.reshape(*scope.sizes, *x.shape[1:]), y[0]
    n = len(scope.sizes)
    with np.errstate(invalid="ignore"):  # of infinities
        ways = [z for order in itertools.permutations(range(n)) for z in _made_up(
            np.transpose(x, (*order, *range(n, x.ndim))), n, y.shape, allowed)]
    # Where none of the ways has the shape of the whole, nothing is known of how the parts lie.
    return min([compared(z, y)[1] for z in ways if z.shape == y.shape], default=0.0), allowed


def _made_up(x: Any, axes: int, shape: tuple[int, ...], allowed: float) -> Iterator[Any]:
    """What the parts along some first axes may be as one array."""
    if not axes:
        yield x
        return
    found = [np.sum(x, 0), np.max(x, 0), np.min(x, 0)] if x.dtype != np.complex128 else [x.sum(0)]
    if np.ptp(x, 0).max(initial=0) <= allowed:
        found.append(x[0])
    found += [np.concatenate(list(x), axes - 1 + d) for d in range(x.ndim - axes)
              if x.shape[axes + d] * len(x) <= shape[d]]
    for y in found:
        yield from _made_up(y, axes - 1, shape, allowed)
