"""Outlining: repeated runs of equations become one function that is called.

XLA's compile time grows faster than linearly with the size of a computation, and an unrolled
Python loop over layers makes a large one out of equal parts. This pass finds the parts.

1. Each equation gets a number: equations with the same primitive, parameters, operand and result
   types and literals get the same one. The program is then a sequence of integers.
2. A repeat at distance d is a run of positions i where number[i] == number[i + d]. The distances
   worth a look are those between successive uses of a number. A run that is longer than d is
   periodic and holds several copies, adjacent to each other.
3. The most saving repeat first: its blocks are cut where the fewest values cross the cut. Blocks
   with the same code, that is, the same numbers and the same flow of values between them, become
   calls of one function. What is left is searched again, and so is the function's body.

All of it is linear in the number of equations for a bounded number of distances.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from pyjx.core.derived import derived_structure
from pyjx.core.effects import join_effects
from pyjx.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from pyjx.core.primitive import Primitive

# Blocks of fewer equations stay where they are: calling them costs more than compiling them.
MIN_BLOCK = 20
# Operations that keep a block where it is. XLA chooses the memory layouts of convolutions with the
# whole computation in view; at the border of a called one it copies (ResNet-50's step on CPU: 14 %
# slower, and 1.5 times the compile time).
KEEPS_INLINE = frozenset({"conv_general_dilated"})
# What a function must save, as a part of all equations: less is not worth the calls.
MIN_SAVING = 0.02
# How many distances are looked at in each search, the most frequent ones.
MAX_DISTANCES = 48
# How many times the equations that are left are searched.
MAX_ROUNDS = 32

outlined_call_p = Primitive(
    "outlined_call", shape_rule=lambda *avals, jaxpr, name: jaxpr.out_avals,
    multiple_results=True, cached=False, effects=lambda params: params["jaxpr"].effects,
)


@derived_structure
def outline(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program with each block that repeats as a function, called at each of its places."""
    jaxpr = _outline_jaxpr(_share_calls(closed.jaxpr), 0)
    return closed if jaxpr is closed.jaxpr else ClosedJaxpr(jaxpr, closed.consts)


def _share_calls(jaxpr: Jaxpr) -> Jaxpr:
    """Calls of a jaxpr that is called several times stay calls when compiled."""
    uses: dict[ClosedJaxpr, int] = {}
    _count_uses(jaxpr, uses, {})
    if not uses:
        return jaxpr
    return _rewrite_calls(jaxpr, uses, {})


def _count_uses(jaxpr: Jaxpr, uses: dict[ClosedJaxpr, int], seen: dict[int, Jaxpr]) -> None:
    if id(jaxpr) in seen:
        return
    seen[id(jaxpr)] = jaxpr
    for eqn in jaxpr.eqns:
        if eqn.primitive.name == "jit":
            called = eqn.params["jaxpr"]
            uses[called] = uses.get(called, 0) + 1
            _count_uses(called.jaxpr, uses, seen)


def _rewrite_calls(jaxpr: Jaxpr, uses: dict[ClosedJaxpr, int], done: dict[ClosedJaxpr, ClosedJaxpr]
                   ) -> Jaxpr:
    eqns = []
    for eqn in jaxpr.eqns:
        if eqn.primitive.name == "jit":
            called = eqn.params["jaxpr"]
            if called not in done:
                body = _outline_jaxpr(_rewrite_calls(called.jaxpr, uses, done), 0)
                done[called] = called if body is called.jaxpr else ClosedJaxpr(body, called.consts)
            if uses[called] > 1 and len(called.eqns) >= MIN_BLOCK and not called.consts:
                eqn = eqn.replace(primitive=outlined_call_p, params={
                    "jaxpr": done[called], "name": eqn.params["name"]})
            elif done[called] is not called:
                eqn = eqn.replace(params={**eqn.params, "jaxpr": done[called]})
        eqns.append(eqn)
    return jaxpr.replace(eqns=eqns)


# -- numbering -------------------------------------------------------------------------------------


def number_eqns(eqns: Sequence[JaxprEqn]) -> np.ndarray:
    """An integer for each equation, equal where all but the operands' identity is equal."""
    numbers: dict[Any, int] = {}
    out = np.empty(len(eqns), np.int64)
    for i, eqn in enumerate(eqns):
        types = [v.key if type(v) is Literal else v.aval for v in eqn.invars]
        types += [v.aval for v in eqn.outvars]
        params = eqn.params
        key = (eqn.primitive, *params.items(), *types) if params else (eqn.primitive, *types)
        try:
            out[i] = numbers.setdefault(key, len(numbers))
        except TypeError:  # an unhashable parameter: like no other equation
            out[i] = numbers.setdefault(id(eqn), len(numbers))
    return out


# -- finding repeats -------------------------------------------------------------------------------


def _distances(numbers: np.ndarray) -> list[int]:
    """The most frequent distances between one use of a number and the next."""
    order = np.argsort(numbers, kind="stable")
    gaps = order[1:] - order[:-1]
    gaps = gaps[numbers[order[1:]] == numbers[order[:-1]]]
    # a short period counts as its first multiple that makes a block
    gaps = np.where(gaps < MIN_BLOCK, -(-MIN_BLOCK // np.maximum(gaps, 1)) * gaps, gaps)
    if not gaps.size:
        return []
    distances, counts = np.unique(gaps, return_counts=True)
    distances, counts = distances[counts > 1], counts[counts > 1]
    return [int(d) for d in distances[np.argsort(-counts, kind="stable")][:MAX_DISTANCES]]


class _Repeat(NamedTuple):
    """A run of equations that holds `copies` adjacent blocks of `length` equations."""

    start: int
    length: int
    copies: int
    end: int


def _best_repeat(numbers: np.ndarray) -> _Repeat | None:
    """The repeat that saves most."""
    best, best_saving = None, 0
    for d in _distances(numbers):
        equal = numbers[d:] == numbers[:-d]
        edges = np.flatnonzero(np.diff(np.concatenate(([0], equal.view(np.int8), [0]))))
        for start, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
            length = end - start
            if length >= d:
                copies = (length + d) // d
                saving, found = (copies - 1) * d, _Repeat(start, d, copies, end + d)
            else:
                saving, found = length, _Repeat(start, length, 1, end)
            # of equal savings the shorter period: its blocks are called more often
            if length >= MIN_BLOCK and saving > best_saving:
                best, best_saving = found, saving
    return best


def _occurrences(numbers: np.ndarray, pattern: np.ndarray) -> list[int]:
    """Where `pattern` stands in `numbers`, without overlaps."""
    n, k = len(numbers), len(pattern)
    if n < k:
        return []
    # rarest number first: few positions are left to compare in full
    values, counts = np.unique(numbers, return_counts=True)
    count_of = dict(zip(values.tolist(), counts.tolist(), strict=True))
    rare = min(range(k), key=lambda i: count_of.get(int(pattern[i]), 0))
    starts = np.flatnonzero(numbers[rare:n - k + 1 + rare] == pattern[rare])
    found: list[int] = []
    for s in starts.tolist():
        if (not found or s >= found[-1] + k) and np.array_equal(numbers[s:s + k], pattern):
            found.append(s)
    return found


class _Flow:
    """Definitions and uses of a program's variables."""

    __slots__ = ("defined", "last_use")

    def __init__(self, jaxpr: Jaxpr, eqns: Sequence[JaxprEqn]) -> None:
        self.defined = {v: i for i, e in enumerate(eqns) for v in e.outvars}
        self.last_use: dict[Var, int] = {}
        for i, e in enumerate(eqns):
            for v in e.invars:
                if type(v) is Var:
                    self.last_use[v] = i
        for v in jaxpr.outvars:
            if type(v) is Var:
                self.last_use[v] = len(eqns)

    def crossing(self, n: int) -> np.ndarray:
        """For each position, how many values are made before it and used at or after it."""
        change = np.zeros(n + 2, np.int64)
        last_use = self.last_use
        for v, i in self.defined.items():
            use = last_use.get(v, i)
            if use > i:
                change[i + 1] += 1
                change[use + 1] -= 1
        return np.cumsum(change)


def _rotated(repeat: _Repeat, crossing: np.ndarray) -> int:
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


# -- blocks ----------------------------------------------------------------------------------------


def _code(eqns: Sequence[JaxprEqn], start: int, length: int) -> tuple[Any, list[Var]]:
    """The flow of values in a block, and the values that it takes from outside."""
    place: dict[Var, int] = {}
    inputs: list[Var] = []
    flow: list[int] = []
    made = 1
    for i in range(start, start + length):
        eqn = eqns[i]
        for v in eqn.invars:
            if type(v) is not Literal:
                p = place.get(v)  # type: ignore[arg-type]
                if p is None:  # inputs count down from -1, results up from 1
                    inputs.append(v)  # type: ignore[arg-type]
                    p = place[v] = -len(inputs)  # type: ignore[index]
                flow.append(p)
        for v in eqn.outvars:
            place[v] = made
            made += 1
    return tuple(flow), inputs


class _Group:
    """Places that hold the same block."""

    __slots__ = ("inputs", "starts")

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.inputs: list[list[Var]] = []


def _groups(eqns: Sequence[JaxprEqn], starts: Sequence[int], length: int) -> list[_Group]:
    groups: dict[Any, _Group] = {}
    for s in starts:
        code, inputs = _code(eqns, s, length)
        group = groups.setdefault(code, _Group())
        group.starts.append(s)
        group.inputs.append(inputs)
    return [g for g in groups.values() if len(g.starts) > 1]


def _function(eqns: Sequence[JaxprEqn], group: _Group, length: int, flow: _Flow, depth: int
              ) -> tuple[ClosedJaxpr, list[int]]:
    """The group's function, and which of its block's results (by position) it returns."""
    needed: set[int] = set()
    for s in group.starts:
        results = [v for e in eqns[s:s + length] for v in e.outvars]
        needed.update(
            i for i, v in enumerate(results) if flow.last_use.get(v, -1) >= s + length
        )
    outputs = sorted(needed)
    first = eqns[group.starts[0]:group.starts[0] + length]
    fresh = {v: Var(v.aval) for v in group.inputs[0]}
    invars = list(fresh.values())
    body = []
    results = []
    for e in first:
        new_out = [Var(v.aval) for v in e.outvars]
        body.append(e.replace(
            invars=[v if type(v) is Literal else fresh[v] for v in e.invars],  # type: ignore
            outvars=new_out,
        ))
        fresh.update(zip(e.outvars, new_out, strict=True))
        results += new_out
    jaxpr = Jaxpr([], invars, [results[i] for i in outputs], body, join_effects(body))
    return ClosedJaxpr(_outline_jaxpr(jaxpr, depth + 1), []), outputs


def _outline_jaxpr(jaxpr: Jaxpr, depth: int) -> Jaxpr:
    eqns = jaxpr.eqns
    if len(eqns) < 2 * MIN_BLOCK or depth > 4:
        return jaxpr
    numbers = number_eqns(eqns)
    flow: _Flow | None = None
    calls: dict[int, tuple[int, JaxprEqn]] = {}  # start -> (length, call)
    fresh = -1  # numbers for equations that are taken, each unlike all others
    for _ in range(MAX_ROUNDS):
        repeat = _best_repeat(numbers)
        if repeat is None:
            break
        if flow is None:
            flow = _Flow(jaxpr, eqns)
            crossing = flow.crossing(len(eqns))
        start, length = _rotated(repeat, crossing), repeat.length
        groups: list[_Group] = []
        if not any(e.primitive.name in KEEPS_INLINE for e in eqns[start:start + length]):
            starts = _occurrences(numbers, numbers[start:start + length])
            groups = [g for g in _groups(eqns, starts, length)
                      if (len(g.starts) - 1) * length >= MIN_SAVING * len(eqns)]
        for group in groups:
            closed, outputs = _function(eqns, group, length, flow, depth)
            for s, inputs in zip(group.starts, group.inputs, strict=True):
                results = [v for e in eqns[s:s + length] for v in e.outvars]
                calls[s] = length, JaxprEqn(
                    outlined_call_p, inputs, [results[i] for i in outputs],
                    {"jaxpr": closed, "name": "block"}, closed.effects, eqns[s].source_info,
                )
                numbers[s:s + length] = np.arange(fresh, fresh - length, -1)
                fresh -= length
        if not groups:  # alike in kind but not in flow: not looked at again
            end = start + length
            numbers[start:end] = np.arange(fresh, fresh - length, -1)
            fresh -= length
    if not calls:
        return jaxpr
    out: list[JaxprEqn] = []
    i = 0
    while i < len(eqns):
        if i in calls:
            length, call = calls[i]
            out.append(call)
            i += length
        else:
            out.append(eqns[i])
            i += 1
    return jaxpr.replace(eqns=out)
