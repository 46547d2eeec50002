"""Outlining: repeated runs of equations become one function that is called.

XLA's compile time grows faster than linearly with the size of a computation, and an unrolled
Python loop over layers makes a large one out of equal parts. This pass finds the parts: the most
saving repeat first, its blocks cut where the fewest values cross the cut. Blocks with the same
code, that is, the same equations and the same flow of values between them, become calls of one
function. What is left is searched again, and so is the function's body. All of it is linear in the
number of equations for a bounded number of distances.

A repeat at distance d is a run of positions i where number[i] == number[i + d], the numbers
standing for equations. The distances worth a look are those between successive uses of a number. A
run that is longer than d is periodic and holds several copies, adjacent to each other. What is
taken gets numbers that nothing else has, so a repeat can only lose by what others take: the best
repeat of a distance is looked for again only when its old one would be the best of all.

Chains of operations that XLA fuses are not cut. A fusion computes again whatever it reads of
operations that are fused. Within one computation a long chain of elementwise operations ends in few
fusions; but each of its values that a call reads ends one, so calls that read every value of a
chain of n cost n² / 2 operations. Blocks whose results are read once each are one fusion with what
reads them, which keeps nothing of them in memory and computes nothing again: the terms of a sum, as
an interpolation has them.

An optimizer that maps each of its steps over all parameters leaves a program that goes step by
step, while XLA makes one kernel for each parameter: it fuses all steps of one. Blocks are cut from
neighbouring equations, so runs of such operations are ordered by what they make first, or each step
of each layer would end up in a function of its own with kernels of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from operator import is_not
from typing import Any

import numpy as np

from pyjx.core.contents import params_key
from pyjx.core.derived import derived_structure
from pyjx.core.effects import join_effects
from pyjx.core.evaluation import holders, map_jaxprs
from pyjx.core.frames import user_code
from pyjx.core.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from pyjx.core.options import ONE_KERNEL
from pyjx.core.passes.blocks import Flow, Group, Program, Users, groups_of
from pyjx.core.passes.dce import dce_jaxpr, used_variables
from pyjx.core.passes.recompute import narrow_borders
from pyjx.core.primitive import Holding, Primitive
from pyjx.core.records import Record

# Blocks of fewer equations stay where they are: calling them costs more than compiling them.
MIN_BLOCK = 20

# Programs of fewer operations compile about as quickly whole, and run without calls, between which
# XLA fuses nothing.
MIN_PROGRAM = 768

# How many functions may be inside one another.
MAX_DEPTH = 4

outlined_call_p = Primitive(
    "outlined_call", shape_rule=lambda *avals, jaxpr, name: jaxpr.out_avals,
    multiple_results=True, cached=False, is_call=True, label=lambda params: params["name"],
    effects=lambda params: params["jaxpr"].effects,
    holder=Holding(runs=lambda params: params["jaxpr"]),
)


@derived_structure
def outline(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program with each block that repeats as a function, called at each of its places."""
    calls: Counter[ClosedJaxpr] = Counter()
    _count_calls(closed, calls, set())
    return _outlined(closed, calls, {})


def is_long(closed: ClosedJaxpr) -> bool:
    """Whether outlining is worth its calls where nobody has asked for it."""
    if len(closed.jaxpr.eqns) >= MIN_PROGRAM:
        return True
    inside: set[ClosedJaxpr] = set()
    _count_calls(closed, Counter(), inside)
    return sum([e.primitive.length for program in inside for e in program.jaxpr.eqns]
               ) >= MIN_PROGRAM


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
    calls when compiled, unless their parameter `inline` says anything."""
    found = done.get(closed)
    if found is None:
        jaxpr = closed.jaxpr
        inside = {id(e): e for e in holders(closed)}
        if inside:
            eqns = [_shared(e, calls, done) if id(e) in inside else e for e in jaxpr.eqns]
            if any(map(is_not, eqns, jaxpr.eqns)):
                jaxpr = jaxpr.replace(eqns=eqns)
        found = done[closed] = closed.with_jaxpr(outline_jaxpr(jaxpr, 0))
    return found


def _shared(eqn: JaxprEqn, calls: Counter[ClosedJaxpr], done: dict[ClosedJaxpr, ClosedJaxpr]
            ) -> JaxprEqn:
    if eqn.params.get("inline") is ONE_KERNEL:
        return eqn
    params = map_jaxprs(
        eqn.params, lambda inner: _outlined(inner, calls, done), lambda jaxpr: jaxpr)
    if eqn.primitive.is_call and not eqn.params.get("inline"):
        called: ClosedJaxpr = eqn.params["jaxpr"]
        if calls[called] > 1 and len(called.eqns) >= MIN_BLOCK and not called.consts:
            return eqn.replace(primitive=outlined_call_p,
                               params={"jaxpr": params["jaxpr"], "name": params["name"]})
    return eqn if params is eqn.params else eqn.replace(params=params)


def outline_jaxpr(jaxpr: Jaxpr, depth: int) -> Jaxpr:
    """The jaxpr with its own repeats as functions; `depth` says inside how many others it is."""
    if len(jaxpr.eqns) < 2 * MIN_BLOCK or depth > MAX_DEPTH:
        return jaxpr
    ordered = by_result(jaxpr, 2 * MIN_BLOCK) if depth == 0 else jaxpr
    numbers = _number(ordered.eqns)
    if not _has_repeats(numbers):
        return jaxpr
    outlined = with_functions(ordered, numbers, depth)
    return jaxpr if outlined is ordered else outlined


def _number(eqns: Sequence[JaxprEqn]) -> list[int]:
    """An integer for each equation, equal where primitive, parameters, operand types and literals
    are: where all is equal but which values are operands."""
    known: dict[Any, int] = {}
    numbers: list[int] = []
    for eqn in eqns:
        types = [v.aval if type(v) is Var else _literal_key(v) for v in eqn.invars]
        primitive, params = eqn.primitive, eqn.params
        if not primitive.cached:  # its result types follow from more than operands and parameters
            types += [v.aval for v in eqn.outvars]
        key = (primitive, *types, *params.items()) if params else (primitive, *types)
        if primitive.exact and primitive.batch_axis is None:
            exact = params_key(params)
            key = (primitive, *types, id(eqn) if exact is None else exact)
        try:
            numbers.append(known.setdefault(key, len(known)))
        except TypeError:  # an unhashable parameter: like no other equation
            numbers.append(known.setdefault(id(eqn), len(known)))
    return numbers


def _has_repeats(numbers: Sequence[int]) -> bool:
    """Whether a run of so many numbers as make a block stands at two places."""
    width = 8
    runs = np.asarray(numbers, np.int64).tobytes()
    starts = range(0, len(runs) - MIN_BLOCK * width + 1, width)
    return len({runs[i:i + MIN_BLOCK * width] for i in starts}) < len(starts)


def _literal_key(literal: Any) -> Any:
    value = literal.val
    # Equal floats have equal bits, but for zeros; complex numbers have two parts to be zero.
    return (literal.aval, value) if value and type(value) is float else literal.key


# How many operations may be computed again for the blocks of a group, for each of the program.
LIMIT = 4
# How many equations less there must be for blocks that XLA would fuse to be functions all the same:
# those of a program that takes long to compile.
MIN_FUSED_SAVING = 1024


def without_cut_chains(groups: Sequence[Group], program: Program) -> list[Group]:
    """The groups but those for whose calls XLA would compute too much again."""
    depths = _depths(program.eqns, program.block)
    most = LIMIT * len(program.eqns)
    return [g for g in groups if sum([depths.get(v, 0) for v in set().union(*g.inputs)]) <= most]


def without_fused(groups: Sequence[Group], jaxpr: Jaxpr) -> list[Group]:
    """The groups but those whose blocks XLA fuses with what reads them."""
    fused = [g for g in groups if all([e.primitive.fuses for e in g.body])]
    if not fused or sum([(len(g.starts) - 1) * g.length for g in fused]) >= MIN_FUSED_SAVING:
        return list(groups)
    readers: dict[Any, list[JaxprEqn | None]] = {}  # None for the program's result
    for eqn in jaxpr.eqns:
        for v in set(eqn.invars):
            readers.setdefault(v, []).append(eqn)
    for v in jaxpr.outvars:
        readers.setdefault(v, []).append(None)
    left = {g for g in fused if _are_fused(jaxpr.eqns, g, readers)}
    return [g for g in groups if g not in left]


def _are_fused(eqns: Sequence[JaxprEqn], group: Group,
               readers: Mapping[Any, Sequence[JaxprEqn | None]]) -> bool:
    """Whether whatever leaves the blocks is read once, and by fused operations. Results of the
    program are stored anyway: blocks that have no other reader are functions."""
    leaving: set[JaxprEqn | None] = set()
    for start in group.starts:
        block = set(eqns[start:start + group.length])
        for v in group.results(eqns, start):
            reading = readers.get(v, ())
            if not block.issuperset(reading):
                if len(reading) > 1:
                    return False
                leaving.update(reading)
    others = [e for e in leaving if e is not None]
    return bool(others) and all([e.primitive.fuses for e in others])


def _depths(eqns: Sequence[JaxprEqn], block: Sequence[int]) -> dict[Any, int]:
    """For what is made by fused operations outside of blocks the length of the chain of these that
    ends there."""
    depths: dict[Any, int] = {}
    for eqn, start in zip(eqns, block, strict=True):
        if start < 0 and eqn.primitive.cost is not None:
            before = [depths.get(v, 0) for v in eqn.invars if type(v) is not Literal]
            depths.update(dict.fromkeys(eqn.outvars, 1 + max(before, default=0)))
    return depths


# How many distances are looked at, the most frequent ones.
MAX_DISTANCES = 32


class Repeat(Record):
    """A run of equations that holds `copies` adjacent blocks of `length` equations."""

    start: int
    length: int
    copies: int
    end: int


class Repeats:
    """The repeats of a sequence of numbers, the most saving first."""

    __slots__ = ("_fresh", "_queue", "_seen", "numbers")

    def __init__(self, numbers: np.ndarray) -> None:
        self.numbers = numbers.copy()
        self._fresh = -1
        self._seen: set[int] = set()
        self._queue: dict[int, int] = {}  # distance -> what its best repeat once saved
        self._search()

    def best(self) -> Repeat | None:
        """The repeat that saves most."""
        queue = self._queue
        while queue or self._search():
            distance, bound = max(queue.items(), key=lambda item: (item[1], -item[0]))
            saving, repeat = _best_at(self.numbers, distance)
            if repeat is None:
                del queue[distance]
            elif saving == bound:
                return repeat
            else:
                queue[distance] = saving
        return None

    def take(self, start: int, end: int) -> None:
        """Let the equations from `start` to before `end` be like no others."""
        n = end - start
        self.numbers[start:end] = np.arange(self._fresh, self._fresh - n, -1)
        self._fresh -= n

    def _search(self) -> bool:
        """Queue the distances that are new; whether there are any."""
        new = [d for d in _distances(self.numbers) if d not in self._seen]
        self._seen.update(new)
        for distance in new:
            saving, repeat = _best_at(self.numbers, distance)
            if repeat is not None:
                self._queue[distance] = saving
        return bool(self._queue)


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


def _best_at(numbers: np.ndarray, distance: int) -> tuple[int, Repeat | None]:
    """What the best repeat at a distance saves, and the repeat."""
    n = len(numbers) - distance
    breaks = np.flatnonzero(numbers[distance:] != numbers[:n])
    lengths = np.diff(breaks, prepend=-1, append=n) - 1
    long = np.flatnonzero(lengths >= MIN_BLOCK)
    if not long.size:
        return 0, None
    lengths = lengths[long]
    savings = np.where(lengths >= distance, lengths - lengths % distance, lengths)
    best = int(np.argmax(savings))
    length, at = int(lengths[best]), int(long[best])
    start = int(breaks[at - 1]) + 1 if at else 0
    if length < distance:
        return length, Repeat(start, length, 1, start + length)
    copies = length // distance + 1
    return int(savings[best]), Repeat(start, distance, copies, start + length + distance)


def occurrences(numbers: np.ndarray, pattern: np.ndarray) -> list[int]:
    """Where `pattern` stands in `numbers`, without overlaps."""
    n, k = len(numbers), len(pattern)
    starts = np.arange(max(0, n - k + 1))
    for i in (0, k // 4, k // 2, k - 1):  # few positions are left to compare in full
        starts = starts[numbers[starts + i] == pattern[i]]
    found: list[int] = []
    for s in starts.tolist():
        if (not found or s >= found[-1] + k) and np.array_equal(numbers[s:s + k], pattern):
            found.append(s)
    return found


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
        name = _name(eqns[group.starts[0]:group.starts[0] + group.length])
        for start, inputs in zip(group.starts, group.inputs, strict=True):
            results = group.results(eqns, start)
            calls[start] = group.length, JaxprEqn(
                outlined_call_p, inputs, [results[i] for i in outputs],
                {"jaxpr": closed, "name": name}, closed.effects, eqns[start].source_info,
            )
    out: list[JaxprEqn] = []
    i = 0
    while i < len(eqns):
        length, call = calls.get(i, (1, eqns[i]))
        out.append(call)
        i += length
    return out


_SAMPLES = 16  # equations of a block that are asked for their functions


def _name(eqns: Sequence[JaxprEqn]) -> str:
    """What the user calls the block: the innermost function in which all of it was made; of a
    method that is called as an object is, the class."""
    stacks = [list(user_code(e.source_info.traceback))[::-1]
              for e in eqns[::max(len(eqns) // _SAMPLES, 1)]]
    name = "block"
    for frames in zip(*[s for s in stacks if s], strict=False):
        codes = {code for code, _ in frames}
        if len(codes) > 1:
            break
        outer, _, inner = codes.pop().co_qualname.rpartition(".")
        inner = outer.rpartition(".")[2] if inner == "__call__" else inner
        name = inner if inner.isidentifier() else name
        if len(set(frames)) > 1:  # from here on each was called at another place
            break
    return name


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


def by_result(jaxpr: Jaxpr, at_least: int) -> Jaxpr:
    """The jaxpr with each run of `at_least` fusible equations ordered by the results that they are
    for, where its values then live half as long or less; what is for several results stands before
    the first of these."""
    eqns = list(jaxpr.eqns)
    barriers = [i for i, e in enumerate(eqns) if e.primitive.cost is None]
    for before, end in pairwise([-1, *barriers, len(eqns)]):
        if end - before > at_least:
            run = eqns[before + 1:end]
            ordered = _ordered(run)
            if 2 * _lifetimes(ordered) <= _lifetimes(run):
                eqns[before + 1:end] = ordered
    return jaxpr.replace(eqns=eqns) if any(map(is_not, eqns, jaxpr.eqns)) else jaxpr


def _ordered(run: list[JaxprEqn]) -> list[JaxprEqn]:
    """A result is made by an equation whose values no other one of the run reads. What an equation
    reads is for the same result or for several, of which none comes before the equation's, so in
    the order by results, too, values are made before they are read."""
    first: dict[Atom, int] = {}  # by value, the place of the first result that it is for
    shared: set[Atom] = set()  # values for several results
    order: list[tuple[int, bool]] = [(0, False)] * len(run)
    for i in range(len(run) - 1, -1, -1):
        eqn = run[i]
        results = {first[v] for v in eqn.outvars if v in first}
        result = min(results, default=i)
        for_several = len(results) > 1 or not shared.isdisjoint(eqn.outvars)
        order[i] = result, not for_several
        for v in eqn.invars:
            if type(v) is not Literal:
                known = first.setdefault(v, result)
                if for_several or known != result:
                    shared.add(v)
                    first[v] = min(known, result)
    return [run[i] for i in sorted(range(len(run)), key=order.__getitem__)]


def _lifetimes(run: list[JaxprEqn]) -> int:
    """Over how many equations values wait to be read for the last time in the run, in all."""
    made = {v: i for i, e in enumerate(run) for v in e.outvars}
    last = {v: i for i, e in enumerate(run) for v in e.invars if v in made}
    return sum([i - made[v] for v, i in last.items()])
