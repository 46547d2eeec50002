"""A program of several devices against the same one where each mesh has one device: the first
operation whose parts do not make up what there is in one piece.

What the devices have of a value may be the same on all, parts of it, or what is to be added up or
compared yet. An operation after which it is none of these, though it was before, is wrong: a sum
that is counted twice, or one that never was. Integers are passed by, as the numbers of devices are
such.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, nullcontext
from typing import Any

import numpy as np

import pyjx as jax
from pyjx import configuration
from pyjx.core import dtypes
from pyjx.core.array_type import Array
from pyjx.core.evaluation import jaxpr_as_fun
from pyjx.core.jaxpr import ClosedJaxpr, DropVar, JaxprEqn
from pyjx.core.passes.dce import dce
from pyjx.engine.moves import sharding_constraint_p
from pyjx.inspect.bad_values import Comparison, Deviation, Step
from pyjx.inspect.finding import WHOLE, OnDevices, Whole
from pyjx.inspect.running import rows_of, scale_of
from pyjx.inspect.straight import (
    changed,
    line_of,
    operands_of,
    programs_within,
    repeatable,
    straight,
    traced,
)
from pyjx.lax import copy_p
from pyjx.parallel.mapping import on_one_device
from pyjx.runtime.meshes import get_mesh

_Steps = tuple[Step, ...]


def compare_whole(fun: Callable[..., Any], args: Any, kwargs: Any) -> Comparison:
    """The comparison of a function with itself where each mesh has one device."""
    closed, leaves, _ = repeatable(*traced(fun, args, kwargs)[:2])
    args, kwargs = jax.tree.map(_here, (args, kwargs))
    try:
        with _alone():
            alone, given, _ = repeatable(*traced(fun, args, kwargs)[:2])
    except Exception as error:
        raise ValueError("inspect.compare: the function is no program for one device, as it knows "
                         f"how large parts are: {error}") from error
    alone = changed(alone, lambda eqn: eqn.replace(primitive=copy_p, params={})
                    if eqn.primitive is sharding_constraint_p else eqn)
    outs = [_run(program, xs, WHOLE, where) for program, xs, where in zip(
        (closed, alone), (leaves, given), _WHERE, strict=True)]
    with _alone():
        rows = rows_of(alone, given, *outs)
    result = Comparison("sharded", "whole", tuple([row[:3] for row in rows]))
    if all([row.ok for row in rows]):
        return result
    return result._replace(first=_first((closed, alone), (leaves, given), (WHOLE, WHOLE), ()))


def _alone() -> ExitStack:
    """A context in which each mesh has one device."""
    entered = ExitStack()
    entered.enter_context(configuration.one_device_meshes(True))
    if not get_mesh().empty:
        entered.enter_context(jax.set_mesh(on_one_device(get_mesh())))
    return entered


_WHERE: tuple[Callable[[], Any], ...] = (nullcontext, _alone)  # the two programs run


def _run(closed: ClosedJaxpr, args: Sequence[Any], scope: Whole, where: Callable[[], Any]
         ) -> list[Any]:
    with where():
        return list(scope.compiled(jaxpr_as_fun(closed))(*args))


def _here(x: Any) -> Any:
    """An array on no device."""
    return np.asarray(x) if isinstance(x, Array) and not dtypes.is_extended(x.dtype) else x


def _first(programs: Sequence[ClosedJaxpr], args: Sequence[Sequence[Any]], scopes: Sequence[Whole],
           steps: _Steps) -> Deviation | None:
    """The first operation after which parts do not make up the whole."""
    straightened = [dce(straight(program)) for program in programs]
    envs = []
    for closed, xs, scope, where in zip(straightened, args, scopes, _WHERE, strict=True):
        made = [v for e in closed.eqns for v in e.outvars if not isinstance(v, DropVar)]
        outs = _run(closed.replace(outvars=made), xs, scope, where)
        consts = map(scope.stacked, closed.consts)
        envs.append(dict(zip([*closed.jaxpr.all_invars, *made], [*consts, *xs, *outs],
                             strict=True)))
    for pair in zip(*[closed.eqns for closed in straightened], strict=False):
        eqn, other = pair
        if eqn.primitive not in (other.primitive, sharding_constraint_p):
            return None  # the function asks for the number of devices
        errors = [_apart(envs[0][v], envs[1][w], scopes[0])
                  for v, w in zip(eqn.outvars, other.outvars, strict=True) if v in envs[0]]
        wrong = [(*error, k) for k, error in enumerate(errors) if error[0] > error[1]]
        if wrong:
            xs = [[x if scope is WHOLE or v in env else scope.stacked(x) for v, x in zip(
                e.invars, operands_of(e, env), strict=True)]
                for e, env, scope in zip(pair, envs, scopes, strict=True)]
            return _inside(pair, xs, scopes, steps, max(wrong)) or Deviation(
                eqn.primitive.name, line_of(eqn), steps, *max(wrong)[:2])
    return None


def _inside(pair: Sequence[JaxprEqn], operands: Sequence[list[Any]], scopes: Sequence[Whole],
            steps: _Steps, wrong: tuple[float, float, int]) -> Deviation | None:
    """As `_first`, in what an equation holds of which a result is wrong."""
    eqn = pair[0]
    if eqn.primitive.holder.within is not None:
        inner = [OnDevices(e.params, scope) for e, scope in zip(pair, scopes, strict=True)]
        parts = []
        for e, xs, scope, where in zip(pair, operands, inner, _WHERE, strict=True):
            with where():
                parts.append(scope.entered(xs, e.params["in_specs"]))
        found = _first([e.params["jaxpr"] for e in pair], parts, inner,
                       (*steps, Step.of(eqn.primitive.name, eqn)))
        if found is not None:
            return found
        *error, k = wrong
        body = straight(eqn.params["jaxpr"])
        last = next((e for e in body.eqns if body.jaxpr.outvars[k] in e.outvars), eqn)
        taken = f"result {k} of {eqn.primitive.name}, which out_specs takes for {{}}".format(
            eqn.params["out_specs"][k])
        return Deviation(last.primitive.name, line_of(last), (*steps, Step.of(taken, eqn)), *error)
    for (text, body, given, outs), (_, other, theirs, wanted) in zip(*[
            _programs(*side) for side in zip(pair, operands, scopes, _WHERE, strict=True)],
            strict=False):
        errors = [_apart(x, y, scopes[0]) for x, y in zip(outs, wanted, strict=True)]
        if any([error > allowed for error, allowed in errors]):
            return _first([body, other], [given, theirs], scopes, (*steps, Step.of(text, eqn)))
    return None


def _programs(eqn: JaxprEqn, xs: list[Any], scope: Whole, where: Callable[[], Any]
              ) -> Iterator[Any]:
    """What a branch or a loop runs on operands, on all devices."""
    if scope is not WHOLE and eqn.primitive.name == "scan":
        n = eqn.params["num_consts"] + eqn.params["num_carry"]
        xs = [*xs[:n], *[np.moveaxis(np.asarray(x), 1, 0) for x in xs[n:]]]
    elif scope is not WHOLE and eqn.primitive.name == "cond":
        if len(set(np.asarray(xs[0]).tolist())) > 1:  # devices take several branches
            return iter(())
        xs = [np.asarray(xs[0])[0], *xs[1:]]
    return programs_within(
        eqn, xs, lambda _, closed, given: _run(closed, given, scope, where))


def _apart(parts: Any, whole: Any, scope: Whole) -> tuple[float, float]:
    """How far what devices have of a value is from making it up, and what rounding explains."""
    dtype = getattr(whole, "dtype", np.dtype(bool))
    if dtypes.is_extended(dtype) or not dtypes.issubdtype(dtype, np.inexact):
        return 0.0, 0.0
    wide = np.complex128 if dtypes.issubdtype(dtype, np.complexfloating) else np.float64
    x, y = [np.asarray(value).astype(wide) for value in (parts, whole)]
    allowed = float(dtypes.finfo(dtype).eps) ** 0.4 * max(scale_of(y), 1e-30)
    if scope is not WHOLE:
        x, y = x.reshape(*scope.sizes, *x.shape[1:]), y[0]
    n = len(scope.sizes)
    ways = [z for order in itertools.permutations(range(n)) for z in _made_up(
        np.transpose(x, (*order, *range(n, x.ndim))), n, y.shape, allowed)]
    return min([scale_of(np.nan_to_num(z - y)) for z in ways if z.shape == y.shape],
               default=0.0), allowed  # or nothing is known of how the parts lie


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
