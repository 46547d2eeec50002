"""`cond` and `switch`: one of several programs, as a number says that is known at run time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np

from pyjx import configuration
from pyjx.core import dtypes
from pyjx.core.array_type import Array
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.brief import shortened
from pyjx.core.derived import derived
from pyjx.core.effects import join_effects, unrepeatable
from pyjx.core.evaluation import jaxpr_as_fun
from pyjx.core.jaxpr import Atom, ClosedJaxpr, JaxprEqn, Literal, Var
from pyjx.core.passes.tokens import threaded
from pyjx.core.primitive import Primitive, register, vary
from pyjx.core.records import Record
from pyjx.core.references import is_ref
from pyjx.core.trace import Tracer, is_concrete, trace_to_jaxpr
from pyjx.core.tracebacks import api_boundary
from pyjx.core.varying import varying_axes
from pyjx.engine import logs
from pyjx.engine.axes import at_front, broadcast_in_dim
from pyjx.engine.batching import BatchTrace
from pyjx.engine.discharge import discharged, store, values_of
from pyjx.engine.lanes import run_lanes
from pyjx.engine.linearize import LinearTrace
from pyjx.engine.references import Box
from pyjx.engine.residuals import CutEqn, Policy, cut_jaxpr, results_saved
from pyjx.engine.subjaxprs import (
    batch_jaxpr,
    check_operands,
    consts_as_inputs,
    dependent_outputs,
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
    transpose_with_log,
    with_cotangents,
    with_inputs,
    with_outputs,
    with_totals,
    with_zeros,
)
from pyjx.engine.tangents import UndefinedPrimal, Zero, full_aval, instantiate
from pyjx.engine.types import Dims, Flags, Operand, Params, Tangents, Values
from pyjx.lax.bodies import check_operands_distinct
from pyjx.lax.branches import trace_branches
from pyjx.lax.compare import clamp, eq, ne, select, select_n
from pyjx.lax.convert import convert_element_type, full, stop_gradient
from pyjx.lax.nary import FLOATING, INTEGER, accepts, operand
from pyjx.tree_util import tree_flatten, tree_unflatten

_no_operand = object()


@api_boundary
def cond(pred: Any, true_fun: Any, false_fun: Any, *operands: Any,
         operand: Any = _no_operand, linear: Any = None) -> Any:
    """`true_fun(*operands)` if `pred` holds, else `false_fun(*operands)`.

    Only one of the two runs, except where `vmap` maps over `pred`: then both do, and each example
    takes the results of its own. Both have derivatives in both modes.

    Args:
      pred: a boolean scalar, or a number, which holds if it is not 0.
      true_fun, false_fun: give results of one structure and the same types.
      operands: pytrees of arrays.
      operand: the only operand, by its name; an older form.
      linear: not used.

    The form `cond(pred, true_operand, true_fun, false_operand, false_fun)` is understood, too.

    Raises:
      TypeError: `pred` is no scalar, or the results differ in structure or types.

    >>> import pyjx as jax
    >>> float(jax.lax.cond(True, lambda x: x + 1, lambda x: x * 10, 5.0))
    6.0
    """
    if not (callable(true_fun) and callable(false_fun)):
        if len(operands) == 2 and callable(false_fun) and callable(operands[1]):
            # pred, true_operand, true_fun, false_operand, false_fun
            return cond(pred, lambda x, _: false_fun(x), lambda _, y: operands[1](y), true_fun,
                        operands[0])
        raise TypeError("lax.cond: true_fun and false_fun arguments should be callable.")
    operands = _operands("cond", operands, operand)
    holds = _predicate(pred)
    if configuration.disable_jit.value and is_concrete(holds):
        return (true_fun if holds else false_fun)(*operands)
    index = convert_element_type(holds, np.int32)
    return _choose("cond", index, (false_fun, true_fun), ("false_fun", "true_fun"), operands)


def _operands(op: str, operands: tuple[Any, ...], operand: Any) -> tuple[Any, ...]:
    """The operands, given one after the other or as the keyword of older programs."""
    if operand is _no_operand:
        return operands
    if operands:
        raise TypeError(f"lax.{op}: if 'operand' keyword is passed then no positional operands can "
                        f"be passed, got operand={shortened(operand)} and positional operands "
                        f"{shortened(operands)}")
    return (operand,)


_REAL = f"{INTEGER}, {FLOATING}"


def _predicate(pred: Any) -> Any:
    """`pred` as a boolean scalar."""
    if pred is None:
        raise TypeError("cond predicate is None")
    if isinstance(pred, str | list | tuple | dict):
        raise TypeError(f"lax.cond: Pred must be a scalar, got {pred} of type {type(pred)}. Pred "
                        f"type must be either boolean or number, got {pred}.")
    if isinstance(pred, int | float) or (isinstance(pred, np.generic | np.ndarray)
                                         and not pred.shape and accepts(_REAL, pred.dtype)):
        pred = np.bool_(pred != 0)  # here, as arrays may not hold what is large or tiny
    pred = operand("cond (pred)", pred)
    aval = get_aval(pred)
    if aval.shape:
        raise TypeError(f"lax.cond: Pred must be a scalar, got {pred} of shape {aval.shape}.")
    if aval.dtype == np.bool_:
        return pred
    if not accepts(_REAL, aval.dtype):
        raise TypeError("lax.cond: Pred type must be either boolean or number, got "
                        f"{dtypes.name(aval.dtype)}.")
    return ne(pred, convert_element_type(0, aval.dtype))


@api_boundary
def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any,
           operand: Any = _no_operand) -> Any:
    """`branches[index](*operands)`, with an index out of range taken to the nearest branch.

    Only one branch runs, except where `vmap` maps over `index`.

    Args:
      index: an integer scalar.
      branches: functions that give results of one structure and the same types.
      operands: pytrees of arrays.
      operand: the only operand, by its name; an older form.

    Raises:
      TypeError: `index` is no integer scalar, or the results differ in structure or types.
      ValueError: there are no branches.

    >>> import pyjx as jax
    >>> float(jax.lax.switch(1, [lambda x: x + 1, lambda x: x * 10], 5.0))
    50.0
    """
    if not isinstance(branches, Iterable) or not all(map(callable, branches := tuple(branches))):
        raise TypeError("lax.switch: branches argument should be a sequence of callables.")
    operands = _operands("switch", operands, operand)
    index = _index(index)
    if not branches:
        raise ValueError("lax.switch: Empty branch sequence")
    if len(branches) == 1:
        return branches[0](*operands)
    last = len(branches) - 1
    if configuration.disable_jit.value and is_concrete(index):
        return branches[min(max(int(index), 0), last)](*operands)
    index = convert_element_type(index, np.int32)
    names = [f"branch {i}" for i in range(len(branches))]
    return _choose("switch", clamp(np.int32(0), index, np.int32(last)), branches, names, operands)


def _index(index: Any) -> Any:
    if isinstance(index, str):
        raise TypeError(f"lax.switch: Index type must be an integer, got {index}.")
    index = operand("switch (index)", index)
    aval = get_aval(index)
    if aval.shape:
        raise TypeError(f"lax.switch: Branch index must be scalar, got {index} of shape "
                        f"{aval.shape}.")
    if not dtypes.issubdtype(aval.dtype, np.integer):
        raise TypeError(f"lax.switch: Index type must be an integer, got {index} as "
                        f"{dtypes.name(aval.dtype)}")
    return index


def _choose(op: str, index: Any, funs: Sequence[Callable[..., Any]], names: Sequence[str],
            operands: Sequence[Any]) -> Any:
    leaves, tree = tree_flatten(tuple(operands))
    leaves = [operand(f"{op} (operands)", x, i) for i, x in enumerate(leaves)]
    varying = varying_axes(get_aval(index))
    if varying:  # where devices choose differently, the sum of cotangents is outside of the choice
        leaves = [x if is_ref(x) else vary(x, varying) for x in leaves]
    check_operands_distinct(op, funs[-1], tree, leaves)
    closed, out_tree = trace_branches(op, names, funs, tree, list(map(get_aval, leaves)), varying)
    branches, consts = with_all_consts(closed)
    for fun, branch in zip(funs, closed, strict=True):
        check_operands_distinct(op, fun, tree, leaves, branch.consts)
    operands = [*consts, *leaves]
    passed = _passed_on(branches)
    if any([i is not None for i in passed]):  # these need no choice
        computed = tuple([n for n, i in enumerate(passed) if i is None])
        branches = [with_outputs(b, computed) for b in branches]
    outs = iter(cond_p.bind(index, *operands, branches=tuple(branches)))
    return tree_unflatten(out_tree, [
        next(outs) if i is None else _as_array(operands[i]) for i in passed])


def _as_array(x: Any) -> Array:
    shape = np.shape(x)
    return x if isinstance(x, Array) else broadcast_in_dim(x, shape, range(len(shape)))


def _passed_on(branches: Sequence[ClosedJaxpr]) -> list[int | None]:
    """For each result which operand it is, if all branches give the same one back."""
    places = [{v: i for i, v in enumerate(b.jaxpr.invars)} for b in branches]
    results = zip(*[b.jaxpr.outvars for b in branches], strict=True)
    found: list[int | None] = []
    for outs in results:
        each = {None if isinstance(v, Literal) else known.get(v)
                for v, known in zip(outs, places, strict=True)}
        i = each.pop()
        found.append(None if each else i)
    return found


def with_all_consts(branches: Sequence[ClosedJaxpr]) -> tuple[list[ClosedJaxpr], list[Any]]:
    """The branches with the constants of all of them, each once, as leading inputs."""
    consts = {id(c): c for b in branches for c in b.consts}
    joined = []
    for branch in branches:
        places = {id(c): i for i, c in enumerate(branch.consts)}
        n = len(branch.consts)
        order = [places.get(i, get_aval(c)) for i, c in consts.items()]
        joined.append(with_inputs(consts_as_inputs(branch), (
            *order, *range(n, n + len(branch.jaxpr.invars)))))
    return joined, list(consts.values())


# -- the primitive ---------------------------------------------------------------------------------


def _without_tracers(branches: Sequence[ClosedJaxpr], operands: Sequence[Any]
                     ) -> tuple[Sequence[ClosedJaxpr], Sequence[Any]]:
    """The branches and their operands; where branches hold tracers, these are operands, too."""
    if not any([isinstance(c, Tracer) for b in branches for c in b.consts]):
        return branches, operands
    branches, consts = with_all_consts(branches)
    return branches, [*consts, *operands]


def bind_cond(index: Any, branches: Sequence[ClosedJaxpr], operands: Sequence[Any],
              platforms: Params) -> list[Any]:
    """The results of the branch with this index; those that hold tracers get them as operands.

    Where `platforms` holds a parameter `branches_platforms`, the platform chooses the branch.
    """
    branches, operands = _without_tracers(branches, operands)
    return cond_p.bind(  # type: ignore[no-any-return]
        index, *operands, branches=tuple(branches), **platforms)


def _either(flags: Sequence[Sequence[bool]]) -> Flags:
    """Where one of several has a flag."""
    return tuple(map(any, zip(*flags, strict=True)))


def _cond_shape(*avals: Any, branches: tuple[ClosedJaxpr, ...], **_: Any) -> list[Any]:
    return branches[0].out_avals


def _cond_discharge(operands: Values, params: Params, derivable: bool) -> list[Any]:
    """All branches give the new value of a reference that one of them writes."""
    boxed = tuple([isinstance(x, Box) for x in operands[1:]])
    branches = params["branches"]
    n_out = len(branches[0].out_avals)
    found = [discharged(b, boxed, derivable) for b in branches]
    written = _either([f.written for f in found])
    values = values_of(operands)
    same: list[ClosedJaxpr] = []
    for f in found:
        given = iter(range(n_out, len(f.jaxpr.out_avals)))
        places = [next(given) if own else ~i for i, own in enumerate(f.written)]
        same.append(with_outputs(f.jaxpr, (*range(n_out), *selected(places, written))))
    platforms = {name: value for name, value in params.items() if name != "branches"}
    outs = bind_cond(values[0], same, values[1:], platforms)
    store(operands[1:], written, outs[n_out:])
    return outs[:n_out]


def _cond_jvp(primals: Values, tangents: Tangents, *, branches: tuple[ClosedJaxpr, ...],
              **platforms: Any) -> Any:
    nonzero = nonzero_flags(tangents[1:])
    either = _either([jvp_jaxpr(b, nonzero).nonzero for b in branches])
    pushed = [jvp_jaxpr(b, nonzero, either).jaxpr for b in branches]
    moving = [t for t in tangents[1:] if type(t) is not Zero]
    results = bind_cond(primals[0], pushed, [*primals[1:], *moving], platforms)
    n = len(either)
    return results[:n], with_zeros(results[n:], either, list(map(get_aval, results[:n])))


class _Slots(Record):
    """Places for the residuals of all branches, of which each branch fills some.

    `avals` are their types; `filled[b][s]` is the residual of branch b in slot s, or None.
    """

    avals: tuple[Any, ...]
    filled: list[tuple[int | None, ...]]


def _slots(residuals: Sequence[Sequence[Any]]) -> _Slots:
    """Branches share the slots of one type. Where the type is None a residual has no slot."""
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


@derived
def _with_slots(known: ClosedJaxpr, n_out: int, filled: tuple[int | None, ...],
                avals: tuple[Any, ...]) -> ClosedJaxpr:
    """The known part of a branch, whose residuals are results at their slots; zeros at others."""

    def fun(*args: Any) -> list[Any]:
        results = jaxpr_as_fun(known)(*args)
        return results[:n_out] + [
            full_aval(a, 0) if at is None else results[n_out + at]
            for at, a in zip(filled, avals, strict=True)]

    return trace_to_jaxpr(fun, known.in_avals, known.debug_info)


def _from_slots(program: ClosedJaxpr, own: Sequence[int], filled: Sequence[int | None],
                slot_avals: Sequence[Any], forwarded: Sequence[int], avals: Sequence[Any]
                ) -> ClosedJaxpr:
    """A program of (residuals of a branch, its own forwarded inputs, more) as one of (all slots,
    the inputs that any branch reads, more). `avals` are those of the inputs."""
    n = len([at for at in filled if at is not None])
    return with_inputs(program, (
        *[a if at is None else at for at, a in zip(filled, slot_avals, strict=True)],
        *[n + own.index(i) if i in own else avals[i] for i in forwarded],
        *range(n + len(own), len(program.in_avals))))


def _run_parts(trace: LinearTrace, index: Any, parts: Sequence[Any], known_args: Sequence[Any],
               n_out: int, tangents: Sequence[Any], platforms: Params
               ) -> tuple[list[Any], list[Any]]:
    """Run the known parts of the branches as one operation and record the linear ones as another:
    known results and tangents."""
    forwarded = sorted({i for p in parts for i in p.forwarded})
    slots = _slots([p.known.out_avals[n_out:] for p in parts])
    known = [_with_slots(p.known, n_out, filled, slots.avals)
             for p, filled in zip(parts, slots.filled, strict=True)]
    results = bind_cond(index, known, known_args, platforms)
    avals = [get_aval(x) for x in known_args]
    linear = [_from_slots(p.linear, p.forwarded, filled, slots.avals, forwarded, avals)
              for p, filled in zip(parts, slots.filled, strict=True)]
    operands = [*results[n_out:], *[known_args[i] for i in forwarded], *tangents]
    branches, given = _without_tracers(linear, operands)
    return results[:n_out], trace.record(
        cond_p, [index, *given], {**platforms, "branches": tuple(branches)})


def _cond_linearize(trace: LinearTrace, primals: Values, tangents: Tangents, *,
                    branches: tuple[ClosedJaxpr, ...], **platforms: Any) -> Any:
    nonzero = nonzero_flags(tangents[1:])
    if not any(nonzero):
        outs = cond_p.bind(*primals, branches=branches, **platforms)
        return outs, [Zero.of_primal(o) for o in outs]
    parts = [linearize_jaxpr(b, nonzero) for b in branches]
    either = _either([p.nonzero for p in parts])
    parts = [p if p.nonzero == either else linearize_jaxpr(b, nonzero, either)
             for p, b in zip(parts, branches, strict=True)]
    outs, out_tangents = _run_parts(
        trace, primals[0], parts, primals[1:], len(either), selected(tangents[1:], nonzero),
        platforms)
    return outs, with_zeros(out_tangents, either, list(map(get_aval, outs)))


def _cond_split(trace: LinearTrace, operands: Values, params: Params) -> list[Any]:
    branches = params["branches"]
    linear = trace.linear_flags(operands[1:])
    either = _either([dependent_outputs(b, linear) for b in branches])
    if all(either) and not any([b.effects for b in branches]):
        return trace.record(cond_p, operands, params)  # type: ignore[no-any-return]
    parts = [split_jaxpr(b, linear, either) for b in branches]
    outs, out_tangents = _run_parts(
        trace, operands[0], parts, selected(operands[1:], negated(linear)),
        len(either) - sum(either), selected(operands[1:], linear),
        {name: value for name, value in params.items() if name != "branches"})
    known, tangents = iter(outs), iter(out_tangents)
    return [next(tangents) if e else next(known) for e in either]


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


def _cond_transpose(cts: Tangents, *operands: Operand, **params: Any) -> list[Any]:
    return _cond_accumulate([None] * len(operands), cts, *operands, **params)


def _cond_accumulate(totals: Tangents, cts: Tangents, index: Any, *operands: Operand,
                     branches: tuple[ClosedJaxpr, ...], **platforms: Any) -> list[Any]:
    linear = linear_flags(operands)
    totals = totals[1:]
    added = parts_added(totals, _either([read_in_parts(b) for b in branches]))
    pulled = [transpose_with_log(b, linear, nonzero_flags(cts), False, added) for b in branches]
    either = _either([p.nonzero for p in pulled])
    avals = tuple([x.aval for x in operands if type(x) is UndefinedPrimal])
    logged = [p.jaxpr.out_avals[sum(p.nonzero):] for p in pulled]
    backward = [p.jaxpr if p.nonzero == either and not any(logged) else
                _with_zero_outs(p.jaxpr, p.nonzero, either, avals, tuple(chain(*logged[:i])),
                                tuple(chain(*logged[i + 1:])))
                for i, p in enumerate(pulled)]
    values = [*selected(operands, negated(linear)), *[ct for ct in cts if type(ct) is not Zero],
              *selected(totals, added)]
    outs = iter(bind_cond(index, backward, values, platforms))
    results = [None, *with_totals(with_cotangents(operands, either, outs), totals, added)]
    if any([p.log is not None for p in pulled]):
        logs.write_of_branches(index, [p.log for p in pulled], outs)
    return results


def _cond_batch(trace: BatchTrace, operands: Values, dims: Dims, *,
                branches: tuple[ClosedJaxpr, ...], **platforms: Any) -> Any:
    axis = trace.axis
    if dims[0] is not None:
        return _select_batch(trace, operands, dims, branches)
    places = tuple(dims[1:])
    either = _either([[d is not None for d in batch_jaxpr(b, places, axis).dims]
                      for b in branches])
    outs = in_front(either)
    batched = [batch_jaxpr(b, places, axis, outs).jaxpr for b in branches]
    return bind_cond(operands[0], batched, operands[1:], platforms), outs


def _select_batch(trace: BatchTrace, operands: Values, dims: Dims,
                  branches: Sequence[ClosedJaxpr]) -> Any:
    """Each example has an index of its own: all branches run, and each takes its own results.

    A branch that an example does not take has no derivative there, even where its own derivative
    is infinite: it gets its operands through a selection that cuts them off.
    """
    refused = unrepeatable(_effects({"branches": branches}))
    if refused:
        raise NotImplementedError(f"{refused[0]} effect not supported in vmap-of-cond: all "
                                  "branches run for all examples.")
    axis = trace.axis
    index = at_front(operands[0], dims[0], axis)
    places = (0,) * (len(operands) - 1)
    values = [at_front(x, d, axis) for x, d in zip(operands[1:], dims[1:], strict=True)]
    cases = []
    for i, branch in enumerate(branches):
        taken = eq(index, full((axis.size,), i, np.int32))
        cases.append(run_lanes(taken, branch, [cut_off(x, taken) for x in values], places, axis))
    outs = []
    for each in zip(*cases, strict=True):
        which = broadcast_in_dim(index, get_aval(each[0]).shape, (0,))
        if len(each) == 2:
            which = ne(which, full(get_aval(which).shape, 0, np.int32))
        outs.append(select_n(which, *each))
    return outs, [0] * len(outs)


def cut_off(x: Any, taken: Any) -> Any:
    """A batch of x whose derivative is zero for the examples that are not `taken`."""
    aval: ShapedArray = get_aval(x)
    if not dtypes.issubdtype(aval.dtype, np.inexact):
        return x
    return select(broadcast_in_dim(taken, aval.shape, (0,)), x, stop_gradient(x))


def _cond_dce(eqn: JaxprEqn, used: tuple[bool, ...]) -> JaxprEqn:
    branches = eqn.params["branches"]
    live = _either([live_inputs(b, used) for b in branches])
    parts = tuple([part_of(b, used, live) for b in branches])
    if parts == branches:
        return eqn
    return eqn.replace(
        invars=[eqn.invars[0], *selected(eqn.invars[1:], live)],
        outvars=selected(eqn.outvars, used), params={**eqn.params, "branches": parts},
        effects=_effects({"branches": parts}))


def _cond_cut(eqn: JaxprEqn, policy: Policy, needed: Flags) -> CutEqn:
    """The branches share the places of what they save; a result that all save stays in its own."""
    n_out, results = len(eqn.outvars), selected(eqn.outvars, needed)
    parts = [cut_jaxpr(b, policy, (True,) * n_out, needed) for b in eqn.params["branches"]]
    same = [{v: i for i, v in results_saved(p, len(p.known.out_avals) - n_out, results).items()}
            for p in parts]
    kept = [v for v in results if all(v in own for own in same)]
    in_place = [[own[v] for v in kept] for own in same]
    slots = _slots([[None if i in own else a for i, a in enumerate(p.known.out_avals[n_out:])]
                    for p, own in zip(parts, in_place, strict=True)])
    known = tuple([_with_slots(p.known, n_out, filled, slots.avals)
                   for p, filled in zip(parts, slots.filled, strict=True)])
    known_eqn = eqn.replace(
        outvars=[*eqn.outvars, *(new := [Var(a) for a in slots.avals])],
        params={**eqn.params, "branches": known}, effects=_effects({"branches": known}))
    saved = [*kept, *new]
    forwarded = sorted({i for p in parts for i in p.forwarded})
    avals = [v.aval for v in eqn.invars[1:]]
    rest = tuple([i for i, v in enumerate(results) if v not in kept])
    again = tuple([
        with_outputs(_from_slots(p.again, p.forwarded, (*own, *filled),
                                 [v.aval for v in saved], forwarded, avals), rest)
        for p, own, filled in zip(parts, in_place, slots.filled, strict=True)])
    effects = _effects({"branches": again})
    if not rest and not effects:
        return CutEqn(known_eqn, saved, None)
    return CutEqn(known_eqn, saved, eqn.replace(
        invars=[eqn.invars[0], *saved, *[eqn.invars[1 + i] for i in forwarded]],
        outvars=[results[i] for i in rest], params={**eqn.params, "branches": again},
        effects=effects))


def _cond_thread(eqn: JaxprEqn, token: Atom, after: Var) -> list[JaxprEqn]:
    index, *operands = eqn.invars
    branches = tuple(map(threaded, eqn.params["branches"]))
    return [eqn.replace(invars=[index, token, *operands], outvars=[after, *eqn.outvars],
                        params={**eqn.params, "branches": branches})]


def _cond_check(eqn: JaxprEqn) -> None:
    for k, branch in enumerate(eqn.params["branches"]):
        check_operands(f"branch {k} of cond", eqn.invars[1:], branch.in_avals)
        for i, (var, aval) in enumerate(zip(eqn.outvars, branch.out_avals, strict=True)):
            if not aval.same_type(var.aval):
                raise TypeError(f"branch {k} of cond: result {i} is of type {aval}, expected "
                                f"{var.aval}")


def _effects(params: Params) -> Any:
    return join_effects(params["branches"])


def _cond_count(counted: Any, params: Params, times: int) -> None:
    counted.dearest(params["branches"], times)


cond_p = register(Primitive(
    "cond", shape_rule=_cond_shape, count=_cond_count, multiple_results=True, cached=False,
    jvp=_cond_jvp,
    linearize=_cond_linearize, split=_cond_split, transpose=_cond_transpose,
    accumulate=_cond_accumulate, batch_axis=_cond_batch, dce=_cond_dce, cut=_cond_cut,
    thread=_cond_thread, check=_cond_check, effects=_effects, discharge=_cond_discharge,
))
