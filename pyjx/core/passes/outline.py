"""Outlining: repeated runs of equations become one function that is called.

XLA's compile time grows faster than linearly with the size of a computation, and an unrolled
Python loop over layers makes a large one out of equal parts. This pass finds the parts: the most
saving repeat first, its blocks cut where the fewest values cross the cut. Blocks with the same
code, that is, the same equations and the same flow of values between them, become calls of one
function. What is left is searched again, and so is the function's body.

All of it is linear in the number of equations for a bounded number of distances.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from operator import is_not

import numpy as np

from pyjx.core.derived import derived_structure
from pyjx.core.effects import join_effects
from pyjx.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from pyjx.core.nested import holders, map_jaxprs
from pyjx.core.passes.blocks import Flow, Group, Program, Users, groups_of
from pyjx.core.passes.chains import without_cut_chains
from pyjx.core.passes.dce import dce_jaxpr, used_variables
from pyjx.core.passes.recompute import narrow_borders
from pyjx.core.passes.repeats import MIN_BLOCK, Repeat, Repeats, number_eqns, occurrences
from pyjx.core.primitive import Primitive

# What a function must save, as a part of all equations: less is not worth the calls.
MIN_SAVING = 0.02
# Functions of fewer equations have no functions inside: they compile quickly as they are, and XLA
# fuses no operations across calls.
MIN_NESTED = 256
# How many repeats are looked at.
MAX_ROUNDS = 32

outlined_call_p = Primitive(
    "outlined_call", shape_rule=lambda *avals, jaxpr, name: jaxpr.out_avals,
    multiple_results=True, cached=False, is_call=True, label=lambda params: params["name"],
    effects=lambda params: params["jaxpr"].effects,
)


@derived_structure
def outline(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program with each block that repeats as a function, called at each of its places."""
    calls: Counter[ClosedJaxpr] = Counter()
    _count_calls(closed, calls, set())
    return _outlined(closed, calls, {})


def _count_calls(closed: ClosedJaxpr, calls: Counter[ClosedJaxpr], seen: set[ClosedJaxpr]) -> None:
    """Count the calls of each jaxpr in a program, and in the programs inside it."""
    seen.add(closed)
    for eqn in holders(closed):
        for value in eqn.params.values():
            for inner in value if isinstance(value, (tuple, list)) else (value,):
                if isinstance(inner, ClosedJaxpr):
                    calls[inner] += eqn.primitive.is_call
                    if inner not in seen:
                        _count_calls(inner, calls, seen)


def _outlined(closed: ClosedJaxpr, calls: Counter[ClosedJaxpr],
              done: dict[ClosedJaxpr, ClosedJaxpr]) -> ClosedJaxpr:
    """The program outlined, and those inside it; calls of a jaxpr that is called several times stay
    calls when compiled."""
    found = done.get(closed)
    if found is None:
        jaxpr = closed.jaxpr
        inside = {id(e): e for e in holders(closed)}
        if inside:
            eqns = [_shared(e, calls, done) if id(e) in inside else e for e in jaxpr.eqns]
            if any(map(is_not, eqns, jaxpr.eqns)):
                jaxpr = jaxpr.replace(eqns=eqns)
        jaxpr = _outline_jaxpr(jaxpr, 0)
        found = closed if jaxpr is closed.jaxpr else ClosedJaxpr(jaxpr, closed.consts)
        done[closed] = found
    return found


def _shared(eqn: JaxprEqn, calls: Counter[ClosedJaxpr], done: dict[ClosedJaxpr, ClosedJaxpr]
            ) -> JaxprEqn:
    params = map_jaxprs(
        eqn.params, lambda inner: _outlined(inner, calls, done), lambda jaxpr: jaxpr)
    if eqn.primitive.is_call:
        called: ClosedJaxpr = eqn.params["jaxpr"]
        if calls[called] > 1 and len(called.eqns) >= MIN_BLOCK and not called.consts:
            return eqn.replace(primitive=outlined_call_p,
                               params={"jaxpr": params["jaxpr"], "name": params["name"]})
    return eqn if params is eqn.params else eqn.replace(params=params)


# -- blocks ----------------------------------------------------------------------------------------


def _outline_jaxpr(jaxpr: Jaxpr, depth: int) -> Jaxpr:
    eqns = jaxpr.eqns
    if len(eqns) < 2 * MIN_BLOCK or depth > 4:
        return jaxpr
    numbers = number_eqns(eqns)
    repeats = Repeats(numbers)
    repeat = repeats.best()
    if repeat is None:
        return jaxpr
    flow = Flow(jaxpr)
    crossing = flow.crossing(len(eqns))
    groups: list[Group] = []
    for _ in range(MAX_ROUNDS):
        found = _groups(eqns, repeats.numbers, repeat, crossing)
        for group in found:
            for start in group.starts:
                repeats.take(start, start + group.length)
        if not found:  # alike in kind but not in flow: not looked at again
            repeats.take(repeat.start, repeat.end)
        groups += found
        repeat = repeats.best()
        if repeat is None:
            break
    if not groups:
        return jaxpr
    program = Program(jaxpr, numbers, flow.defined, groups)
    kept = without_cut_chains(groups, program)
    if len(kept) < len(groups):
        groups, program = kept, Program(jaxpr, numbers, flow.defined, kept)
    moved = narrow_borders(groups, program)
    out = jaxpr.replace(eqns=_with_calls(eqns, groups, program.users, depth))
    return dce_jaxpr(out, [True] * len(out.outvars)) if moved else out


def _groups(eqns: Sequence[JaxprEqn], numbers: np.ndarray, repeat: Repeat, crossing: np.ndarray
            ) -> list[Group]:
    """The blocks of a repeat that are worth a function."""
    start, length = _rotated(repeat, crossing), repeat.length
    if not all([e.primitive.outlined for e in eqns[start:start + length]]):
        return []
    starts = occurrences(numbers, numbers[start:start + length])
    return [g for g in groups_of(eqns, starts, length)
            if (len(g.starts) - 1) * length >= MIN_SAVING * len(eqns)]


def _rotated(repeat: Repeat, crossing: np.ndarray) -> int:
    """Where the first block of a repeat starts.

    A periodic run may be cut at any place of its period. Few values should cross the cuts, and as
    many blocks as possible should fit: one block less weighs as much as values crossing a quarter
    of its equations.
    """
    start, length, copies, end = repeat
    if copies < 2:
        return start
    rotations = np.arange(length)
    cuts = start + rotations[:, None] + np.arange(1, copies)[None, :] * length
    cost = crossing[np.minimum(cuts, len(crossing) - 1)].mean(axis=1)
    lost = copies - (end - start - rotations) // length
    return start + int(np.argmin(cost + lost * (length / 4)))


# -- functions -------------------------------------------------------------------------------------


def _with_calls(eqns: Sequence[JaxprEqn], groups: Sequence[Group], users: Users, depth: int
                ) -> list[JaxprEqn]:
    """The equations with each block as a call. The last blocks first: what they do not read need
    not be made."""
    calls: dict[int, tuple[int, JaxprEqn]] = {}  # start -> (length, call)
    for group in sorted(groups, key=lambda g: -g.starts[0]):
        closed, outputs = _function(eqns, group, users, depth)
        for start, inputs in zip(group.starts, group.inputs, strict=True):
            results = group.results(eqns, start)
            calls[start] = group.length, JaxprEqn(
                outlined_call_p, inputs, [results[i] for i in outputs],
                {"jaxpr": closed, "name": "block"}, closed.effects, eqns[start].source_info,
            )
    out: list[JaxprEqn] = []
    i = 0
    while i < len(eqns):
        length, call = calls.get(i, (1, eqns[i]))
        out.append(call)
        i += length
    return out


def _function(eqns: Sequence[JaxprEqn], group: Group, users: Users, depth: int
              ) -> tuple[ClosedJaxpr, list[int]]:
    """The group's function, and which of its block's results (by position) it returns."""
    results = [group.results(eqns, start) for start in group.starts]
    outputs = [i for i, copies in enumerate(zip(*results, strict=True))
               if any([users.any(v) for v in copies])]
    fresh: dict[Var, Var] = {v: Var(v.aval) for v in group.formals}
    body = []
    for e in group.body:
        invars = [v if type(v) is Literal else fresh[v] for v in e.invars]  # type: ignore[index]
        outvars = [Var(v.aval) for v in e.outvars]
        body.append(e.replace(invars=invars, outvars=outvars))
        fresh.update(zip(e.outvars, outvars, strict=True))
    params = [fresh[v] for v in group.formals]
    jaxpr = Jaxpr([], params, [fresh[results[0][i]] for i in outputs], body, join_effects(body))
    jaxpr = dce_jaxpr(jaxpr, [True] * len(outputs))
    used = used_variables(jaxpr)
    live = [v in used for v in params]
    if not all(live):
        jaxpr = jaxpr.replace(invars=[v for v in params if v in used])
        for i, start in enumerate(group.starts):
            users.remove(group.inputs[i], start)
            group.inputs[i] = [v for v, k in zip(group.inputs[i], live, strict=True) if k]
            users.add(group.inputs[i], start)
    if len(jaxpr.eqns) >= MIN_NESTED:
        jaxpr = _outline_jaxpr(jaxpr, depth + 1)
    return ClosedJaxpr(jaxpr, []), outputs
