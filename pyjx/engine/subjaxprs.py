"""Programs derived from programs: what every primitive that holds jaxprs builds its rules on.

Each function takes a closed jaxpr and says of each input whether it is differentiated, linear,
batched or used; it gives the derived jaxpr and says the same of the results. What is derived is
kept with its source, so a function that is called many times is transformed once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import compress
from operator import is_, not_, or_
from typing import Any

from pyjx.core import source_info
from pyjx.core.avals import AbstractValue, ShapedArray, cotangent_aval, get_aval
from pyjx.core.derived import derived, derived_structure
from pyjx.core.effects import keeps_alive
from pyjx.core.evaluation import jaxpr_as_fun, literal_value
from pyjx.core.explicit import with_dim
from pyjx.core.jaxpr import ClosedJaxpr, Literal, Var
from pyjx.core.named_axes import Axis, sharding_along
from pyjx.core.passes.dce import dce, dce_jaxpr, used_variables, without_effects
from pyjx.core.records import Record
from pyjx.core.specs import NO_AXES, Axes
from pyjx.core.trace import Tracer, trace_to_jaxpr
from pyjx.engine import linearize, logs
from pyjx.engine.axes import broadcast_in_dim_p
from pyjx.engine.batching import batch_flat, cut_along, match_axis
from pyjx.engine.forward import jvp_flat
from pyjx.engine.tangents import UndefinedPrimal, Zero, add_tangents, instantiate
from pyjx.engine.types import Cotangents, Flags, FlatFunction, Params, Tangents

Places = tuple[int | None, ...]  # dims that are part of a key


def negated(flags: Sequence[bool]) -> Flags:
    return tuple(map(not_, flags))


def selected(xs: Sequence[Any], flags: Sequence[bool]) -> list[Any]:
    """The elements whose flag is true."""
    return list(compress(xs, flags))


def nonzero_flags(tangents: Tangents) -> Flags:
    """Which tangents or cotangents are not symbolic zeros."""
    return tuple([type(t) is not Zero for t in tangents])


def with_zeros(nonzero: Sequence[Any], flags: Sequence[bool], avals: Sequence[Any]) -> list[Any]:
    """The inverse of `selected`: tangents at values of `avals`, symbolic zeros without a flag."""
    given = iter(nonzero)
    return [next(given) if flag else Zero(a.to_tangent_aval())
            for flag, a in zip(flags, avals, strict=True)]


def linear_flags(operands: Sequence[Any]) -> Flags:
    """Which operands a transpose rule is to give cotangents of."""
    return tuple([type(x) is UndefinedPrimal for x in operands])


def with_cotangents(operands: Sequence[Any], nonzero: Sequence[bool], cotangents: Iterator[Any]
                    ) -> list[Any]:
    """What a transpose rule gives: a cotangent for each linear operand, a symbolic zero where there
    is none among those given, and None for the other operands."""
    flags = iter(nonzero)
    return [None if type(x) is not UndefinedPrimal else next(cotangents) if next(flags)
            else Zero.cotangent_of(x.aval) for x in operands]


def tangent_avals(avals: Sequence[ShapedArray], nonzero: Sequence[bool]) -> list[ShapedArray]:
    return [a.to_tangent_aval() for a in selected(avals, nonzero)]


def check_operands(name: str, operands: Sequence[Any], avals: Sequence[Any]) -> None:
    """Raise TypeError unless operands of an equation have the types that its program takes; `name`
    says what takes them."""
    if len(operands) != len(avals):
        raise TypeError(f"{name} takes {len(avals)} arguments, {len(operands)} are given")
    for i, (operand, aval) in enumerate(zip(operands, avals, strict=True)):
        if not aval.same_type(operand.aval):
            raise TypeError(f"{name}: operand {i} is of type {operand.aval}, expected {aval}")


def fixpoint(grow: Callable[[Flags], Sequence[bool]], flags: Sequence[bool]) -> Flags:
    """The smallest flags, at least those given, that `grow` adds nothing to.

    What a carry makes nonzero or batched in one iteration goes into the next one.
    """
    now = tuple(flags)
    while True:
        grown = tuple([a or b for a, b in zip(now, grow(now), strict=True)])
        if grown == now:
            return now
        now = grown


# -- inputs and outputs ----------------------------------------------------------------------------


@derived_structure
def consts_as_inputs(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The jaxpr with its constants as leading inputs."""
    if not closed.consts:
        return closed
    jaxpr = closed.jaxpr
    return ClosedJaxpr(jaxpr.replace(constvars=[], invars=[*jaxpr.constvars, *jaxpr.invars]), [])


def without_tracers(closed: ClosedJaxpr) -> tuple[ClosedJaxpr, Sequence[Any]]:
    """The jaxpr, and what it takes as leading inputs: its constants, if some are tracers.

    A derived jaxpr has such constants where a rule that the user gave closes over tracers.
    """
    if not any([isinstance(c, Tracer) for c in closed.consts]):
        return closed, ()
    return consts_as_inputs(closed), closed.consts


@derived_structure
def with_inputs(closed: ClosedJaxpr, order: tuple[int | AbstractValue, ...]) -> ClosedJaxpr:
    """The jaxpr with its inputs in another order; an aval stands for one that it does not read."""
    invars = closed.jaxpr.invars
    chosen = [invars[i] if type(i) is int else Var(i) for i in order]
    return ClosedJaxpr(closed.jaxpr.replace(invars=chosen), closed.consts)


@derived_structure
def with_outputs(closed: ClosedJaxpr, order: tuple[int, ...]) -> ClosedJaxpr:
    """The jaxpr with other outputs: those at these places; `~i` stands for input i."""
    jaxpr = closed.jaxpr
    chosen: list[Any] = [jaxpr.outvars[i] if i >= 0 else jaxpr.invars[~i] for i in order]
    return dce(ClosedJaxpr(jaxpr.replace(outvars=chosen), closed.consts))


def carry_as_consts(closed: ClosedJaxpr, n_consts: int, flags: Flags) -> ClosedJaxpr:
    """A program of (constants, carry, more) with these components of the carry as constants."""
    after = n_consts + len(flags)
    carry = range(n_consts, after)
    return with_inputs(closed, (
        *range(n_consts), *selected(carry, flags), *selected(carry, negated(flags)),
        *range(after, len(closed.jaxpr.invars))))


def without_unchanged(body: ClosedJaxpr, n_consts: int, n_carry: int) -> tuple[ClosedJaxpr, Flags]:
    """The body of a loop with components of the carry that it gives back as it takes them as
    constants, and which these are."""
    jaxpr, places = body.jaxpr, range(n_carry)
    same = tuple(map(is_, jaxpr.invars[n_consts:n_consts + n_carry], jaxpr.outvars))
    if True not in same:
        return body, same
    return with_outputs(carry_as_consts(body, n_consts, same), (
        *selected(places, negated(same)), *range(n_carry, len(jaxpr.outvars)))), same


@derived_structure
def part_of(closed: ClosedJaxpr, outputs: Flags, inputs: Flags, effects: bool = True
            ) -> ClosedJaxpr:
    """The program of some outputs over some inputs: those that they need, and maybe more.

    It has those of the effects that need no other inputs, or none.
    """
    jaxpr, consts = dce_jaxpr(closed.jaxpr, outputs), closed.consts
    if jaxpr.effects and not (effects and all(inputs)):
        # Only now: what reads an input for a result that nobody needs may have effects without it.
        part = without_effects(ClosedJaxpr(jaxpr, consts), negated(inputs) if effects else None)
        jaxpr, consts = part.jaxpr, part.consts
    if jaxpr is closed.jaxpr and all(inputs):
        return closed
    return ClosedJaxpr(jaxpr.replace(invars=selected(jaxpr.invars, inputs)), consts)


@derived_structure
def live_inputs(closed: ClosedJaxpr, used: Flags) -> Flags:
    """Which inputs the outputs that are `used`, and the effects, depend on."""
    needed = used_variables(dce_jaxpr(closed.jaxpr, used))
    return tuple([v in needed for v in closed.jaxpr.invars])


@derived_structure
def dependent_outputs(closed: ClosedJaxpr, marked: Flags, or_effects: bool = False) -> Flags:
    """Which outputs depend on the marked inputs, or on what has effects."""
    jaxpr = closed.jaxpr
    dependent = set(selected(jaxpr.invars, marked))
    for eqn in jaxpr.eqns:
        if any([v in dependent for v in eqn.invars]) or (
                or_effects and eqn.effects and keeps_alive(eqn.effects)):
            dependent.update(eqn.outvars)
    return tuple([v in dependent for v in jaxpr.outvars])


# -- forward mode ----------------------------------------------------------------------------------


class JvpJaxpr(Record):
    """From (primals, nonzero tangents) to (outs, nonzero out tangents)."""

    jaxpr: ClosedJaxpr
    nonzero: Flags


@derived
def jvp_jaxpr(closed: ClosedJaxpr, nonzero: Flags, instantiated: Flags | None = None) -> JvpJaxpr:
    """The program that pushes tangents along. Those `instantiated` are results even if zero."""
    avals = closed.in_avals
    out_nonzero: Flags = ()

    def fun(*args: Any) -> list[Any]:
        nonlocal out_nonzero
        n = len(avals)
        tangents = with_zeros(args[n:], nonzero, avals)
        outs, out_tangents = jvp_flat(jaxpr_as_fun(closed), args[:n], tangents)
        out_nonzero = nonzero_flags(out_tangents)
        if instantiated is not None:
            out_nonzero = tuple([a or b for a, b in zip(out_nonzero, instantiated, strict=True)])
        return outs + [instantiate(t) for t in selected(out_tangents, out_nonzero)]

    program = trace_to_jaxpr(fun, [*avals, *tangent_avals(avals, nonzero)], closed.debug_info)
    return JvpJaxpr(program, out_nonzero)


# -- linearization ---------------------------------------------------------------------------------


class LinearizedJaxpr(Record):
    """A program split in two.

    `known` maps primals to (outs, residuals); `linear` maps (residuals, forwarded primals, nonzero
    tangents) to the nonzero out tangents. `forwarded` says which primals are residuals as they are.
    """

    known: ClosedJaxpr
    linear: ClosedJaxpr
    forwarded: tuple[int, ...]
    nonzero: Flags


@derived
def linearize_jaxpr(closed: ClosedJaxpr, nonzero: Flags, instantiated: Flags | None = None
                    ) -> LinearizedJaxpr:
    """The program and its derivative, apart. Out tangents `instantiated` are results even if zero.
    """
    avals = closed.in_avals
    recording = _Recording(closed, linearize.linearize_flat, nonzero)
    known = trace_to_jaxpr(recording.run, avals, closed.debug_info)
    return LinearizedJaxpr(*recording.parts(known, tangent_avals(avals, nonzero), instantiated))


class SplitJaxpr(Record):
    """A program that is linear in some inputs, split in two.

    `known` maps the other inputs to (outs that do not depend on linear ones, residuals); `linear`
    maps (residuals, forwarded inputs of `known`, linear inputs) to the outs that are `dependent`.
    """

    known: ClosedJaxpr
    linear: ClosedJaxpr
    forwarded: tuple[int, ...]
    dependent: Flags


@derived
def split_jaxpr(closed: ClosedJaxpr, linear: Flags, instantiated: Flags) -> SplitJaxpr:
    """The parts of a program that is linear in some inputs. Outs `instantiated` are linear even if
    they do not depend on these."""
    avals = closed.in_avals
    dependent: Flags = ()

    def record(fun: FlatFunction, values: Sequence[Any], linear: Sequence[bool]
               ) -> tuple[list[Any], linearize.LinearProgram]:
        nonlocal dependent
        given = iter(values)
        args = [a if lin else next(given) for a, lin in zip(avals, linear, strict=True)]
        outs, program, flags = linearize.record_flat(fun, args, linear, instantiated)
        dependent = tuple(flags)
        return outs, program

    recording = _Recording(closed, record, linear)
    known = trace_to_jaxpr(recording.run, selected(avals, negated(linear)), closed.debug_info)
    parts = recording.parts(known, selected(avals, linear))
    return SplitJaxpr(*parts[:3], dependent)


# (function, its known inputs, a flag for each input) -> its known outs and its linear program.
Recorder = Callable[[FlatFunction, Sequence[Any], Flags], tuple[list[Any], linearize.LinearProgram]]


class _Recording:
    """A run of a program that records its linear part.

    It is traced by those who ask for it, as each call between programs within programs counts
    against the depth of Python's stack.
    """

    __slots__ = ("_flags", "_fun", "_n_out", "_program", "_record")

    _program: linearize.LinearProgram
    _n_out: int  # results that are no residuals

    def __init__(self, closed: ClosedJaxpr, record: Recorder, flags: Flags) -> None:
        self._fun = jaxpr_as_fun(closed)
        self._record = record
        self._flags = flags

    def run(self, *values: Any) -> list[Any]:
        """From the known inputs to the known outs and the residuals."""
        outs, program = self._record(self._fun, values, self._flags)
        program = program.pruned()
        residuals = [r for r in program.residuals() if isinstance(r, Tracer)]
        self._n_out = len(outs)
        self._program = program.abstracted(residuals)
        return [*outs, *residuals]

    def parts(self, traced: ClosedJaxpr, linear_avals: Sequence[Any],
              instantiated: Flags | None = None
              ) -> tuple[ClosedJaxpr, ClosedJaxpr, tuple[int, ...], Flags]:
        """The known part, the linear part, which inputs of the first are residuals as they are, and
        which outs the second has: those that are not zero, and those `instantiated`.

        `traced` is `run`, traced.
        """
        program, n_out = self._program, self._n_out
        known, forwarded, reads = _residuals_to_keep(traced, n_out)
        wanted = nonzero_flags(program.outs)
        if instantiated is not None:
            wanted = tuple([a or b for a, b in zip(wanted, instantiated, strict=True)])
        avals = traced.in_avals
        residual_avals = [*known.out_avals[n_out:], *[avals[i] for i in forwarded]]
        n = len(residual_avals)

        def linear(*args: Any) -> list[Any]:
            filled = program.filled([
                args[i] if params is None else broadcast_in_dim_p.bind(args[i], **params)
                for i, params in reads])
            given = iter(args[n:])
            outs = filled.forward([None if v is None else next(given) for v in filled.invars])
            return selected(outs, wanted)

        linear_part = trace_to_jaxpr(linear, [*residual_avals, *linear_avals], traced.debug_info)
        return known, linear_part, forwarded, wanted


def _residuals_to_keep(known: ClosedJaxpr, n_out: int
                       ) -> tuple[ClosedJaxpr, tuple[int, ...], list[tuple[int, Params | None]]]:
    """What is to be kept of the residuals, which are the outputs from `n_out` on.

    Each is kept once and as it was before it was broadcast, and one that is an input not at all.
    The result is the program with those kept in place of the residuals, which inputs are residuals,
    and for each residual its place among these two and the parameters of its broadcast.
    """
    jaxpr = known.jaxpr
    broadcasts = {e.outvars[0]: e for e in jaxpr.eqns if e.primitive is broadcast_in_dim_p}
    inputs = {v: i for i, v in enumerate(jaxpr.invars)}
    sources: list[tuple[Any, Params | None]] = []
    for v in jaxpr.outvars[n_out:]:
        eqn = broadcasts.get(v)  # type: ignore[arg-type]
        sources.append((v, None) if eqn is None or type(eqn.invars[0]) is Literal
                       else (eqn.invars[0], eqn.params))
    kept = list(dict.fromkeys([v for v, _ in sources if v not in inputs]))
    given = list(dict.fromkeys([v for v, _ in sources if v in inputs]))
    place = {v: i for i, v in enumerate([*kept, *given])}
    program = jaxpr.replace(outvars=[*jaxpr.outvars[:n_out], *kept])
    return (ClosedJaxpr(program, known.consts), tuple([inputs[v] for v in given]),
            [(place[v], params) for v, params in sources])


# -- transposition ---------------------------------------------------------------------------------


def backward_jaxpr(closed: ClosedJaxpr, operands: Sequence[Any], cotangents: Tangents,
                   totals: Mapping[Any, Any] | None = None) -> list[Any]:
    """Cotangents of the operands that are `UndefinedPrimal`, None for the others.

    They contain the cotangents from elsewhere that `totals` gives for some of these operands.
    Equations without a linear operand are evaluated, the others are transposed; of what holds
    programs that part is evaluated which does not depend on linear operands.
    """
    jaxpr = closed.jaxpr
    env: dict[Var, Any] = dict(zip(jaxpr.constvars, closed.consts, strict=True))
    env.update(zip(jaxpr.invars, operands, strict=True))
    trace = linearize.LinearTrace()
    eqns = trace.eqns
    with source_info.replaying() as replay:
        for eqn in jaxpr.eqns:
            primitive = eqn.primitive
            values = [literal_value(v) if isinstance(v, Literal) else env[v] for v in eqn.invars]
            if any([type(v) is UndefinedPrimal for v in values]):
                apart = primitive.holder.split is not None or linearize.is_decomposed(primitive)
                if apart and not eqn.effects:
                    replay.source = eqn.source_info
                    results = linearize.taken_apart(trace, primitive, values, eqn.params)
                else:
                    results = [UndefinedPrimal(v.aval) for v in eqn.outvars]
                    eqns.append((primitive, values, results, eqn.params, eqn.source_info))
                env.update(zip(eqn.outvars, results, strict=True))
                continue
            replay.source = eqn.source_info
            out = primitive.bind(*values, **eqn.params)
            env.update(zip(eqn.outvars, out if primitive.multiple_results else [out], strict=True))
    cts: dict[UndefinedPrimal, Any] = dict(totals or ())
    for v, ct in zip(jaxpr.outvars, cotangents, strict=True):
        linear = None if isinstance(v, Literal) else env[v]
        if type(linear) is UndefinedPrimal and type(ct) is not Zero:
            linearize.accumulate(cts, linear, ct)
    linearize.backward_eqns(eqns, cts)
    return [
        None if type(x) is not UndefinedPrimal else cts[x] if x in cts
        else Zero.cotangent_of(x.aval)
        for x in operands]


class TransposedJaxpr(Record):
    """From (residuals, nonzero cotangents, totals) to the nonzero cotangents of the linear inputs.

    Behind these are the arrays of `log`, if backward rules write one.
    """

    jaxpr: ClosedJaxpr
    nonzero: Flags
    log: logs.LogTree | None = None

    def write_log(self, outs: Sequence[Any]) -> None:
        """Write what a call of the program with these results has logged."""
        if self.log is not None:
            logs.write(self.log.filled(outs[sum(self.nonzero):]))


def transpose_jaxpr(closed: ClosedJaxpr, linear: Flags, ct_nonzero: Flags,
                    instantiated: Flags | None = None) -> TransposedJaxpr:
    """The program that pulls cotangents back; those of inputs `instantiated` are results if zero.

    What rules log is lost.
    """
    pulled = transpose_with_log(closed, linear, ct_nonzero, instantiated)
    if pulled.log is None:
        return pulled
    logs.write(pulled.log.lost())
    n = sum(pulled.nonzero)
    outputs = tuple([i < n for i in range(len(pulled.jaxpr.out_avals))])
    program = part_of(pulled.jaxpr, outputs, (True,) * len(pulled.jaxpr.in_avals))
    return TransposedJaxpr(program, pulled.nonzero)


@derived
def transpose_with_log(closed: ClosedJaxpr, linear: Flags, ct_nonzero: Flags,
                       instantiated: Flags | None = None, added: Flags | None = None,
                       strong: Flags | None = None, strong_cts: Flags | None = None
                       ) -> TransposedJaxpr:
    """As `transpose_jaxpr`, with what rules log.

    The cotangents of inputs with a flag in `added` are added to totals, which are given; those of
    inputs with a flag in `strong` need not be of weak type where these are, and those of outputs
    with a flag in `strong_cts` are not.
    """
    in_avals, out_avals = closed.in_avals, list(closed.out_avals)
    if strong_cts is not None:
        out_avals = [a.strip_weak_type() if flag else a
                     for a, flag in zip(out_avals, strong_cts, strict=True)]
    residual_avals = selected(in_avals, negated(linear))
    none = (False,) * len(in_avals)
    added, strong = added or none, strong or none
    nonzero: Flags = ()
    log_tree: logs.LogTree | None = None

    def fun(*args: Any) -> list[Any]:
        nonlocal nonzero, log_tree
        values: Iterator[Any] = iter(args)
        operands = [UndefinedPrimal(a.strip_weak_type() if free else a) if lin else next(values)
                    for a, lin, free in zip(in_avals, linear, strong, strict=True)]
        cts = with_zeros([next(values) for flag in ct_nonzero if flag], ct_nonzero,
                         list(map(cotangent_aval, out_avals)))
        totals = dict(zip(selected(operands, added), values, strict=True))
        with logs.logging() as log:
            outs = selected(backward_jaxpr(closed, operands, cts, totals), linear)
        nonzero = nonzero_flags(outs)
        if instantiated is not None:
            nonzero = tuple(map(or_, nonzero, selected(instantiated, linear)))
        results = [instantiate(o) for o in selected(outs, nonzero)]
        if log:
            log_tree, arrays = logs.parted(log)
            results += arrays
        return results

    program = trace_to_jaxpr(
        fun, [*residual_avals, *map(cotangent_aval, [*selected(out_avals, ct_nonzero),
                                                     *selected(in_avals, added)])],
        closed.debug_info)
    return TransposedJaxpr(program, nonzero, log_tree)


def strong_cotangents(closed: ClosedJaxpr, cts: Tangents) -> Flags | None:
    """Which cotangents are of strong type where the outputs are not; None where none is."""
    flags = [v.aval.weak_type and type(ct) is not Zero and not get_aval(ct).weak_type
             for v, ct in zip(closed.jaxpr.outvars, cts, strict=True)]
    return tuple(flags) if True in flags else None


@derived_structure
def read_in_parts(closed: ClosedJaxpr) -> Flags:
    """Which inputs are operands of what adds to their cotangents in place."""
    found: set[Any] = set()
    for eqn in closed.jaxpr.eqns:
        if eqn.primitive.accumulate is not None:
            if eqn.primitive.holder.held is None:
                found.update(eqn.invars)
                continue
            held = eqn.primitive.holder.held(eqn.params)
            for program in held.programs:
                found.update(selected(eqn.invars[held.head:], read_in_parts(program)))
    return tuple([v in found for v in closed.jaxpr.invars])


def parts_added(totals: Tangents, in_parts: Flags) -> Flags:
    """Which totals go into the program of an equation."""
    return tuple([total is not None and flag for total, flag in zip(totals, in_parts, strict=True)])


def with_totals(cts: Sequence[Any], totals: Cotangents, added: Sequence[bool]) -> list[Any]:
    """The cotangents of operands, each with its total; it is in those that are `added` to it."""
    return [ct if total is None or inside else add_tangents(total, ct)
            for ct, total, inside in zip(cts, totals, added, strict=True)]


# -- batching --------------------------------------------------------------------------------------


def in_front(batched: Sequence[bool]) -> Places:
    """The dims of values of which some are batched, along their first axes."""
    return tuple([0 if flag else None for flag in batched])


class BatchedJaxpr(Record):
    """The program of a whole batch, and where its outputs have their batch axes."""

    jaxpr: ClosedJaxpr
    dims: Places


@derived
def batch_jaxpr(closed: ClosedJaxpr, dims: Places, axis: Axis, out_dims: Places | None = None,
                varying: Axes = NO_AXES) -> BatchedJaxpr:
    """The batched program. With `out_dims`, outputs are moved (or repeated) to have them there.
    Inputs that are batched vary along these axes of a mesh, too."""
    found: Places = ()

    def fun(*args: Any) -> list[Any]:
        nonlocal found
        outs, out = batch_flat(jaxpr_as_fun(closed), args, dims, axis)
        if out_dims is not None:
            outs = [cut_along(match_axis(x, d, to, axis), to, axis)
                    for x, d, to in zip(outs, out, out_dims, strict=True)]
            out = list(out_dims)
        found = tuple(out)
        return outs

    in_avals = [batched_aval(a, d, axis) for a, d in zip(closed.in_avals, dims, strict=True)]
    if varying:
        in_avals = [a if d is None else a.varying(a.place.mat.varying | varying)
                    for a, d in zip(in_avals, dims, strict=True)]
    return BatchedJaxpr(trace_to_jaxpr(fun, in_avals, closed.debug_info), found)


def batched_aval(aval: ShapedArray, dim: int | None, along: Axis | int) -> ShapedArray:
    """The aval of a batch along axis `dim`, of this many examples or along a mapped axis."""
    if dim is None:
        return aval
    if isinstance(along, Axis):
        return with_dim(aval, dim, along.size, cut=sharding_along(along))
    return with_dim(aval, dim, along)
