"""How programs for one CPU are written, for what XLA's compiler does not see by itself.

Long formulas on short rows become formulas on one row; what stencils read is computed once; what
loops carry is read before it is updated in place. Within a budget of memory weights are updated as
soon as they have been read.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence, Set
from operator import is_
from typing import Any

import numpy as np

from lowering.rules import rules_for
from pyjx import configuration
from pyjx.core import dtypes
from pyjx.core.arithmetic import TOGETHER, transcendental
from pyjx.core.avals import ShapedArray, taken_over
from pyjx.core.derived import derived_structure
from pyjx.core.effects import no_effects
from pyjx.core.evaluation import holders, holders_in, map_jaxprs, replaced, variables
from pyjx.core.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Var
from pyjx.core.options import ONE_KERNEL
from pyjx.core.passes.dce import dce_jaxpr
from pyjx.core.places import HERE
from pyjx.core.primitive import CHEAP, find_primitive
from pyjx.engine.primitives import barrier_eqn, optimization_barrier_p
from pyjx.jaxlib_api import CPU_BARRIER_PASS


def for_one_cpu(closed: ClosedJaxpr) -> tuple[ClosedJaxpr, bool]:
    """The program, which has been decomposed, as it is written for one CPU, and whether it has
    barriers that count in loops."""
    if not configuration.small_kernels.value:
        return closed, False
    closed = in_one_row(closed)
    parted = with_stencils_kept(closed)
    if holders(parted):
        parted = with_reads_first(parted)
    return parted, parted is not closed


def _open(jaxpr: Jaxpr) -> list[JaxprEqn]:
    """The equations that hold programs, but for what is one kernel, which has no barriers."""
    return [e for e in holders_in(jaxpr) if not _is_kernel(e)]


def _is_kernel(eqn: JaxprEqn) -> bool:
    return eqn.params.get("inline") is ONE_KERNEL


# -- formulas on short rows ------------------------------------------------------------------------

# XLA writes a loop for each axis, and one over a few elements gets no vector instructions, so that
# rows of five take up to twenty times as long as one row of as many elements. A sum of their
# products takes twice as long, and each of several five times.
SHORT, MANY = 16, 4096  # elements of a row, and of all
LONG = 28  # operations for each result that is read elsewhere
_FORMULAS = ("digamma", "bessel_i1e", "erf_inv", "threefry2x32")  # each is long alone
# Before 0.12 formulas with these functions, which have vector instructions in rows too, take up to
# twice as long in one row; all others half to nine tenths of the time.
_BY_ROWS = frozenset([] if CPU_BARRIER_PASS is None else
                     ["log1p", "sqrt", "atan", "asinh", "acosh", "atanh"])


@derived_structure
def in_one_row(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program, and those nested in it, with each long run of arithmetic on arrays of one shape
    of short rows in one row; the same one if there is none. It has been decomposed."""
    return closed.with_jaxpr(_rewritten(closed.jaxpr))


def _rewritten(jaxpr: Jaxpr) -> Jaxpr:
    short = {a for a in {v.aval for e in jaxpr.eqns for v in e.outvars} if _is_short(a)}
    live = dce_jaxpr(jaxpr, (True,) * len(jaxpr.outvars)) if short else jaxpr
    inside = {id(e): map_jaxprs(e.params, in_one_row, _rewritten) for e in _open(live)}
    eqns = [e.replace(params=inside[id(e)]) if inside.get(id(e), e.params) is not e.params else e
            for e in live.eqns]
    flat = _with_flat_runs(eqns, live.outvars, short) if short else eqns
    return jaxpr if flat is eqns and all(map(is_, eqns, jaxpr.eqns)) else live.replace(eqns=flat)


def _with_flat_runs(eqns: Sequence[JaxprEqn], outvars: Sequence[Any], short: Set[Any]
                    ) -> Sequence[JaxprEqn]:
    shapes = [_shape(e) if e.outvars and (
        e.invars[0] if _is_of_all(e) else e.outvars[0]).aval in short else None for e in eqns]
    apart = {v for e in eqns for v in (
        e.outvars if e.primitive.name == "broadcast_in_dim" else
        e.invars if e.primitive.rearranges else ()) if type(v) is Var}
    last = {v: i for i, e in enumerate(eqns) for v in e.invars if type(v) is Var}
    results = {v for v in outvars if type(v) is Var}
    last.update((v, len(eqns)) for v in results)
    done: list[JaxprEqn] = []
    run: list[JaxprEqn] = []
    behind: list[JaxprEqn] = []  # the run, as they read sums that it has
    made: dict[Any, None] = {}
    late: dict[Any, None] = {}  # what `behind` makes
    of: Any = None

    def ended(at: int) -> list[JaxprEqn]:
        read = [v for v in made if v.aval.shape and last.get(v, -1) >= at]
        return [*_flat(run, read, apart, results), *behind]

    for i, (eqn, shape) in enumerate(zip(eqns, shapes, strict=True)):
        read = [v for v in eqn.invars if type(v) is Var and (v in made or v in late)]
        if shape != of or any([v in late for v in read]) if shape else eqn.effects or any(
                [v in made and v.aval.shape for v in read]):
            done += ended(i)
            run, behind, made, late, read = [], [], {}, {}, []
        if shape:
            of = shape
            run.append(eqn)
            made.update(dict.fromkeys(eqn.outvars))
        elif read:
            behind.append(eqn)
            late.update(dict.fromkeys(eqn.outvars))
        else:  # it reads nothing of the run, and may stand before it
            done.append(eqn)
    return done + ended(len(eqns))


def _is_short(aval: Any) -> bool:
    return type(aval) is ShapedArray and aval.ndim > 1 and aval.place is HERE and all(
        [type(n) is int for n in aval.shape]) and aval.shape[-1] < SHORT and aval.size >= MANY


def _shape(eqn: JaxprEqn) -> Any:
    """The shape of all operands but scalars, and of the result, of arithmetic, or what it is the
    sum of, or the like."""
    if _is_of_all(eqn):
        return eqn.invars[0].aval.shape
    shape = eqn.outvars[0].aval.shape
    rule, name = rules_for("cpu")[eqn.primitive.name], eqn.primitive.name
    fits = {(), shape} if name in _FORMULAS or (rule is not None and rule.elementwise) else \
        {()} if name == "broadcast_in_dim" else set()
    shapes = [v.aval.shape for v in eqn.invars]  # none of `iota`, whose axis a row has not
    return shape if shapes and fits.issuperset(shapes) else None


def _is_of_all(eqn: JaxprEqn) -> bool:
    """Whether it is a sum or an extremum of all elements, floats, for which XLA has a kernel."""
    return eqn.primitive.name.startswith("reduce_") and eqn.primitive.name != "reduce_prod" and \
        len(eqn.params.get("axes", ())) == getattr(aval := eqn.invars[0].aval, "ndim", 0) > 0 and \
        dtypes.issubdtype(aval.dtype, np.floating)


def _flat(run: list[JaxprEqn], outs: list[Var], apart: Set[Var], results: Set[Var]
          ) -> list[JaxprEqn]:
    """A run of equations in one row, if it is long for so many results that are read elsewhere; or
    has functions, or none is read, only sums of all elements, unless a value in `apart` would be
    kept in memory for that, which XLA makes anew for each reader, or in parts. Where the results
    are those of the program, XLA may write them over what is yet to be summed, and slowly.

    Barriers keep XLA from moving the reshapes through the run, where they would cancel."""
    made = {v for e in run for v in e.outvars if v.aval.shape}
    given = list(dict.fromkeys([v for e in run for v in e.invars
                                if type(v) is Var and v.aval.shape and v not in made]))
    fits = apart.isdisjoint([*given, *outs])
    function = transcendental if fits and _BY_ROWS.isdisjoint(
        [e.primitive.name for e in run]) else None
    cost = sum([LONG * len(e.outvars) if e.primitive.name in _FORMULAS or (
        function and e.primitive.arithmetic is function) or (
        fits and results >= set(outs) and _is_of_all(e) and e.invars[0] in given)
        else 1 for e in run])
    if cost < LONG * len(outs) if outs else not made or not fits:
        return run
    reshape_p = find_primitive("reshape", "pyjx.lax.shapes")
    row = (math.prod(_shape(run[0])),)
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
                        outvars=[flat.get(v, v) for v in e.outvars],
                        params={**e.params, "shape": row} if "shape" in e.params else
                        {**e.params, "axes": (0,)} if "axes" in e.params else e.params)
              for e in run], *barred([flat[v] for v in outs], behind), *reshaped(behind, outs)]


# -- values that stencils read ---------------------------------------------------------------------

# Operations that are done again for an element of a value, from which on it is kept. A chain of
# arithmetic that five slices read, of 512 x 512 numbers, takes 1.18 of the time kept where 16 are
# done again, 0.81 where 24 are, and 0.48 where 48 are.
AGAIN = 20
# And for the whole value; more where no loop is one kernel then.
AGAIN_IN_ALL = 32 if CPU_BARRIER_PASS is None else 8000
# To take an element from one of several values, as where arrays are rolled, is a branch.
_BRANCH = 9
_TERMS = 64  # that are told apart

Work = dict[int, float]  # operations for an element, by equation
# By what reads elements from elsewhere, how many; or in a call, or many, how often.
Readers = dict[Any, float]
_ITSELF = 0  # what reads the element at its own place


@derived_structure
def with_stencils_kept(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program with a barrier behind each result of arithmetic that is read in several places;
    the same program if there is none.

    XLA's CPU compiler makes one loop of such a result and of what reads it, and computes it for
    each of the places, and what it is made of for each of its own: the fourth slope of a method of
    Runge and Kutta on a grid takes the first one 64 times for an element. Divisions and functions
    are not computed again.
    """
    return closed.with_jaxpr(_stencils_kept(closed.jaxpr))


def _stencils_kept(jaxpr: Jaxpr) -> Jaxpr:
    params = {id(e): map_jaxprs(e.params, with_stencils_kept, _stencils_kept) for e in _open(jaxpr)}
    readers = _readers(jaxpr) if any([e.primitive.rearranges or e.primitive.is_call
                                    for e in jaxpr.eqns]) else {}
    work, behind = dict[Any, Work](), dict[Any, Any]()
    eqns = []
    for eqn in jaxpr.eqns:
        done = _work(eqn, work) if readers else {}
        new = params.get(id(eqn), eqn.params)
        if new is not eqn.params or not behind.keys().isdisjoint(variables(eqn.invars)):
            eqn = eqn.replace(params=new, invars=replaced(eqn.invars, behind))
        eqns.append(eqn)
        for v in eqn.outvars if done else ():
            again = (_reads(v, readers.get(v, {})) - 1) * sum(done.values())
            if again < AGAIN or again * _size(v) < AGAIN_IN_ALL:
                work[v] = done
            else:
                eqns.append(barrier_eqn([v], behind, eqn.source_info))
    return jaxpr if all(map(is_, eqns, jaxpr.eqns)) else \
        jaxpr.replace(eqns=eqns, outvars=replaced(jaxpr.outvars, behind))


def _only_moves(eqn: JaxprEqn) -> bool:
    """Whether an element of the result is one of the operand, read in no other place."""
    return eqn.primitive.moves and eqn.primitive.linear is TOGETHER and not eqn.primitive.rearranges


def _work(eqn: JaxprEqn, done: Mapping[Any, Work]) -> Work:
    """What is done for an element of a result where nothing is kept."""
    given = [done[v] for v in variables(eqn.invars) if v in done]
    if eqn.primitive.is_call and not _is_kernel(eqn):
        made, reads = _inside(eqn.params["jaxpr"])
        return {id(eqn): made + sum([n * sum(done[v].values()) for v, n in zip(
            eqn.invars, reads, strict=True) if type(v) is Var and v in done])}
    if eqn.primitive.rearranges or eqn.primitive.in_place:
        parts = [v for v in variables(eqn.invars) if v.aval.shape]
        return {id(eqn): max([sum(w.values()) for w in given], default=0) + (
            _BRANCH if len(parts) > 1 else 1)}
    moves = _only_moves(eqn)
    if not moves and eqn.primitive.cost != CHEAP:
        return {}
    own: Work = {} if moves else {id(eqn): 1}
    work = {k: n for w in (*given, own) for k, n in w.items()}
    return work if len(work) < _TERMS else {id(eqn): sum(work.values())}


def _readers(jaxpr: Jaxpr) -> dict[Any, Readers]:
    """From where values are read: by the last of the operations that take elements from elsewhere,
    before one computes with them."""
    readers: dict[Any, Readers] = {v: {_ITSELF: 1} for v in variables(jaxpr.outvars)}
    for eqn in reversed(jaxpr.eqns):
        read = {k: n for v in eqn.outvars for k, n in readers.get(v, {}).items()}
        if eqn.primitive.rearranges:
            if read.pop(_ITSELF, 0):
                read[id(eqn)] = max(map(_size, eqn.outvars))
        elif not _only_moves(eqn):
            read = {_ITSELF: 1}
        inside = _inside(eqn.params["jaxpr"])[1] if eqn.primitive.is_call and not _is_kernel(
            eqn) else ()
        for i, x in enumerate(eqn.invars):
            if type(x) is Var:
                found = readers.setdefault(x, {})
                found.update({(id(eqn), i): inside[i]} if inside else read)
                if len(found) > _TERMS:
                    readers[x] = {(id(eqn), -1): _reads(x, found)}
    return readers


def _reads(v: Var, readers: Readers) -> float:
    """In how many places a value is read for an element of a result; a part of it counts less."""
    return sum([n if k == _ITSELF or type(k) is tuple else min(1.0, n / _size(v))
                for k, n in readers.items()])


def _size(v: Var) -> int:
    """The number of elements; 1 where there are none, or nobody knows."""
    size = getattr(v.aval, "size", 1)
    return size if type(size) is int and size else 1


@derived_structure
def _inside(closed: ClosedJaxpr) -> tuple[float, list[float]]:
    """What a call does for an element of a result, and in how many places it reads each operand."""
    work = dict[Any, Work]()
    for eqn in closed.jaxpr.eqns:
        work.update(dict.fromkeys(eqn.outvars, _work(eqn, work)))
    readers = _readers(closed.jaxpr)
    return (max([sum(work[v].values()) for v in variables(closed.jaxpr.outvars) if v in work],
                default=0), [_reads(v, readers.get(v, {})) for v in closed.jaxpr.invars])


# -- reads before updates --------------------------------------------------------------------------


@derived_structure
def with_reads_first(closed: ClosedJaxpr, repeated: bool = False) -> ClosedJaxpr:
    """The program with the reads of what a loop carries before its update in place, and a barrier
    between them; `repeated` says that it is the body of one.

    XLA's CPU compiler computes a read again wherever its value is wanted. Where that is behind the
    update, it copies the carry, whole, in each iteration.
    """
    return closed.with_jaxpr(_reads_first(closed.jaxpr, repeated))


def _reads_first(jaxpr: Jaxpr, repeated: bool) -> Jaxpr:
    held = _open(jaxpr)
    eqns = [_with_reads_first_inside(e, repeated) for e in held]
    inside = {id(old): new for old, new in zip(held, eqns, strict=True) if new is not old}
    if inside:
        jaxpr = jaxpr.replace(eqns=[inside.get(id(e), e) for e in jaxpr.eqns])
    if repeated:
        updates = [e for e in jaxpr.eqns if e.primitive.in_place]
        tables = {*jaxpr.invars, *[v for e in updates for v in e.outvars]}
        read = {v for e in jaxpr.eqns if e.primitive.accumulate is not None for v in e.invars}
        for carried in [v for v in variables([e.invars[0] for e in updates])
                        if v in tables and v in read and _size(v) >= _COPIED][:_CARRIES]:
            jaxpr = _with_barrier(jaxpr, carried)
    return jaxpr


def _with_reads_first_inside(eqn: JaxprEqn, repeated: bool) -> JaxprEqn:
    inside = eqn.primitive.holder.loops or (repeated and eqn.primitive.is_call)
    params = map_jaxprs(eqn.params, lambda closed: with_reads_first(closed, inside),
                        lambda jaxpr: _reads_first(jaxpr, inside))
    return eqn if params is eqn.params else eqn.replace(params=params)


# Elements from which on a copy counts beside a barrier, for which older versions of XLA have to be
# told that no loop is one kernel.
_COPIED = 256 if CPU_BARRIER_PASS is None else 1 << 14


_CARRIES = 32  # that are parted from their updates, each by a walk over the program


def _with_barrier(jaxpr: Jaxpr, carried: Var) -> Jaxpr:
    """The program with a barrier between the reads of one value and its update, if both are all
    that becomes of it and no read needs what the update makes."""
    users = [e for e in jaxpr.eqns if carried in e.invars]
    reads = [e for e in users if e.primitive.accumulate is not None]
    updates = [e for e in users if e.primitive.in_place]
    held = [v for e in reads for v in e.outvars]
    if (len(updates) != 1 or not reads or len(users) > len(reads) + 1 or carried in jaxpr.outvars
            or 4 * sum(map(_size, held)) > _size(carried)):
        return jaxpr
    needed: set[Any] = set(held)
    first: list[JaxprEqn] = []
    for eqn in reversed(jaxpr.eqns):
        if not needed.isdisjoint(eqn.outvars):
            first.append(eqn)
            needed.update(variables(eqn.invars))
    if updates[0] in first or any([e.effects for e in first]):
        return jaxpr
    behind: dict[Any, Var] = {}
    barrier = barrier_eqn([carried, *held], behind, updates[0].source_info)
    before = set(map(id, first))
    rest = [e.replace(invars=replaced(e.invars, behind)) for e in jaxpr.eqns if id(e) not in before]
    return jaxpr.replace(eqns=[*reversed(first), barrier, *rest],
                         outvars=replaced(jaxpr.outvars, behind))


def with_updates_at_once(jaxpr: Jaxpr, donated: Sequence[bool]) -> Jaxpr:
    """The program in which donated arguments become results as soon as they have been read: what
    else their last read is for waits until then.

    Otherwise gradients of all weights stay until the end, and weights that a result may overwrite
    while the gradient of a layer's input has yet to read them are copied.
    """
    pairs = taken_over(jaxpr.in_avals, jaxpr.out_avals, donated) if any(donated) else {}
    place = {jaxpr.invars[i]: jaxpr.outvars[k] for i, k in pairs.items()
             if _size(jaxpr.invars[i]) >= _COPIED}
    late = _only_for(jaxpr, {*place.values()})
    of: dict[Any, set[Any]] = {v: {v} for v in place}  # arguments that are read where a value is
    last: dict[Any, Any] = {}  # what is made of an argument last
    for i, eqn in enumerate(jaxpr.eqns):
        args = set().union(*[of.get(x, ()) for x in variables(eqn.invars)])
        if i not in late and eqn.primitive.of_elements:
            of[eqn.outvars[0]] = args
        elif i not in late and eqn.outvars:
            last.update(dict.fromkeys(args, eqn.outvars[0]))
    made = {r: last[v] for v, r in place.items() if v in last}
    if not made:
        return jaxpr
    at = {v: i for i, e in enumerate(jaxpr.eqns) if i not in late for v in e.outvars}
    order = [(i, False, i) for i in range(len(jaxpr.eqns)) if i not in late]
    for i in sorted(late):
        (r,), read = jaxpr.eqns[i].outvars, variables(jaxpr.eqns[i].invars)
        before = [*read, *[last[v] for v in read if v in last], made.get(r)]
        at[r] = max([at.get(x, -1) for x in before], default=-1)
        order.append((at[r], True, i))
    behind: dict[Any, Any] = {}
    eqns: list[JaxprEqn] = []
    for now, is_late, i in sorted(order):
        eqn = jaxpr.eqns[i]
        if is_late:
            eqns += [barrier_eqn([v, last[v]], behind, eqn.source_info)
                     for v in variables(eqn.invars) if v in last]
        eqns.append(eqn.replace(invars=replaced(eqn.invars, behind)))
        # A result that is read again stays where it is, perhaps before the argument's last read.
        eqns += [barrier_eqn([r, made[r]], behind, eqn.source_info) for r in eqn.outvars
                 if r in made and at[made[r]] < (now + is_late)]
    return jaxpr.replace(eqns=eqns, outvars=replaced(jaxpr.outvars, behind))


def _only_for(jaxpr: Jaxpr, results: Set[Any]) -> set[int]:
    """The equations that are parts of fusions, and do nothing but lead to some results."""
    found: set[int] = set()
    elsewhere: set[Any] = {*jaxpr.outvars} - results
    for i in reversed(range(len(jaxpr.eqns))):
        eqn = jaxpr.eqns[i]
        if eqn.primitive.of_elements and eqn.outvars[0] not in elsewhere:
            found.add(i)
        else:
            elsewhere.update(variables(eqn.invars))
    return found
