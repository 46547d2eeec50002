"""Programs inside equations: what an operation says of those it holds, and the rules made of that.

A call, a loop, a conditional, a map over devices: each holds programs which all take inputs and
give results of the same types, and says of each input and result what *role* it has. A role is the
operation's own: the value itself, a component of a carry, one slice of a stacked array, a part
that a spec cuts out. From the roles come the types outside; and whatever program is derived from
one that is held gets roles from those that there are: a tangent that of its primal, a cotangent
that of its value, a residual the one that the operation names.

`tests/engine/test_subjaxprs.py` shows what a new operation of that kind costs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from operator import is_, is_not, or_
from typing import Any

from pyjx.core.avals import AbstractRef, AbstractValue, get_aval
from pyjx.core.derived import derived
from pyjx.core.effects import Effects, join_effects
from pyjx.core.evaluation import jaxpr_as_fun
from pyjx.core.jaxpr import Atom, ClosedJaxpr, JaxprEqn, Var
from pyjx.core.passes.tokens import threaded
from pyjx.core.primitive import Holding, Primitive
from pyjx.core.records import Record
from pyjx.core.trace import Tracer, trace_to_jaxpr
from pyjx.engine import logs
from pyjx.engine.batching import BatchTrace, match_axis
from pyjx.engine.discharge import Box, check_distinct, discharged, store, values_of
from pyjx.engine.linearize import LinearTrace
from pyjx.engine.residuals import CutEqn, Policy, cut_jaxpr, results_saved
from pyjx.engine.subjaxprs import (
    TransposedJaxpr,
    batch_jaxpr,
    check_operands,
    consts_as_inputs,
    dependent_outputs,
    fixpoint,
    in_front,
    jvp_jaxpr,
    linear_flags,
    linearize_jaxpr,
    live_inputs,
    negated,
    nonzero_flags,
    part_of,
    parts_added,
    read_in_parts,
    selected,
    split_jaxpr,
    strong_cotangents,
    transpose_with_log,
    with_cotangents,
    with_inputs,
    with_outputs,
    with_totals,
)
from pyjx.engine.tangents import UndefinedPrimal, Zero, full_aval, instantiate
from pyjx.engine.types import Cotangents, Dims, Flags, Operand, Params, Tangents, Values

Role = Any
Roles = Sequence[Role]
Programs = Sequence[ClosedJaxpr]


class Held(Record):
    """The programs of an equation.

    Attributes:
      programs: one, or several of which one is run.
      head: how many operands come before those that are inputs of the programs, such as an index.
      ins: the roles of the inputs, in order.
      outs: the roles of the results.
      first: how many inputs come before the carry.
      carry: how many there are that the first results take the place of, for the next run.
    """

    programs: Programs
    head: int
    ins: Roles
    outs: Roles
    first: int
    carry: int


def either(flags: Sequence[Flags]) -> Flags:
    """Where one of several has a flag."""
    return flags[0] if len(flags) == 1 else tuple(map(any, zip(*flags, strict=True)))


def with_all_consts(programs: Programs) -> tuple[list[ClosedJaxpr], list[Any]]:
    """The programs with the constants of all of them, each once, as leading inputs."""
    consts = {id(c): c for p in programs for c in p.consts}
    joined = []
    for program in programs:
        places = {id(c): i for i, c in enumerate(program.consts)}
        n = len(program.consts)
        order = [places.get(i, get_aval(c)) for i, c in consts.items()]
        joined.append(with_inputs(consts_as_inputs(program), (
            *order, *range(n, n + len(program.jaxpr.invars)))))
    return joined, list(consts.values())


class Holder(Holding):
    """What a primitive does that holds programs; a subclass declares these and their roles.

    Args:
      primitive: gets rules, but for those that it has.

    Attributes:
      lacks: what is not made of them.
      constant: the role of a value that is the same wherever and whenever it is read.
      carried: the role of a component of the carry, if there is one. Also of a reference that is
        written and of tokens, which are part of it then.
      keeps: whether the linear part of a program that is linear in some inputs reads what the known
        part has computed; else it computes that again.
    """

    lacks: tuple[str, ...] = ()
    constant: Role = None
    carried: Role = None
    keeps = False

    def __init__(self, primitive: Primitive) -> None:
        self.primitive: Any = primitive
        primitive.holder = self
        given = ("accumulate",) if primitive.transpose is not None else ()
        for name in (*self.lacks, *given):
            setattr(self, name, None)
        for kind in ("accumulate", "batch_axis", "discharge", "effects", "jvp", "shape_rule",
                     "transpose"):
            if getattr(primitive, kind) is None:
                primitive.define(**{kind: getattr(self, kind)})

    # -- what is declared --------------------------------------------------------------------------

    def held(self, params: Params) -> Held:
        """The programs of an equation with these parameters, and the roles of what they take."""
        raise NotImplementedError

    def derived_params(self, params: Params, programs: Programs, ins: Roles, outs: Roles,
                       linear: bool = False) -> Params:
        """The parameters of an equation with programs derived from those that one with `params`
        holds; `linear` says whether they are parts of derivatives."""
        raise NotImplementedError

    def conditions(self, params: Params) -> Programs:
        """The programs of the operands before the inputs and the carry that are asked before each
        run whether there is one."""
        return ()

    def asked_first(self, params: Params) -> ClosedJaxpr:
        """An equation that has conditions as a program that asks them before it and at the end of
        each run, for conditions that do more than answer: of those in it that holds no more."""
        raise NotImplementedError

    def outside(self, aval: AbstractValue, role: Role, params: Params) -> Any:
        """The type that a value of a role has outside."""
        return aval

    def residual_roles(self, avals: Sequence[Any], params: Params) -> Roles:
        """The roles of values of these types that a later run is to find again."""
        return [self.constant] * len(avals)

    def roles_read_again(self, roles: Roles, places: Sequence[int]) -> Roles:
        """The roles of operands of which a later run reads those at these places, too."""
        return roles

    def tangent_roles(self, roles: Roles) -> Roles:
        return roles

    def cotangent_roles(self, roles: Roles) -> Roles:
        return roles

    def written_role(self, role: Role, aval: AbstractValue, params: Params) -> Role:
        """The role of the new value of a reference that is written."""
        return self.carried if role == self.constant and self.carried is not None else role

    def batch_place(self, role: Role) -> int:
        """Where values of a role have outside the axis that is the first one inside."""
        return 0

    def roles_of_parts(self, roles: Roles, counts: Sequence[int]) -> Roles:
        """Those of what values of these roles are made of, so many parts each
        (engine/own_types.py)."""
        return [role for role, n in zip(roles, counts, strict=True) for _ in range(n)]

    def asked_on_parts(self, params: Params, on_parts: Callable[..., ClosedJaxpr]) -> Params:
        """The parameters with conditions on parts."""
        return params

    def other_way(self, params: Params) -> Params:
        """The parameters of a loop over the runs from the last to the first."""
        return params

    def derived(self, params: Params, derive: Callable[..., Any], *args: Any) -> Any:
        """What is derived from a program that is held."""
        return derive(*args)

    def transposed(self, params: Params, closed: ClosedJaxpr, linear: Flags, cts: Tangents,
                   added: Flags | None) -> TransposedJaxpr:
        """A program, transposed for these cotangents of its results, `added` to totals."""
        return transpose_with_log(  # type: ignore[no-any-return]
            closed, linear, nonzero_flags(cts), None, added, None, strong_cotangents(closed, cts))

    # -- equations of derived programs -------------------------------------------------------------

    def closed_over(self, programs: Programs) -> tuple[Programs, Sequence[Any]]:
        """Programs, some with constants, with these as leading inputs if some are tracers; and
        these."""
        if not any([isinstance(c, Tracer) for p in programs for c in p.consts]):
            return programs, ()
        return with_all_consts(programs)

    # `(programs, operands, ins, outs, params) -> (programs, operands, ins, outs, order)`: the same
    # with inputs and results in the order that the primitive wants, and for each of the results the
    # place that it has here, if that is another.
    arranged: Any = None

    def ready(self, programs: Programs, operands: Sequence[Any], params: Params, ins: Roles,
               outs: Roles) -> Any:
        for program in programs:
            if program.consts:
                programs, consts = self.closed_over(programs)
                head = len(operands) - len(ins)
                operands = [*operands[:head], *consts, *operands[head:]]
                ins = [*[self.constant] * len(consts), *ins]
                break
        if self.arranged is None:
            return programs, operands, ins, outs, None
        return self.arranged(programs, operands, ins, outs, params)

    def bind(self, programs: Programs, operands: Sequence[Any], params: Params, ins: Roles,
             outs: Roles, linear: bool = False) -> list[Any]:
        """The results of an equation of derived programs, on what comes before their inputs and
        these."""
        programs, operands, ins, outs, order = self.ready(programs, operands, params, ins, outs)
        results: list[Any] = self.primitive.bind(
            *operands, **self.derived_params(params, programs, ins, outs, linear))
        return results if order is None else in_order(results, order)

    def record(self, trace: LinearTrace, programs: Programs, operands: Sequence[Any],
               params: Params, ins: Roles, outs: Roles, linear: bool = False) -> list[Any]:
        """The results of such an equation, added to a linear program."""
        programs, operands, ins, outs, order = self.ready(programs, operands, params, ins, outs)
        params = self.derived_params(params, programs, ins, outs, linear)
        results = trace.record(self.primitive, operands, params,
                               self.primitive.shape_rule(**params))
        return results if order is None else in_order(results, order)

    def eqn(self, eqn: JaxprEqn, programs: Programs, operands: Sequence[Atom], ins: Roles,
            results: Sequence[Var], outs: Roles) -> JaxprEqn:
        """An equation of derived programs in the place of another one."""
        order = None
        if self.arranged is not None:
            programs, operands, ins, outs, order = self.arranged(
                programs, operands, ins, outs, eqn.params)
        params = self.derived_params(eqn.params, programs, ins, outs)
        return eqn.replace(
            invars=operands, outvars=results if order is None else [results[i] for i in order],
            params=params, effects=self.primitive.effects(params))

    # -- types -------------------------------------------------------------------------------------

    def effects(self, params: Params) -> Effects:
        return join_effects(self.held(params).programs)

    def shape_rule(self, *avals: Any, **params: Any) -> list[Any]:
        held = self.held(params)
        return [self.outside(a, role, params)
                for a, role in zip(held.programs[0].out_avals, held.outs, strict=True)]

    def check(self, eqn: JaxprEqn) -> None:
        held, name = self.held(eqn.params), self.primitive.name
        for k, program in enumerate(held.programs):
            what = name if len(held.programs) == 1 else f"branch {k} of {name}"
            avals = program.in_avals
            check_operands(what, eqn.invars[held.head:], [
                self.outside(a, role, eqn.params)
                for a, role in zip(avals, held.ins, strict=True)])
            for i, (var, aval, role) in enumerate(
                    zip(eqn.outvars, program.out_avals, held.outs, strict=True)):
                if not (aval := self.outside(aval, role, eqn.params)).same_type(var.aval):
                    raise TypeError(f"{what}: result {i} is of type {aval}, expected {var.aval}")
            for i, (before, after) in enumerate(
                    zip(avals[held.first:held.first + held.carry], program.out_avals,
                        strict=False)):
                if not before.same_type(after):
                    raise TypeError(f"{what}: the body takes component {i} of the carry as "
                                    f"{before} and gives it as {after}")

    # -- forward mode ------------------------------------------------------------------------------

    def pushed(self, derive: Callable[..., Any], held: Held, params: Params, flags: Flags
               ) -> tuple[Flags, list[Any], Flags]:
        """Which inputs have a tangent, what `derive` makes of the programs for these, and which
        results have one.

        What comes into the carry in one run goes into the next one, and what one of several
        programs gives, all do.
        """
        programs, n = held.programs, held.carry
        asked: Flags = ()
        if n:
            flags, asked = _grown(held, flags, lambda now: self.derived(
                params, derive, programs[0], now).nonzero)
        elif len(programs) == 1:
            only = self.derived(params, derive, programs[0], flags)
            return flags, [only], only.nonzero
        made = [self.derived(params, derive, p, flags) for p in programs]
        each = [m.nonzero for m in made]
        wanted = either([asked, *each] if n else each)
        return flags, [m if m.nonzero == wanted else
                       self.derived(params, derive, p, flags, wanted)
                       for m, p in zip(made, programs, strict=True)], wanted

    def jvp(self, primals: Values, tangents: Tangents, **params: Any) -> Any:
        held = self.held(params)
        _, head, ins, outs, _, carry = held
        given = tangents[head:] if head else tangents
        nonzero, pushed, wanted = self.pushed(jvp_jaxpr, held, params, nonzero_flags(given))
        if carry and not any(wanted):
            return self.still(primals, params)
        moving = selected(given, nonzero)
        if carry:  # some of it is zero at first
            moving = list(map(instantiate, moving))
        results = self.bind([p.jaxpr for p in pushed], [*primals, *moving], params,
                            [*ins, *self.tangent_roles(selected(ins, nonzero))],
                            [*outs, *self.tangent_roles(selected(outs, wanted))])
        n = len(outs)
        return _with_tangents(results[:n], results[n:], wanted)

    def still(self, primals: Values, params: Params) -> Any:
        outs = self.primitive.bind(*primals, **params)
        return outs, [Zero.of_primal(x) for x in outs]

    # -- reverse mode ------------------------------------------------------------------------------

    def apart(self, parts: Sequence[Any], operands: Sequence[Any], params: Params, ins: Roles,
              outs: Roles) -> tuple[list[Any], Programs, list[Any], Roles]:
        """Run the known parts of programs: the known results, the linear parts, and what these read
        before tangents, with the roles that it has."""
        n, given = len(outs), operands[len(operands) - len(ins):]
        forwarded, slots = _forwarded(parts), _slots([p.known.out_avals[n:] for p in parts])
        saved = self.residual_roles(slots.avals, params)
        results = self.bind(
            [_with_slots(p.known, n, filled, slots.avals)
             for p, filled in zip(parts, slots.filled, strict=True)],
            operands, params, self.roles_read_again(ins, forwarded), [*outs, *saved])
        avals = parts[0].known.in_avals
        linear = [_from_slots(p.linear, p.forwarded, filled, slots.avals, forwarded, avals)
                  for p, filled in zip(parts, slots.filled, strict=True)]
        return (results[:n], linear, [*results[n:], *[given[i] for i in forwarded]],
                [*saved, *[ins[i] for i in forwarded]])

    def linearize(self, trace: LinearTrace, primals: Values, tangents: Tangents, **params: Any
                  ) -> Any:
        held = self.held(params)
        given = tangents[held.head:] if held.head else tangents
        nonzero = nonzero_flags(given)
        if True not in nonzero:
            return self.still(primals, params)
        nonzero, parts, wanted = self.pushed(linearize_jaxpr, held, params, nonzero)
        if held.carry and not any(wanted):
            return self.still(primals, params)
        outs, linear, residuals, roles = self.apart(parts, primals, params, held.ins, held.outs)
        moving = list(map(instantiate, selected(given, nonzero)))
        out_tangents = self.record(
            trace, linear, [*primals[:held.head], *residuals, *moving], params,
            [*roles, *self.tangent_roles(selected(held.ins, nonzero))],
            self.tangent_roles(selected(held.outs, wanted)), True)
        return _with_tangents(outs, out_tangents, wanted)

    def split(self, trace: LinearTrace, operands: Values, params: Params) -> list[Any]:
        held = self.held(params)
        programs, head = held.programs, operands[:held.head]
        given = operands[held.head:]
        linear = trace.linear_flags(given)
        linear, asked = _grown(held, linear, lambda now: dependent_outputs(programs[0], now))
        dependent = either([asked, *[dependent_outputs(p, linear) for p in programs]])
        known = negated(linear)
        if not self.keeps:
            outs = iter(() if all(dependent) else self.bind(
                [part_of(p, negated(dependent), known) for p in programs],
                [*head, *selected(given, known)], params,
                self.roles_read_again(selected(held.ins, known), range(known.count(True))),
                selected(held.outs, negated(dependent))))
            if True not in dependent:
                return list(outs)
            moved = (True,) * len(dependent) if held.carry else dependent  # a carry as a whole
            tangents = iter(self.record(
                trace, [part_of(p, moved, (True,) * len(given), False) for p in programs],
                operands, params, held.ins, selected(held.outs, moved), held.carry > 0))
            found = [next(tangents) if flag else None for flag in moved]
            return [t if d else next(outs) for d, t in zip(dependent, found, strict=True)]
        if all(dependent) and not any([p.effects for p in programs]):
            return trace.record(self.primitive, operands, params)  # type: ignore[no-any-return]
        parts = [split_jaxpr(p, linear, dependent if len(programs) > 1 else asked)
                 for p in programs]
        dependent = parts[0].dependent
        known_outs, programs, residuals, roles = self.apart(
            parts, [*head, *selected(given, known)], params, selected(held.ins, known),
            selected(held.outs, negated(dependent)))
        outs = iter(known_outs)
        tangents = iter(self.record(
            trace, programs, [*head, *residuals, *selected(given, linear)], params,
            [*roles, *selected(held.ins, linear)], selected(held.outs, dependent)))
        return [next(tangents) if d else next(outs) for d in dependent]

    def transpose(self, cts: Tangents, *operands: Operand, **params: Any) -> list[Any]:
        if self.loops:
            return self.looped_back([None] * len(operands), cts, operands, params)
        return self.pulled_back(cts, operands, params, (), None)

    def accumulate(self, totals: Tangents, cts: Tangents, *operands: Operand, **params: Any
                   ) -> list[Any]:
        """Totals go into the programs where these read parts of their operands."""
        if self.loops:
            return self.looped_back(totals, cts, operands, params)
        held = self.held(params)
        inner = totals[held.head:]
        added = parts_added(inner, either(list(map(read_in_parts, held.programs))))
        in_cts = self.pulled_back(cts, operands, params, selected(inner, added),
                                  added if True in added else None)
        return with_totals(in_cts, totals, (False,) * held.head + added)

    def pulled_back(self, cts: Tangents, operands: Sequence[Operand], params: Params,
                    totals: Sequence[Any], added: Flags | None) -> list[Any]:
        """Cotangents of the operands; those of the inputs `added` contain their `totals`."""
        held = self.held(params)
        head, given = operands[:held.head], operands[held.head:]
        linear = linear_flags(given)
        pulled = [self.derived(params, self.transposed, params, p, linear, cts, added)
                  for p in held.programs]
        nonzero = either([p.nonzero for p in pulled])
        programs = [p.jaxpr for p in pulled]
        if len(programs) > 1:
            programs = _alike(pulled, nonzero, [x.aval for x in selected(given, linear)])
        known, had = negated(linear), nonzero_flags(cts)
        more = self.cotangent_roles([
            *selected(held.outs, had), *(selected(held.ins, added) if added else ())])
        outs = self.bind(programs, [*head, *selected(given, known), *selected(cts, had), *totals],
                         params, [*selected(held.ins, known), *more],
                         self.cotangent_roles(selected(selected(held.ins, linear), nonzero)), True)
        n = sum(nonzero)
        if len(programs) == 1:
            pulled[0].write_log(outs)
        elif any([p.log is not None for p in pulled]):
            logs.write_of_branches(head[0], [p.log for p in pulled], iter(outs[n:]))
        return [*[None] * held.head, *with_cotangents(given, nonzero, iter(outs))]

    def looped_back(self, totals: Cotangents, cts: Tangents, operands: Sequence[Operand],
                    params: Params) -> list[Any]:
        """The transposed program of a loop goes over its runs the other way.

        The carry is linear in all its components, as what is known of a loop is computed apart.
        Sums of cotangents of constants begin with their totals, and are carried before it.
        """
        held = self.held(params)
        (body,), head, ins, outs, first, n = held
        given, inner = operands[head:], totals[head:]
        carried = tuple([first <= i < first + n for i in range(len(ins))])
        linear = tuple(map(or_, linear_flags(given), carried))
        cts = [*map(instantiate, cts[:n]), *cts[n:]]
        had = nonzero_flags(cts)
        pulled = self.derived(params, _looped_back, body, linear, had, carried, first)
        known, summed = negated(linear), pulled.nonzero[:sum(linear[:first])]
        pairs = selected(list(zip(given, inner, strict=True)), linear)
        sums = [instantiate(Zero.cotangent_of(x.aval)) if total is None else total
                for x, total in selected(pairs[:len(summed)], summed)]
        roles = [*[self.carried] * first, *self.cotangent_roles(ins[first:])]
        logged = pulled.jaxpr.out_avals[sum(pulled.nonzero):]
        results = self.bind(
            [pulled.jaxpr], [*operands[:head], *selected(given, known), *sums, *selected(cts, had)],
            self.other_way(params), [
                *selected(ins, known), *[self.carried] * len(sums),
                *self.cotangent_roles(selected(outs, had))],
            [*selected(selected(roles, linear), pulled.nonzero),
             *self.residual_roles(logged, params)], True)
        pulled.write_log(results)
        found = iter(results)
        values = iter([next(found) if flag else None for flag in pulled.nonzero])
        in_cts: list[Any] = [next(values) if flag else None for flag in linear]
        for i, x in enumerate(given):
            if type(x) is not UndefinedPrimal:
                in_cts[i] = None
            elif in_cts[i] is None:
                in_cts[i] = Zero.cotangent_of(x.aval)
        added = [i < first and type(ct) is not Zero for i, ct in enumerate(in_cts)]
        return with_totals([*[None] * head, *in_cts], totals, [False] * head + added)

    # -- batching ----------------------------------------------------------------------------------

    def batch_axis(self, trace: BatchTrace, operands: Values, dims: Dims, **params: Any) -> Any:
        """In loops, and in results of one of several programs, the batch axis is in front."""
        held = self.held(params)
        programs, head, ins, outs, _, _ = held
        axis, places = trace.axis, tuple(dims[head:])
        if self.loops:
            flags, asked = _grown(held, _batched(places), lambda now: _batched(self.derived(
                params, batch_jaxpr, programs[0], in_front(now), axis).dims))
            operands = [*operands[:head], *[
                match_axis(x, d, self.batch_place(role), axis) if flag else x for x, d, role, flag
                in zip(operands[head:], places, ins, flags, strict=True)]]
            places = in_front(flags)
        made = [self.derived(params, batch_jaxpr, p, places, axis) for p in programs]
        if self.loops or len(made) > 1:
            found = [_batched(m.dims) for m in made]
            if self.loops:
                found.append(asked)
            wanted = in_front(either(found))
            made = [m if m.dims == wanted and axis.sharding is None else
                    self.derived(params, batch_jaxpr, p, places, axis, wanted)
                    for m, p in zip(made, programs, strict=True)]
            out_dims: Dims = [None if d is None else self.batch_place(role)
                              for d, role in zip(wanted, outs, strict=True)]
        else:
            out_dims = made[0].dims
        return self.bind([m.jaxpr for m in made], operands, params, ins, outs), out_dims

    # -- passes ------------------------------------------------------------------------------------

    def dce(self, eqn: JaxprEqn, used: Flags) -> JaxprEqn:
        held = self.held(eqn.params)
        programs, first, n = held.programs, held.first, held.carry
        if n:
            ys = used[n:]
            used = fixpoint(lambda now: live_inputs(programs[0], now + ys)[first:first + n],
                            used[:n]) + ys
        live = either([live_inputs(p, used) for p in programs])
        if n:
            live = live[:first] + used[:n] + live[first + n:]
        parts = [part_of(p, used, live) for p in programs]
        if all(map(is_, parts, programs)):
            return eqn
        return self.eqn(
            eqn, parts, [*eqn.invars[:held.head], *selected(eqn.invars[held.head:], live)],
            selected(held.ins, live), selected(eqn.outvars, used), selected(held.outs, used))

    def cut(self, eqn: JaxprEqn, policy: Policy, needed: Flags) -> CutEqn:
        """What is saved inside is a further result, and an operand of what computes the rest; a
        result that is saved by all programs stays in its place. A carry that is needed goes through
        all runs again."""
        params, held = eqn.params, self.held(eqn.params)
        programs, head, first, n = held.programs, held.head, held.first, held.carry
        n_out, ys = len(eqn.outvars), needed[n:]
        every = (True,) * n_out

        def parts_for(flags: Flags) -> list[Any]:
            return [self.derived(params, cut_jaxpr, p, policy, every, flags) for p in programs]

        def grow(flags: Flags) -> list[bool]:
            (part,) = parts_for(flags + ys)
            return [first + i in part.forwarded for i in range(n)]

        now = fixpoint(grow, needed[:n]) + ys if n else needed
        parts = parts_for(now)
        results = [v if flag else Var(v.aval) for v, flag in zip(eqn.outvars, needed, strict=True)]
        results, roles, n_carry = selected(results, now), selected(held.outs, now), sum(now[:n])
        # A component of the carry that is saved of each run is no result as it is.
        same = [{v: i for i, v in results_saved(
            p, len(p.known.jaxpr.outvars) - n_out, results[n_carry:]).items()} for p in parts]
        rest = tuple([i < n_carry or not all([v in own for own in same])
                      for i, v in enumerate(results)])
        kept = selected(results, negated(rest))
        in_place = [[own[v] for v in kept] for own in same]
        slots = _slots([[None if i in own else a for i, a in enumerate(p.known.out_avals[n_out:])]
                        for p, own in zip(parts, in_place, strict=True)])
        new_roles = self.residual_roles(slots.avals, params)
        new = [Var(self.outside(a, role, params))
               for a, role in zip(slots.avals, new_roles, strict=True)]
        saved = [*kept, *new]
        known_eqn = self.eqn(
            eqn, [_with_slots(p.known, n_out, filled, slots.avals)
                  for p, filled in zip(parts, slots.filled, strict=True)],
            eqn.invars, held.ins, [*eqn.outvars, *new], [*held.outs, *new_roles])
        if not any(rest) and not any([p.again.effects for p in parts]):
            return CutEqn(known_eqn, saved, None)
        read = _forwarded(parts, selected(range(first, first + n), now[:n]))
        avals = [*[v.aval for v in kept], *slots.avals]  # of those kept each program has its own
        inputs = (True,) * (len(saved) + len(read))
        again = [part_of(_from_slots(p.again, p.forwarded, (*own, *filled), avals, read,
                                     programs[0].in_avals), rest, inputs)
                 for p, own, filled in zip(parts, in_place, slots.filled, strict=True)]
        return CutEqn(known_eqn, saved, self.eqn(
            eqn, again, [*eqn.invars[:head], *saved, *[eqn.invars[head + i] for i in read]],
            [*selected(roles, negated(rest)), *new_roles,
             *self.roles_read_again([held.ins[i] for i in read], range(len(read)))],
            selected(results, rest), selected(roles, rest)))

    def thread(self, eqn: JaxprEqn, token: Atom, after: Var) -> list[JaxprEqn]:
        """The token is the first input and result of the programs, and of the carry."""
        held = self.held(eqn.params)
        role = self.constant if self.carried is None else self.carried
        return [self.eqn(
            eqn, list(map(threaded, held.programs)),
            [*eqn.invars[:held.head], token, *eqn.invars[held.head:]], [role, *held.ins],
            [after, *eqn.outvars], [role, *held.outs])]

    def discharge(self, operands: Values, params: Params, derivable: bool) -> list[Any]:
        """The new values of references that one of the programs writes are results of all; in a
        loop they are carried, in front of the carry."""
        held = self.held(params)
        head, given = operands[:held.head], operands[held.head:]
        check_distinct(held.programs[0], given)
        boxed = tuple([isinstance(x, Box) for x in given])
        found = [self.derived(params, discharged, p, boxed, derivable) for p in held.programs]
        written = [next(filter(None, at), None)
                   for at in zip(*[f.written for f in found], strict=True)]
        at, n = [i for i, w in enumerate(written) if w], len(held.outs)
        ins = list(held.ins)
        for f in found:
            own = [i for i, w in enumerate(f.written) if w]
            for i, v in zip(own, f.jaxpr.jaxpr.outvars[n:], strict=True):
                ins[i] = self.written_role(held.ins[i], v.aval, params)
        round_ = [i for i in at if self.carried is not None and ins[i] == self.carried]
        behind = [i for i in at if i not in round_]
        same = []
        for f in found:
            places = iter(range(n, len(f.jaxpr.jaxpr.outvars)))
            new = [next(places) if w else ~i for i, w in enumerate(f.written)]
            order = (*[new[i] for i in round_], *range(n), *[new[i] for i in behind])
            unchanged = order == tuple(range(len(f.jaxpr.jaxpr.outvars)))
            same.append(f.jaxpr if unchanged else with_outputs(f.jaxpr, order))
        results = self.bind(same, [*head, *values_of(given)], params, ins, [
            *[ins[i] for i in round_], *held.outs, *[ins[i] for i in behind]])
        m = len(round_)
        store(given, written, dict(zip(
            [*round_, *behind], [*results[:m], *results[m + n:]], strict=True)))
        program = held.programs[0].jaxpr
        return [x if type(v.aval) is not AbstractRef else
                given[program.invars.index(v)] if v in program.invars else Box(x)
                for v, x in zip(program.outvars, results[m:m + n], strict=True)]


def in_order(results: list[Any], order: list[int]) -> list[Any]:
    """The results in the order that `order` gives the places of."""
    outs: list[Any] = [None] * len(results)
    for place, x in zip(order, results, strict=True):
        outs[place] = x
    return outs


def _grown(held: Held, flags: Flags, grow: Callable[[Flags], Flags]) -> tuple[Flags, Flags]:
    """Flags of inputs, grown until those of a carry hold in all runs, and of results: those of the
    carry. `grow` gives flags of results for those of inputs."""
    first, n = held.first, held.carry
    before, after = flags[:first], flags[first + n:]
    carry = fixpoint(lambda now: grow(before + now + after)[:n], flags[first:first + n])
    return before + carry + after, carry + (False,) * (len(held.outs) - n)


def _batched(dims: Dims) -> Flags:
    return tuple([d is not None for d in dims])


def _with_tangents(outs: list[Any], tangents: list[Any], wanted: Flags) -> Any:
    """Results, and a tangent for each of them, of which those `wanted` are given."""
    if len(tangents) == len(outs):
        return outs, tangents
    given = iter(tangents)
    return outs, [next(given) if flag else Zero.of_primal(x)
                  for x, flag in zip(outs, wanted, strict=True)]


def _alike(pulled: Sequence[TransposedJaxpr], wanted: Flags, avals: Sequence[Any]
           ) -> list[ClosedJaxpr]:
    """Transposed programs that all give the `wanted` cotangents, and what each logs."""
    logged = [p.jaxpr.out_avals[sum(p.nonzero):] for p in pulled]
    return [p.jaxpr if p.nonzero == wanted and not any(logged) else
            _with_zero_outs(p.jaxpr, p.nonzero, wanted, tuple(avals),
                            tuple(chain(*logged[:i])), tuple(chain(*logged[i + 1:])))
            for i, p in enumerate(pulled)]


@derived
def _with_zero_outs(closed: ClosedJaxpr, nonzero: Flags, wanted: Flags, avals: tuple[Any, ...],
                    before: tuple[Any, ...], after: tuple[Any, ...]) -> ClosedJaxpr:
    """The program of the `nonzero` cotangents and a log, with zeros for the other cotangents that
    are `wanted`, and around the log for what other branches log."""

    def fun(*args: Any) -> list[Any]:
        outs = iter(jaxpr_as_fun(closed)(*args))
        cts = [next(outs) if flag else Zero.cotangent_of(a)
               for flag, a in zip(nonzero, avals, strict=True)]
        return [*map(instantiate, selected(cts, wanted)), *[full_aval(a, 0) for a in before],
                *outs, *[full_aval(a, 0) for a in after]]

    return trace_to_jaxpr(fun, closed.in_avals, closed.debug_info)


@derived
def _looped_back(body: ClosedJaxpr, linear: Flags, had: Flags, carried: Flags, first: int
                 ) -> TransposedJaxpr:
    """From (known inputs, sums of cotangents of the inputs before the carry, cotangents that are
    had) to (sums, cotangents of the carry and of the other inputs)."""
    before = linear[:first] + (False,) * (len(linear) - first)
    n, outs = sum(before), iter(body.out_avals)
    # A carry that becomes of strong type has cotangents of strong type.
    strong = tuple([flag and not next(outs).weak_type for flag in carried])
    pulled = transpose_with_log(body, linear, had, carried, before, strong)
    jaxpr = pulled.jaxpr.jaxpr
    end, k = len(jaxpr.invars) - n, len(jaxpr.invars) - n - sum(had)
    # A total that nothing is added to is not carried.
    sums = tuple(map(is_not, jaxpr.outvars[:n], jaxpr.invars[end:]))
    part = part_of(pulled.jaxpr, sums + (True,) * (len(jaxpr.outvars) - n), (True,) * end + sums)
    order = (*range(k), *range(end, end + sum(sums)), *range(k, end))
    return TransposedJaxpr(with_inputs(part, order), sums + pulled.nonzero[n:], pulled.log)


def _forwarded(parts: Sequence[Any], more: Sequence[int] = ()) -> Sequence[int]:
    """Which inputs the later parts of programs read, and `more`."""
    if len(parts) == 1 and not more:
        return parts[0].forwarded  # type: ignore[no-any-return]
    return sorted({*[i for p in parts for i in p.forwarded], *more})


class _Slots(Record):
    """Places for the residuals of all programs, of which each fills some.

    `avals` are their types; `filled[b][s]` is the residual of program b in slot s, or None.
    """

    avals: tuple[Any, ...]
    filled: list[tuple[int | None, ...]]


def _slots(residuals: Sequence[Sequence[Any]]) -> _Slots:
    """Programs share the slots of one type. Where the type is None a residual has no slot."""
    avals: list[Any] = []
    chosen = []
    for own in residuals:
        free = list(range(len(avals)))
        places = {}
        for i, aval in enumerate(own):
            if aval is None:
                continue
            slot = next((s for s in free if avals[s] is aval), None)
            if slot is None:
                slot = len(avals)
                avals.append(aval)
            else:
                free.remove(slot)
            places[slot] = i
        chosen.append(places)
    return _Slots(tuple(avals), [tuple([places.get(s) for s in range(len(avals))])
                                 for places in chosen])


def _with_slots(known: ClosedJaxpr, n_out: int, filled: tuple[int | None, ...],
                avals: tuple[Any, ...]) -> ClosedJaxpr:
    """The known part of a program, whose residuals are results at their slots; zeros at others."""
    if None in filled:
        return _with_zero_slots(known, n_out, filled, avals)
    order = (*range(n_out), *[n_out + at for at in filled])  # type: ignore[operator]
    return known if order == tuple(range(len(known.jaxpr.outvars))) else with_outputs(known, order)


@derived
def _with_zero_slots(known: ClosedJaxpr, n_out: int, filled: tuple[int | None, ...],
                     avals: tuple[Any, ...]) -> ClosedJaxpr:

    def fun(*args: Any) -> list[Any]:
        results = jaxpr_as_fun(known)(*args)
        return results[:n_out] + [
            full_aval(a, 0) if at is None else results[n_out + at]
            for at, a in zip(filled, avals, strict=True)]

    return trace_to_jaxpr(fun, known.in_avals, known.debug_info)


def _from_slots(program: ClosedJaxpr, own: Sequence[int], filled: Sequence[int | None],
                slot_avals: Sequence[Any], forwarded: Sequence[int], avals: Sequence[Any]
                ) -> ClosedJaxpr:
    """A program of (its residuals, its own forwarded inputs, more) as one of (all slots, the inputs
    that any program reads, more). `avals` are those of the inputs."""
    n, count = len([at for at in filled if at is not None]), len(program.jaxpr.invars)
    order = (*[a if at is None else at for at, a in zip(filled, slot_avals, strict=True)],
             *[n + own.index(i) if i in own else avals[i] for i in forwarded],
             *range(n + len(own), count))
    return program if order == tuple(range(count)) else with_inputs(program, order)
