"""A jaxpr as a listing, with the names that its printed form has; and the rewrites of a program on
its way to a platform, with what each changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import unified_diff
from typing import Any

from emit_hlo.tables import PASSES
from lowering.locations import Scope
from pyjx.core.avals import nbytes, taken_over
from pyjx.core.evaluation import all_eqns
from pyjx.core.frames import frame_at, user_code
from pyjx.core.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Var
from pyjx.core.lifetimes import device_bytes
from pyjx.core.name_stack import Scope as NamedScope
from pyjx.core.places import Space
from pyjx.core.printer import JaxprPpContext, Printer
from pyjx.core.records import Record
from pyjx.core.value_texts import shortened
from pyjx.runtime.costs import FREE, Run, arithmetic, constants_of, moved, runs_of, unsized
from pyjx.runtime.lower import as_lowered, in_own_operations
from pyjx.runtime.stages import Lowered
from pyjx.viewer.listing import (
    APPLIED,
    CLOSING,
    FUSED,
    HEAD,
    NOTE,
    RUN,
    UNCOUNTED,
    UNKNOWN,
    Bodies,
    Listing,
    Places,
    name_parts,
)

# -- listings --------------------------------------------------------------------------------------

_VIEWS = FREE | {"reshape", "squeeze"}
_SPACE = re.compile(r"\s*\n\s*")
_TRANSFORM = re.compile(r"(\w+)\(")
_SCOPES = {"scan": "while/body", "body_jaxpr": "while/body", "cond_jaxpr": "while/cond"}


def jaxpr_of(function: str, argument: str, program: Any) -> ClosedJaxpr:
    """The jaxpr that a program is, or that was traced (`inspect.trace`, `jit(f).trace`).

    Raises:
      TypeError: it is neither.
    """
    inner = getattr(program, "jaxpr", None)
    found = inner if isinstance(inner, ClosedJaxpr) else program
    if isinstance(found, (ClosedJaxpr, Jaxpr)):
        return found  # type: ignore[return-value]
    raise TypeError(f"{function}: {argument} must be a jaxpr, such as jax.make_jaxpr(f)(x) or "
                    f"jax.jit(f).trace(x).jaxpr, got {shortened(program)}")


def jaxpr_listing(closed: ClosedJaxpr, places: Places, names: JaxprPpContext | None = None,
                  donated: Sequence[int] = ()) -> Listing:
    """The rows of a program. A nested jaxpr that is used once stands below its equation; those
    used more than once are functions. The program itself comes first. `names` are those that
    variables have already, and `donated` the numbers of arguments that are."""
    writer = _Writer(Listing("jaxpr"), places, constants_of(closed))
    if names is not None:
        writer.names = names
        writer.name_shared(closed.jaxpr)
    else:
        writer.program(closed.jaxpr)  # names variables and shared jaxprs in the order of the text
    name = closed.debug_info.func_name.rpartition(".")[2]
    writer.function(closed.jaxpr, name, Scope(f"jit({name})"))
    writer.give_back(closed.jaxpr, donated)
    writer.listing.link(writer.calls, writer.heads)
    writer.listing.add_up()
    return writer.listing


class _Writer(Printer):
    """Writes equations as rows."""

    def __init__(self, listing: Listing, places: Places, constants: dict[Var, Any]) -> None:
        super().__init__()
        self.listing = listing
        self._places = places
        self._called: dict[Any, int] = {}  # the place of what is called at a place
        self._rows: dict[Var, int] = {}
        self._position: dict[Var, int] = {}  # among the results of its equation
        self.heads: dict[Jaxpr, int] = {}
        self._waiting: dict[Jaxpr, Scope] = {}
        self.calls: dict[int, list[Jaxpr]] = {}
        self._constants = constants
        self._as_rows = False

    def value(self, value: Any, indent: int, label: int = 0) -> str:
        """A parameter; of a jaxpr the name alone, as its rows follow."""
        if self._as_rows:
            if isinstance(value, (ClosedJaxpr, Jaxpr)):
                return self.names.shared_jaxprs.get(value.jaxpr, "{…}")
            if isinstance(value, tuple) and any(
                    isinstance(v, (ClosedJaxpr, Jaxpr)) for v in value):
                return f"({', '.join([self.value(v, 0) for v in value])})"
        return super().value(value, indent, label)

    def function(self, jaxpr: Jaxpr, name: str, scope: Scope) -> None:
        """The rows of a function, and of those that wait for being written."""
        self._as_rows = True
        self.heads[jaxpr] = row = self.listing.add(
            f"{name} = {self._opening(jaxpr)}", 0, HEAD, name=name,
            size=int(sum([nbytes(v.aval) for v in jaxpr.all_invars])))
        self._note_host(row, jaxpr.all_invars)
        self._body(jaxpr, row, 1, scope)
        while self._waiting:
            called = next(iter(self._waiting))
            self.function(called, self.names.shared_jaxprs[called], self._waiting.pop(called))

    def give_back(self, jaxpr: Jaxpr, donated: Sequence[int]) -> None:
        """Note which results lie where donated arguments were."""
        given = [k in donated for k in range(len(jaxpr.invars))]
        for k in taken_over(jaxpr.in_avals, jaxpr.out_avals, given).values():
            v = jaxpr.outvars[k]
            if isinstance(v, Var):
                self.listing.given_back.add((self._rows[v], self._position.get(v, 0)))

    def _opening(self, jaxpr: Jaxpr) -> str:
        return _SPACE.sub(" ", self._head(jaxpr, 0, 0))

    def _body(self, jaxpr: Jaxpr, head: int, depth: int, scope: Scope) -> None:
        rows, used = self._rows, set[Any]()
        rows.update(dict.fromkeys((*jaxpr.constvars, *jaxpr.invars), head))
        for atoms in (jaxpr.outvars, *[e.invars for e in jaxpr.eqns]):
            used.update(atoms)
        for eqn in jaxpr.eqns:
            self._equation(eqn, depth, scope, used)
        outs = [self.atom(v) for v in jaxpr.outvars]
        comma = "," if len(outs) == 1 else ""
        results = list(dict.fromkeys([rows[v] for v in jaxpr.outvars if isinstance(v, Var)]))
        row = self.listing.add(f"in ({', '.join(outs)}{comma}) }}", depth, CLOSING)
        self.listing.operands[row] = results

    def _equation(self, eqn: JaxprEqn, depth: int, scope: Scope, used: set[Any]) -> None:
        listing, rows, info = self.listing, self._rows, eqn.source_info
        kind = eqn.primitive.name
        listing.scopes.update([x for x in info.name_stack.stack if type(x) is NamedScope])
        label = kind if eqn.primitive.label is None else eqn.primitive.label(eqn.params)
        row = listing.add(
            _SPACE.sub(" ", self.eqn(eqn, 0, used)), depth, operation=kind,
            shape=" ".join([v.aval.str_short(short_dtypes=True) for v in eqn.outvars]),
            name=scope.inside(eqn, label).name, traffic=moved(eqn, used),
            size=int(sum([nbytes(v.aval) for v in eqn.outvars])),
            place=self._place(info.traceback or scope.traceback),
            operands=list(dict.fromkeys(
                [rows[v] for v in eqn.invars if isinstance(v, Var) and v in rows])))
        if len(eqn.outvars) > 1 or eqn.primitive.holder.loops:
            listing.elements[row] = [device_bytes(v.aval) for v in eqn.outvars]
        self._note_host(row, eqn.outvars)
        if kind == "device_put":
            listing.to_host[row] = sum([nbytes(v.aval) for x, v in zip(
                eqn.invars, eqn.outvars, strict=True) if _is_on_host(x) != _is_on_host(v)])
        self._in_place(eqn, row)
        rows.update(dict.fromkeys(eqn.outvars, row))
        self._position.update({v: k for k, v in enumerate(eqn.outvars)})
        if kind in _VIEWS:
            listing.views.add(row)
        # those that are written as functions come last, as in `Listing.below`
        bodies = sorted(_jaxprs(eqn), key=lambda body: body[1] in self.names.shared_jaxprs)
        if unsized(eqn) is not None:
            listing.unsized.add(row)
        if bodies:
            self._runs(eqn, row, [jaxpr for _, jaxpr in bodies])
        if listing.bodies.get(row, UNCOUNTED) == UNCOUNTED and row not in listing.unsized:
            found = arithmetic(eqn)
            listing.own[row] = sum(found.amounts)
            if found.guesses:
                listing.inexact.add(row)
        if kind == "cond":
            listing.alternatives.add(row)
        for key, jaxpr in bodies:
            self._nested(eqn, row, key, jaxpr, depth, _inner_scope(scope, eqn, key))

    def _runs(self, eqn: JaxprEqn, row: int, jaxprs: Sequence[Jaxpr]) -> None:
        """Note how often the jaxprs among the parameters of an equation run: as often as its rule
        for arithmetic says, if it has one. Values of kernels stay in these."""
        listing, rule, holder = self.listing, eqn.primitive.arithmetic, eqn.primitive.holder
        devices = holder.devices(eqn.params)
        listing.set_devices(max(listing.devices, devices), "shard_map")
        said = rule(eqn) if rule is not None and row not in listing.unsized else None
        runs = [Run([program], times) for program, times in said] if isinstance(said, list) else \
            runs_of(eqn, self._constants) if rule is None else []
        often: dict[Jaxpr, float] = {}
        for programs, times in runs:
            often.update({p.jaxpr: 1.0 if times is None else times / devices for p in programs})
            if times is None:
                listing.inexact.add(row)
        listing.bodies[row] = UNCOUNTED
        if often.keys() & jaxprs:
            how = RUN if rule is None else APPLIED if holder.stands_for is None else FUSED
            each = tuple([often.pop(j, 0.0) for j in jaxprs])  # the first of those that are alike
            listing.bodies[row] = Bodies(how, each if len({*each}) > 1 else each[:1])

    def _place(self, traceback: Any) -> int:
        place = UNKNOWN
        for at in reversed(list(user_code(traceback))):
            if (place, at) not in self._called:
                f = frame_at(*at)
                self._called[place, at] = self._places.at(
                    f.file_name, f.function_name, f.start_line, f.start_column + 1, place)
            place = self._called[place, at]
        return place

    def _note_host(self, row: int, values: Iterable[Atom]) -> None:
        """Note what of the values of a row is in the memory of the host."""
        if found := sum([nbytes(v.aval) for v in values if _is_on_host(v)]):
            self.listing.on_host[row] = found

    def _in_place(self, eqn: JaxprEqn, row: int) -> None:
        """Note which results of an update, or of a loop, lie where its operands do."""
        holder, listing = eqn.primitive.holder, self.listing
        taken = eqn.invars[:int(eqn.primitive.in_place)]
        if holder.loops:
            held = holder.held(eqn.params)
            first = held.head + held.first
            taken = eqn.invars[first:first + held.carry]
        if taken or holder.loops:
            listing.in_place[row] = {
                k: (self._rows[v], self._position.get(v, 0)) for k, v in enumerate(taken)
                if isinstance(v, Var) and v in self._rows}

    def _nested(self, eqn: JaxprEqn, row: int, key: str, jaxpr: Jaxpr, depth: int, scope: Scope
                ) -> None:
        if jaxpr in self.names.shared_jaxprs:
            self.calls.setdefault(row, []).append(jaxpr)
            if jaxpr not in self.heads:
                behind = "/".join(name_parts(f"{scope.name}/"))
                enclosing = _TRANSFORM.findall(behind)  # the scopes are the callers'
                name = f"{'('.join(enclosing)}({')' * len(enclosing)}" if enclosing else ""
                self._waiting.setdefault(jaxpr, Scope(name))
            return
        head = self.listing.add(f"{key} = {self._opening(jaxpr)}", depth + 1, NOTE)
        self._body(jaxpr, head, depth + 2, scope)


def _is_on_host(value: Atom) -> bool:
    return getattr(value.aval, "memory_space", None) is Space.Host


def _jaxprs(eqn: JaxprEqn) -> Iterator[tuple[str, Jaxpr]]:
    """The jaxprs among an equation's parameters, and what they are called there."""
    for key, value in sorted(eqn.params.items()):
        many = isinstance(value, (tuple, list))
        for i, item in enumerate(value if many else (value,)):
            if isinstance(item, (ClosedJaxpr, Jaxpr)):
                yield f"{key}[{i}]" if many else key, item.jaxpr


def _inner_scope(scope: Scope, eqn: JaxprEqn, key: str) -> Scope:
    """The scope of a jaxpr in an equation, as the lowering names it, or XLA in the lowering's."""
    name, label = eqn.primitive.name, eqn.primitive.label
    part = label(eqn.params) if label is not None else \
        f"cond/branch_{key[len('branches['):-1]}_fun" if name == "cond" else \
        _SCOPES.get(name) or _SCOPES.get(key, "")
    return scope.inside(eqn, part)


# -- rewrites --------------------------------------------------------------------------------------

_MOST = 1500  # lines of what a pass changed
_WIDEST = 300  # characters of such a line


class Pass(Record):
    """A rewrite: its name, and the program before and after it."""

    name: str
    before: ClosedJaxpr
    after: ClosedJaxpr

    @property
    def about(self) -> str:
        """What it does."""
        return PASSES[self.name]


def passes(closed: ClosedJaxpr | Lowered, platform: str = "cpu") -> list[Pass]:
    """Each rewrite of a program on its way to one device of a platform, or of one that was lowered
    (`jit(f).lower(x)`) on the way that it took.

    >>> import pyjx as jax
    >>> from pyjx import inspect
    >>> closed = jax.make_jaxpr(lambda x: (jax.numpy.sin(x), x + 1)[1])(1.0)
    >>> [(p.name, len(p.before.eqns), len(p.after.eqns)) for p in inspect.passes(closed)]
    [('physicalize', 2, 2), ('decompose', 2, 2), ('one-cpu', 2, 2), ('dce', 2, 1)]
    """
    placement = fit = None
    if isinstance(closed, Lowered):
        placement, fit, platform = closed._placement, closed._program.fit, closed._platform
        closed = closed._closed
    steps = [Pass("", closed, jaxpr_of("passes", "closed", closed))]

    def told(name: str, after: ClosedJaxpr) -> None:
        steps.append(Pass(name, steps[-1].after, after))

    alone = placement is None or len(placement.devices) < 2
    after = in_own_operations(steps[0].after, placement, platform, alone, told)
    if fit is None or fit.plan is None:
        as_lowered(after, platform, alone, True, told)
    else:
        told("budget", fit.closed)
        as_lowered(fit.closed, platform, alone, False, told)
    return steps[1:]


def changes(steps: Iterable[Pass]) -> list[dict[str, Any]]:
    """For each rewrite its name, what it does, how many equations there were and are, nested ones
    included, and the lines that differ, as `diff -u` writes them; a variable has one name
    throughout."""
    names = JaxprPpContext()

    def lines(closed: ClosedJaxpr) -> list[str]:
        names.shared_jaxprs.clear()
        rows = jaxpr_listing(closed, Places(), names=names)
        return [f"{'  ' * depth}{text}"[:_WIDEST]
                for depth, text in zip(rows.depth, rows.text, strict=True)]

    found = []
    before: list[str] | None = None
    for step in steps:
        before = lines(step.before) if before is None else before
        after = before if step.after is step.before else lines(step.after)
        # The first two lines name files.
        changed = [] if after is before else list(unified_diff(before, after, lineterm=""))[2:]
        found.append({"name": step.name, "about": step.about,
                      "before": sum(1 for _ in all_eqns(step.before)),
                      "after": sum(1 for _ in all_eqns(step.after)), "lines": changed[:_MOST],
                      "more": max(len(changed) - _MOST, 0)})
        before = after
    return found
