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
from pyjx.core.jaxpr import ClosedJaxpr, JaxprEqn, Literal
from pyjx.engine.moves import sharding_constraint_p
from pyjx.inspect.bad_values import Comparison, Deviation, Step
from pyjx.inspect.finding import WHOLE, OnDevices, Whole
from pyjx.inspect.running import compared, rows_of, scale_of
from pyjx.inspect.straight import changed, repeatable_of, straight
from pyjx.inspect.walking import Env, Judge, Part, Side, faults
from pyjx.lax import copy_p
from pyjx.parallel.mapping import on_one_device
from pyjx.runtime.meshes import get_mesh


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
    result = Comparison("sharded", "whole", tuple([row[:3] for row in rows]))
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
           ) -> tuple[float, ...] | None:
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

    def fault(self, eqn: JaxprEqn, steps: tuple[Step, ...], wrong: tuple[float, ...]) -> Deviation:
        if eqn.primitive.holder.within is not None:  # all is right within
            body, k = straight(eqn.params["jaxpr"]), int(wrong[2])
            steps = (*steps, Step.of(f"result {k} of {eqn.primitive.name}, which out_specs takes "
                                     f"for {eqn.params['out_specs'][k]}", eqn))
            eqn = next((e for e in body.eqns if body.jaxpr.outvars[k] in e.outvars), eqn)
        return super().fault(eqn, steps, wrong)


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
