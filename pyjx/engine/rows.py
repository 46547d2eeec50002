"""On one CPU, long formulas on arrays of many short rows become formulas on one row.

XLA writes a loop for each axis there, and one over a few elements gets no vector instructions, so
that rows of five take up to twenty times as long as one row of as many elements.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import is_
from typing import Any

from lowering.rules import rules_for
from pyjx.core.arithmetic import transcendental
from pyjx.core.avals import ShapedArray
from pyjx.core.derived import derived_structure
from pyjx.core.effects import no_effects
from pyjx.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Var
from pyjx.core.nested import holders_in, map_jaxprs
from pyjx.core.places import HERE
from pyjx.core.primitive import find_primitive
from pyjx.engine.barriers import optimization_barrier_p

SHORT, MANY = 16, 4096  # elements of a row, and of all
LONG = 24  # operations for each result that is read elsewhere
# What is a long formula alone, and as how many operations other functions count.
_FORMULAS, _TRANSCENDENTAL = ("digamma", "bessel_i1e"), 8


@derived_structure
def in_one_row(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program, and those nested in it, with each long run of arithmetic on arrays of one shape
    of short rows in one row; the same one if there is none. It has been decomposed."""
    jaxpr = _rewritten(closed.jaxpr)
    return closed if jaxpr is closed.jaxpr else ClosedJaxpr(jaxpr, closed.consts)


def _rewritten(jaxpr: Jaxpr) -> Jaxpr:
    inside = {id(e): map_jaxprs(e.params, in_one_row, _rewritten) for e in holders_in(jaxpr)}
    eqns = [e.replace(params=inside[id(e)]) if inside.get(id(e), e.params) is not e.params else e
            for e in jaxpr.eqns]
    flat = _with_flat_runs(eqns, jaxpr.outvars)
    return jaxpr if flat is eqns and all(map(is_, eqns, jaxpr.eqns)) else jaxpr.replace(eqns=flat)


def _with_flat_runs(eqns: Sequence[JaxprEqn], outvars: Sequence[Any]) -> Sequence[JaxprEqn]:
    short = {a for a in {v.aval for e in eqns for v in e.outvars} if _is_short(a)}
    if not short:
        return eqns
    shapes = [_shape(e) if len(e.outvars) == 1 and e.outvars[0].aval in short else None
              for e in eqns]
    last = {v: i for i, e in enumerate(eqns) for v in e.invars if type(v) is Var}
    last.update((v, len(eqns)) for v in outvars if type(v) is Var)
    done: list[JaxprEqn] = []
    run: list[JaxprEqn] = []
    made: dict[Any, None] = {}
    of: Any = None
    for i, (eqn, shape) in enumerate(zip(eqns, shapes, strict=True)):
        if run and (shape != of if shape else any([v in made for v in eqn.invars
                                                   if type(v) is Var])):
            done += _flat(run, [v for v in made if last.get(v, -1) >= i])
            run, made = [], {}
        if shape:
            of = shape
            run.append(eqn)
            made[eqn.outvars[0]] = None
        else:  # it reads nothing of the run, and may stand before it
            done.append(eqn)
    return done + _flat(run, [v for v in made if last.get(v, -1) >= len(eqns)])


def _is_short(aval: Any) -> bool:
    return type(aval) is ShapedArray and aval.ndim > 1 and aval.place is HERE and all(
        [type(n) is int for n in aval.shape]) and aval.shape[-1] < SHORT and aval.size >= MANY


def _shape(eqn: JaxprEqn) -> Any:
    """The shape of all operands but scalars, and of the result, of arithmetic."""
    shape = eqn.outvars[0].aval.shape
    rule = rules_for("cpu")[eqn.primitive.name]
    fits = {(), shape} if rule is not None and rule.elementwise else \
        {()} if eqn.primitive.name == "broadcast_in_dim" else set()
    return shape if fits.issuperset([v.aval.shape for v in eqn.invars]) else None


def _flat(run: list[JaxprEqn], outs: Sequence[Var]) -> list[JaxprEqn]:
    """A run of equations in one row, if it is long for so many results that are read elsewhere.

    Barriers keep XLA from moving the reshapes through the run, where they would cancel."""
    cost = sum([LONG if p.name in _FORMULAS else _TRANSCENDENTAL
                if p.arithmetic is transcendental else 1 for p in [e.primitive for e in run]])
    if not outs or cost < LONG * len(outs):
        return run
    reshape_p = find_primitive("reshape", "pyjx.lax.shapes")
    row = (run[0].outvars[0].aval.size,)
    made = {e.outvars[0] for e in run}
    given = list(dict.fromkeys([v for e in run for v in e.invars
                                if type(v) is Var and v.aval.shape and v not in made]))
    info = run[0].source_info

    def reshaped(xs: Iterable[Var], ys: Iterable[Var]) -> list[JaxprEqn]:
        return [JaxprEqn(reshape_p, [x], [y], {"dimensions": None, "new_sizes": y.aval.shape,
                                               "sharding": None}, no_effects, info)
                for x, y in zip(xs, ys, strict=True)]

    def in_row(vs: Iterable[Var]) -> list[Var]:
        return [Var(v.aval.update(shape=row)) for v in vs]

    def barred(xs: list[Var], ys: list[Var]) -> list[JaxprEqn]:
        return [JaxprEqn(optimization_barrier_p, xs, ys, {}, no_effects, info)] if xs else []

    before, behind = in_row(given), in_row(outs)
    flat: dict[Any, Any] = dict(zip(given, in_row(given), strict=True))
    flat.update(zip(made, in_row(made), strict=True))
    return [*reshaped(given, before), *barred(before, [flat[v] for v in given]),
            *[e.replace(invars=[flat.get(v, v) if type(v) is Var else v for v in e.invars],
                        outvars=[flat[e.outvars[0]]],
                        params={**e.params, "shape": row} if "shape" in e.params else e.params)
              for e in run], *barred([flat[v] for v in outs], behind), *reshaped(behind, outs)]
