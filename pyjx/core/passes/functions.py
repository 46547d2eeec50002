"""The functions that outlining makes of repeats, and their calls."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pyjx.core.effects import join_effects
from pyjx.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from pyjx.core.passes.blocks import Flow, Group, Program, Users, groups_of
from pyjx.core.passes.chains import without_cut_chains, without_fused
from pyjx.core.passes.dce import dce_jaxpr, used_variables
from pyjx.core.passes.outline import outline_jaxpr, outlined_call_p
from pyjx.core.passes.recompute import narrow_borders
from pyjx.core.passes.repeats import Repeat, Repeats, occurrences

# What a function must save, as a part of all equations: less is not worth the calls.
MIN_SAVING = 0.02
# Functions of fewer equations have no functions inside: they compile quickly as they are, and XLA
# fuses no operations across calls.
MIN_NESTED = 256
# How many repeats are looked at.
MAX_ROUNDS = 32


def with_functions(jaxpr: Jaxpr, numbered: Sequence[int], depth: int) -> Jaxpr:
    """The jaxpr with calls of functions in place of its repeats; equations with the same number
    are the same operation."""
    numbers = np.array(numbered, np.int64)
    repeats = Repeats(numbers)
    if repeats.best() is None:
        return jaxpr
    eqns = jaxpr.eqns
    flow = Flow(jaxpr)
    crossing = flow.crossing(len(eqns))
    groups: list[Group] = []
    for _ in range(MAX_ROUNDS):
        repeat = repeats.best()
        if repeat is None:
            break
        found = _groups(eqns, repeats.numbers, repeat, crossing)
        for group in found:
            for start in group.starts:
                repeats.take(start, start + group.length)
        if not found:  # alike in kind but not in flow: not looked at again
            repeats.take(repeat.start, repeat.end)
        groups += found
    groups = without_fused(groups, jaxpr)
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
        jaxpr = outline_jaxpr(jaxpr, depth + 1)
    return ClosedJaxpr(jaxpr, []), outputs
