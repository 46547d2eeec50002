"""Which values a backward pass keeps and which it computes again: programs cut by a policy.

A policy `(primitive, *avals, **params) -> bool`, or one of the answers below, is asked of each
equation in turn; of the results that it allows to save those are saved that a backward pass reads.
What is not saved is computed again from what is, and from the inputs, which are always there. Where
an equation holds a program its holder's `cut` goes on inside with the same policy; `cut_jaxpr` is
what such rules are made of. A policy within a budget (`Within`) is asked of the whole program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyjx.configuration import Budget, rematerializing
from pyjx.core.derived import derived
from pyjx.core.effects import join_effects, keeps_alive, unrepeatable
from pyjx.core.evaluation import jaxpr_as_fun
from pyjx.core.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Var
from pyjx.core.name_stack import named_scope
from pyjx.core.passes.dce import dce_jaxpr, with_used
from pyjx.core.places import space_called
from pyjx.core.records import Record
from pyjx.core.trace import trace_to_jaxpr
from pyjx.engine.moves import moved_eqn
from pyjx.engine.primitives import needs_rounding, rounded_eqn
from pyjx.engine.subjaxprs import LinearizedJaxpr, linearize_jaxpr, selected, tangent_avals
from pyjx.engine.types import Flags

Policy = Callable[..., Any]


class _Answer:
    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name

    def __reduce__(self) -> str:
        return self._name


Saveable = _Answer("Saveable")
Recompute = _Answer("Recompute")


class Offloadable(Record):
    """A policy's answer: keep the value in memory of the kind `dst`, and move it back to that of
    the kind `src` before it is read."""

    src: str
    dst: str


def kept_by(policy: Policy | Chosen, eqn: JaxprEqn) -> bool | Offloadable:
    """Whether, or where, the policy has the results of an equation kept.

    Raises:
      TypeError: the policy gives none of the answers there are.
    """
    answer = policy(eqn.primitive, *[v.aval for v in eqn.invars], **eqn.params)
    if isinstance(answer, Offloadable):
        return answer
    if answer is Saveable:
        return True
    if answer is Recompute or answer is None:
        return False
    if isinstance(answer, (bool, int)):
        return bool(answer)
    raise TypeError("Value returned by a remat policy should be a bool or "
                    "`ad_checkpoint.Recompute`, `ad_checkpoint.Saveable` or "
                    f"`ad_checkpoint.Offloadable(...)`. Got {answer} of type {type(answer)}.")


class Chosen(Record):
    """A policy that knows which values of a program are saved, of those that another one allows:
    `stays(jaxpr, wanted)`, where the backward pass reads `wanted`."""

    policy: Policy
    stays: Callable[[Jaxpr, Sequence[Atom]], set[Any]]

    def __call__(self, *avals: Any, **params: Any) -> Any:
        return self.policy(*avals, **params)


class Within(Record):
    """A policy that saves of what another one allows as much as fits into a budget.

    Attributes:
      budget: as `checked_budget` gives it.
      policy: what may be saved.
      choose: `(closed, n, within) -> (closed, policy)` for a program whose results from the n-th
        one on are what a backward pass reads, and for that as it is given back.
    """

    budget: Budget
    policy: Policy
    choose: Callable[[ClosedJaxpr, int, Within], tuple[ClosedJaxpr, Chosen]]


class CutEqn(Record):
    """What a holder's `cut` gives: the equation, with saved values as further results; these; and
    the equation that computes the needed results that are not saved again, from them and operands.
    """

    known: JaxprEqn
    saved: list[Var]
    again: JaxprEqn | None


class CutJaxpr(Record):
    """A program in two: `known` maps inputs to (results, saved values), `again` maps (saved values,
    forwarded inputs) to the results that are needed. `forwarded` says which inputs these are."""

    known: ClosedJaxpr
    again: ClosedJaxpr
    forwarded: tuple[int, ...]


@derived
def cut_jaxpr(closed: ClosedJaxpr, policy: Policy | Chosen, results: Flags, needed: Flags
              ) -> CutJaxpr:
    """Cut a program by a policy.

    Args:
      closed: the program.
      policy: which values are saved.
      results: which of its results the part that runs first has.
      needed: which of them are computed again, from as little as the policy has saved.
    """
    jaxpr = closed.jaxpr
    wanted = selected(jaxpr.outvars, needed)
    live: set[Atom] = set(wanted)
    known: list[JaxprEqn] = []
    again: list[JaxprEqn] = []
    saved: list[Var] = []
    keep = [e.primitive.holder.cut is None and kept_by(policy, e) for e in jaxpr.eqns]
    stays = policy.stays(jaxpr, wanted) if isinstance(policy, Chosen) else None
    for eqn, kept in zip(reversed(jaxpr.eqns), reversed(keep), strict=True):
        used = tuple([v in live for v in eqn.outvars])
        if stays is not None and any(used) and kept in (True, False):
            read = selected(eqn.outvars, used)
            if eqn.primitive.holder.cut is None:
                kept = stays.issuperset(read)
            else:  # of what stays nothing is computed again inside
                saved += [v for v in reversed(read) if v in stays]
                used = tuple([v in live and v not in stays for v in eqn.outvars])
                kept = not any(used)
        if not any(used) and (kept or not _repeated(eqn)):
            known.append(eqn)
        elif eqn.primitive.holder.cut is not None:
            parts: CutEqn = eqn.primitive.holder.cut(eqn, policy, used)
            known.append(parts.known)
            saved += reversed(parts.saved)
            if parts.again is not None:
                again.append(parts.again)
                live.update(parts.again.invars)
        elif isinstance(kept, Offloadable):
            for v in selected(eqn.outvars, used)[::-1]:
                there = Var(v.aval.placed(memory_space=space_called(kept.dst)))
                known.append(moved_eqn(v, there, kept.dst, eqn.source_info))
                again.append(moved_eqn(there, v, kept.src, eqn.source_info))
                saved.append(there)
            known.append(eqn)
        else:
            known.append(eqn)
            if kept:
                saved += selected(eqn.outvars, used)[::-1]
            else:
                again.append(eqn)
                live.update(eqn.invars)
    saved.reverse()
    forwarded = tuple([i for i, v in enumerate(jaxpr.invars) if v in live])
    inputs = [*saved, *[jaxpr.invars[i] for i in forwarded]]
    first = _program(closed, jaxpr.invars, known[::-1], [*selected(jaxpr.outvars, results), *saved])
    return CutJaxpr(_rounding(first, saved), _program(closed, inputs, again[::-1], wanted),
                    forwarded)


def results_of(known: ClosedJaxpr, n: int) -> tuple[Flags, Flags]:
    """Which results of a program are its own, the first n, and which are read by a backward pass.
    """
    results = tuple([i < n for i in range(len(known.outvars))])
    return results, tuple([not flag for flag in results])


def _rounding(closed: ClosedJaxpr, saved: Sequence[Var]) -> ClosedJaxpr:
    """A program in which values that are saved go on as they are saved: rounded to their types."""
    narrow = set(filter(needs_rounding, saved))
    if not narrow:
        return closed
    narrow.intersection_update([x for e in closed.eqns for x in e.invars])
    eqns: list[JaxprEqn] = []
    for eqn in closed.eqns:
        exact = {v: Var(v.aval) for v in eqn.outvars if v in narrow}
        eqns.append(eqn.replace(outvars=[exact.get(v, v) for v in eqn.outvars]) if exact else eqn)
        eqns += [rounded_eqn(e, v, eqn.source_info) for v, e in exact.items()]
    return ClosedJaxpr(closed.jaxpr.replace(eqns=eqns), closed.consts)


def _repeated(eqn: JaxprEqn) -> bool:
    """Whether an equation has effects, which a backward pass then has again."""
    if not (eqn.effects and keeps_alive(eqn.effects)):
        return False
    refused = unrepeatable(eqn.effects)
    if refused:
        raise NotImplementedError("Effects not supported in partial-eval of `checkpoint`/`remat`: "
                                  f"{refused}")
    return True


def results_saved(cut: CutJaxpr, n_saved: int, results: Sequence[Var]) -> dict[int, Var]:
    """Which of the saved values, by position, are results as they are: such a result is kept in
    its place, and not computed again. `results` are those that `cut.again` has last."""
    place = dict(zip(cut.again.invars[:n_saved], range(n_saved), strict=True))
    found: dict[int, Var] = {}
    for v, result in zip(cut.again.outvars[len(cut.again.outvars) - len(results):], results,
                         strict=True):
        if v in place:
            found.setdefault(place[v], result)  # type: ignore[index]
    return found


def _program(closed: ClosedJaxpr, invars: Sequence[Var], eqns: Sequence[JaxprEqn],
             outvars: Sequence[Atom]) -> ClosedJaxpr:
    """A part of a program, without what it does not need."""
    part = Jaxpr(closed.constvars, invars, outvars, eqns, join_effects(eqns), closed.debug_info)
    return with_used(dce_jaxpr(part, (True,) * len(outvars)), closed.consts)


@derived
def linearize_saving(closed: ClosedJaxpr, nonzero: Flags, policy: Policy | Within
                     ) -> LinearizedJaxpr:
    """As `linearize_jaxpr`, with the residuals that a policy allows: the linear part computes what
    else it reads again."""
    with rematerializing(True):
        parts = linearize_jaxpr(closed, nonzero)
    n, known = len(closed.outvars), parts.known
    chosen: Policy | Chosen
    known, chosen = policy.choose(known, n, policy) if isinstance(policy, Within) else (
        known, policy)
    cut = cut_jaxpr(known, chosen, *results_of(known, n))
    forwarded = tuple(sorted({*cut.forwarded, *parts.forwarded}))
    avals = closed.in_avals
    saved_avals = [v.aval for v in cut.known.outvars[n:]]

    def linear(*args: Any) -> list[Any]:
        saved, rest = args[:len(saved_avals)], args[len(saved_avals):]
        primals = dict(zip(forwarded, rest, strict=False))
        with named_scope("rematted_computation"):
            residuals = jaxpr_as_fun(cut.again)(*saved, *[primals[i] for i in cut.forwarded])
        return jaxpr_as_fun(parts.linear)(
            *residuals, *[primals[i] for i in parts.forwarded], *rest[len(forwarded):])

    in_avals = [*saved_avals, *[avals[i] for i in forwarded], *tangent_avals(avals, nonzero)]
    return LinearizedJaxpr(cut.known, trace_to_jaxpr(linear, in_avals, closed.debug_info),
                           forwarded, parts.nonzero)
