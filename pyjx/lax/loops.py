"""`while_loop`: repeats a body for as long as a condition holds.

It has forward-mode derivatives and batching. Reverse mode needs the carry of every iteration, last
first; with a bound on their number these are computed again from few that are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pyjx import configuration
from pyjx.core.avals import ShapedArray, abstract_token, get_aval
from pyjx.core.derived import derived, derived_structure
from pyjx.core.effects import Effects, is_ordered, unrepeatable
from pyjx.core.evaluation import jaxpr_as_fun
from pyjx.core.integers import as_int
from pyjx.core.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Var
from pyjx.core.name_stack import current_name_stack, set_name_stack
from pyjx.core.named_axes import Axis
from pyjx.core.open_sums import cotangent_aval
from pyjx.core.passes.dce import without_effects
from pyjx.core.passes.tokens import threaded
from pyjx.core.primitive import Primitive, register
from pyjx.core.records import Record
from pyjx.core.source_info import no_source_info
from pyjx.core.trace import is_concrete, trace_to_jaxpr
from pyjx.core.tracebacks import api_boundary
from pyjx.engine.axes import at_front, broadcast_in_dim
from pyjx.engine.batching import BatchTrace
from pyjx.engine.calls import call, call_eqn, call_params, jit_p
from pyjx.engine.discharge import discharged
from pyjx.engine.holders import Held, Holder, Programs, Roles, either
from pyjx.engine.lanes import batched, run_lanes
from pyjx.engine.linearize import LinearTrace
from pyjx.engine.references import Box
from pyjx.engine.subjaxprs import (
    BatchedJaxpr,
    batch_jaxpr,
    carry_as_consts,
    check_operands,
    consts_as_inputs,
    dependent_outputs,
    fixpoint,
    in_front,
    linear_flags,
    linearize_jaxpr,
    live_inputs,
    negated,
    nonzero_flags,
    part_of,
    selected,
    split_jaxpr,
    tangent_avals,
    transpose_jaxpr,
    unchanged_carry,
    with_cotangents,
    with_inputs,
    with_outputs,
    with_zeros,
    without_tracers,
)
from pyjx.engine.tangents import Zero, add_tangents, instantiate
from pyjx.engine.types import Dims, Flags, Operand, Params, Tangents, Value, Values
from pyjx.lax.agreement import as_in_program, check_carry, promote_carry, varied
from pyjx.lax.bitwise import bitwise_and
from pyjx.lax.bodies import trace_body
from pyjx.lax.compare import lt, select
from pyjx.lax.conditionals import cut_off
from pyjx.lax.elementwise import add
from pyjx.lax.nary import operand
from pyjx.lax.reductions import reduce_or
from pyjx.lax.replays import Replay
from pyjx.tree_util import tree_flatten, tree_map, tree_unflatten, treedef_is_leaf


@api_boundary
def while_loop(cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: Any, *,
               max_steps: int | None = None) -> Any:
    """`val = body_fun(val)` for as long as `cond_fun(val)` holds, starting from `init_val`.

    Args:
      cond_fun: gives a boolean scalar.
      body_fun: gives a value with the structure, shapes and dtypes of its argument.
      init_val: pytree of arrays.
      max_steps: after so many iterations the loop ends though the condition holds. With this bound
        reverse mode works: it keeps a number of carries that grows with the logarithm of
        `max_steps`, and computes the others again, about as many times. An extension of pyjx.

    Components of `init_val` that are Python scalars take the types that the body gives them.

    Raises:
      TypeError: the condition is no boolean scalar, or the body changes a type.
      ValueError: `max_steps` is negative.

    >>> import pyjx as jax
    >>> int(jax.lax.while_loop(lambda x: x < 100, lambda x: 2 * x, 3))
    192
    >>> double = lambda x: jax.lax.while_loop(lambda x: x < 100, lambda x: 2 * x, x, max_steps=50)
    >>> float(jax.grad(double)(3.0))
    64.0
    """
    if not callable(cond_fun) or not callable(body_fun):
        raise TypeError("lax.while_loop: body_fun and cond_fun arguments should be callable.")
    bound = _bound(max_steps)
    if configuration.disable_jit.value:
        init_val = tree_map(as_in_program, init_val)
        while bound != 0 and is_concrete(holds := cond_fun(init_val)):
            if not holds:
                return init_val
            init_val = tree_map(as_in_program, body_fun(init_val))
            bound = None if bound is None else bound - 1
        if bound == 0:
            return init_val
    leaves, tree = tree_flatten(init_val)
    leaves = [operand("while_loop (init_val)", x, i) for i, x in enumerate(leaves)]
    avals = list(map(get_aval, leaves))
    body, out_tree = trace_body("while_loop", "body_fun", body_fun, tree, avals)
    if out_tree == tree:
        leaves, changed = promote_carry(leaves, body.out_avals)
        more = leaves if changed else varied(leaves, body.out_avals)
        while more is not None:
            leaves, avals = more, list(map(get_aval, more))
            body, out_tree = trace_body("while_loop", "body_fun", body_fun, tree, avals)
            more = varied(leaves, body.out_avals)
    check_carry("while_loop", "body_fun", body_fun, tree, avals, out_tree, body.out_avals)
    cond, cond_tree = trace_body("while_loop", "cond_fun", cond_fun, tree, avals)
    _check_cond(cond_tree, cond.out_avals)
    cond_jaxpr, body_jaxpr = consts_as_inputs(cond), consts_as_inputs(body)
    if bound is not None:
        leaves = [np.int32(0), *leaves]
        cond_jaxpr = _cond_of_counted(cond_jaxpr, len(cond.consts), bound)
        body_jaxpr = _body_of_counted(body_jaxpr, len(body.consts))
    outs = bind_while(cond_jaxpr, cond.consts, body_jaxpr, body.consts, leaves, bound)
    return tree_unflatten(tree, outs if bound is None else outs[1:])


def _bound(max_steps: Any) -> int | None:
    if max_steps is None:
        return None
    bound = as_int("while_loop", "max_steps", max_steps)
    if not 0 <= bound < 2 ** 31:
        raise ValueError("while_loop: max_steps must be at least 0 and less than 2**31, got "
                         f"{bound}.")
    return bound


@derived
def _cond_of_counted(cond: ClosedJaxpr, n_consts: int, bound: int) -> ClosedJaxpr:
    """The condition, from a carry with the number of iterations before the rest of it."""

    def fun(*args: Any) -> list[Any]:
        holding = jaxpr_as_fun(cond)(*args[:n_consts], *args[n_consts + 1:])[0]
        return [bitwise_and(lt(args[n_consts], np.int32(bound)), holding)]

    avals = cond.in_avals
    return trace_to_jaxpr(fun, [*avals[:n_consts], _COUNT, *avals[n_consts:]], cond.debug_info)


@derived
def _body_of_counted(body: ClosedJaxpr, n_consts: int) -> ClosedJaxpr:

    def fun(*args: Any) -> list[Any]:
        return [add(args[n_consts], np.int32(1)),
                *jaxpr_as_fun(body)(*args[:n_consts], *args[n_consts + 1:])]

    avals = body.in_avals
    return trace_to_jaxpr(fun, [*avals[:n_consts], _COUNT, *avals[n_consts:]], body.debug_info)


_COUNT = ShapedArray((), np.dtype(np.int32))


def _check_cond(tree: Any, avals: Sequence[ShapedArray]) -> None:
    if not treedef_is_leaf(tree) or len(avals) != 1:  # None is a leaf of no values
        raise TypeError("while_loop: cond_fun must return a boolean scalar, but got pytree "
                        f"{tree}.")
    if avals[0].shape != () or avals[0].dtype != np.bool_:
        raise TypeError("while_loop: cond_fun must return a boolean scalar, but got output type(s) "
                        f"{list(avals)}.")


# -- the primitive ---------------------------------------------------------------------------------


class _Parts(Record):
    """What a while equation has one entry of each for: an operand, a tangent or a dim."""

    cond_consts: list[Any]
    body_consts: list[Any]
    carry: list[Any]


def _parts(xs: Values, params: Params) -> _Parts:
    a = params["cond_nconsts"]
    b = a + params["body_nconsts"]
    return _Parts(list(xs[:a]), list(xs[a:b]), list(xs[b:]))


def bind_while(cond: ClosedJaxpr, cond_consts: Sequence[Any], body: ClosedJaxpr,
               body_consts: Sequence[Any], carry: Sequence[Any], max_steps: int | None
               ) -> list[Any]:
    """The last carry of a loop that does at most `max_steps` iterations, if that is known.

    What the body does not change of the carry is a constant of both programs.
    """
    cond, more_cond = without_tracers(cond)
    body, more_body = without_tracers(body)
    cond_consts, body_consts = [*more_cond, *cond_consts], [*more_body, *body_consts]
    same = unchanged_carry(body, len(body_consts), len(carry))
    if all(same):
        same = (False,) * len(carry)
    if any(same):
        cond = carry_as_consts(cond, len(cond_consts), same)
        body = with_outputs(carry_as_consts(body, len(body_consts), same),
                            tuple(selected(range(len(carry)), negated(same))))
        cond_consts += selected(carry, same)
        body_consts += selected(carry, same)
    outs = iter(while_p.bind(
        *cond_consts, *body_consts, *selected(carry, negated(same)),
        cond_jaxpr=cond, cond_nconsts=len(cond_consts),
        body_jaxpr=body, body_nconsts=len(body_consts), max_steps=max_steps))
    return [x if flag else next(outs) for x, flag in zip(carry, same, strict=True)]


def _while_discharge(operands: Values, params: Params, derivable: bool) -> list[Any]:
    """References that are written are carried, in front of the carry."""
    given = _parts(operands, params)
    boxes = list(dict.fromkeys(
        [x for x in (*given.cond_consts, *given.body_consts) if isinstance(x, Box)]))
    cond = _with_boxes(params["cond_jaxpr"], given.cond_consts, len(given.carry), boxes, derivable)
    body = _with_boxes(params["body_jaxpr"], given.body_consts, len(given.carry), boxes, derivable)
    start = [*[b.value for b in boxes], *given.carry]
    cond_consts, body_consts = _without_boxes(given.cond_consts), _without_boxes(given.body_consts)
    if cond.writes:
        outs = _while_writing(cond.jaxpr, cond_consts, body.jaxpr, body_consts, start, len(boxes),
                              params["max_steps"])
    else:
        test = with_outputs(cond.jaxpr, (len(boxes),))
        outs = bind_while(test, cond_consts, body.jaxpr, body_consts, start, params["max_steps"])
    for i, box in enumerate(boxes):
        if any([writes and writes[i] for writes in (cond.writes, body.writes)]):
            box.value = outs[i]
    return outs[len(boxes):]


def _without_boxes(xs: Sequence[Any]) -> list[Any]:
    return [x for x in xs if not isinstance(x, Box)]


class _Boxed(Record):
    """From (constants, values of all references, carry) to (these values, results), and which
    references are written; `writes` is empty if none is."""

    jaxpr: ClosedJaxpr
    writes: Flags


def _with_boxes(closed: ClosedJaxpr, consts: Sequence[Any], n_carry: int, boxes: Sequence[Box],
                derivable: bool) -> _Boxed:
    boxed = [isinstance(x, Box) for x in consts]
    found = discharged(closed, (*boxed, *(False,) * n_carry), derivable)
    where = {id(x): i for i, x in enumerate(consts) if isinstance(x, Box)}
    plain = [i for i, b in enumerate(boxed) if not b]
    n = len(consts)
    values = [where.get(id(b), b.aval.inner_aval) for b in boxes]
    program = with_inputs(found.jaxpr, (*plain, *values, *range(n, n + n_carry)))
    n_out = len(closed.out_avals)
    given = iter(range(n_out, len(found.jaxpr.out_avals)))
    new = {i: next(given) for i, flag in enumerate(found.written) if flag}
    writes = tuple([where.get(id(b), -1) in new for b in boxes])
    order = [new[where[id(b)]] if flag else ~(len(plain) + i)
             for i, (b, flag) in enumerate(zip(boxes, writes, strict=True))]
    return _Boxed(with_outputs(program, (*order, *range(n_out))), writes if any(writes) else ())


def _while_writing(cond: ClosedJaxpr, cond_consts: list[Any], body: ClosedJaxpr,
                   body_consts: list[Any], start: list[Any], n_refs: int, max_steps: int | None
                   ) -> list[Any]:
    """A loop whose condition writes references: it is asked at the end of each iteration, and
    whether it holds is carried."""
    m = len(cond_consts)
    test, step = jaxpr_as_fun(cond), jaxpr_as_fun(body)

    def asked(consts: Sequence[Any], carry: Sequence[Any]) -> list[Any]:
        *refs, holds = test(*consts, *carry)
        return [holds, *refs, *carry[n_refs:]]

    def again(*args: Any) -> list[Any]:
        consts, more, carry = args[:m], args[m:m + len(body_consts)], args[m + len(body_consts):]
        return asked(consts, step(*more, *carry[1:]))

    first = asked(cond_consts, start)
    carry_avals = list(map(get_aval, first))
    consts = [*cond_consts, *body_consts]
    step_jaxpr = trace_to_jaxpr(again, [*map(get_aval, consts), *carry_avals], body.debug_info)
    holds = trace_to_jaxpr(lambda holds, *_: [holds], carry_avals, cond.debug_info)
    return bind_while(holds, [], step_jaxpr, consts, first, max_steps)[1:]


# -- reverse mode ----------------------------------------------------------------------------------


def _while_linearize(trace: LinearTrace, primals: Values, tangents: Tangents, **params: Any
                     ) -> Any:
    """The loop now; in the linear program one that does it again and moves tangents along."""
    values, given = _parts(primals, params), _parts(tangents, params)
    cond, body, n = params["cond_jaxpr"], params["body_jaxpr"], len(values.carry)
    consts = nonzero_flags(given.body_consts)
    nonzero = fixpoint(lambda flags: linearize_jaxpr(body, consts + flags).nonzero,
                       nonzero_flags(given.carry))
    outs = while_p.bind(*primals, **params)
    if not any(nonzero):
        return outs, [Zero.of_primal(x) for x in outs]
    _check_repeatable(params, "the derivative of a while_loop")
    const_moving = selected(given.body_consts, consts)
    moving = [instantiate(t) for t in selected(given.carry, nonzero)]
    avals = list(map(get_aval, moving))
    both, more = without_tracers(_with_tangents(body, consts, nonzero))
    recorded = trace.record(
        while_p,
        [*values.cond_consts, *more, *values.body_consts, *const_moving, *values.carry, *moving],
        {**params, "cond_jaxpr": with_inputs(
            without_effects(cond), (*range(len(cond.in_avals)), *avals)),
         "body_jaxpr": both,
         "body_nconsts": len(more) + len(values.body_consts) + len(const_moving)})
    return outs, with_zeros(recorded[n:], nonzero, list(map(get_aval, values.carry)))


@derived
def _with_tangents(body: ClosedJaxpr, consts: Flags, carry: Flags) -> ClosedJaxpr:
    """From (constants, nonzero tangents of them, carry, nonzero tangents of it) to the next carry
    and its tangents; what computes the one and what computes the other are apart."""
    parts = linearize_jaxpr(without_effects(body), consts + carry, carry)
    avals, n = body.in_avals, len(consts)

    def fun(*args: Any) -> list[Any]:
        given = iter(args)
        values = [next(given) for _ in consts]
        tangents = [next(given) for flag in consts if flag]
        values += [next(given) for _ in carry]
        tangents += given
        outs = jaxpr_as_fun(parts.known)(*values)
        return outs[:len(carry)] + jaxpr_as_fun(parts.linear)(
            *outs[len(carry):], *[values[i] for i in parts.forwarded], *tangents)

    return trace_to_jaxpr(fun, [*avals[:n], *tangent_avals(avals[:n], consts), *avals[n:],
                                *tangent_avals(avals[n:], carry)], body.debug_info)


def _linear_carry(body: ClosedJaxpr, linear_consts: Flags, start: Flags) -> Flags:
    """Which components of the carry are linear, from the start or later."""
    return fixpoint(lambda flags: dependent_outputs(body, linear_consts + flags), start)


def _known_cond(cond: ClosedJaxpr, linear_consts: Flags, linear: Flags) -> ClosedJaxpr:
    """The condition as a program of the constants and components of the carry that are not linear.
    """
    kept = negated(linear_consts + linear)
    if any([live and not keep
            for live, keep in zip(live_inputs(cond, (True,)), kept, strict=True)]):
        raise TypeError("The function is not linear: the condition of a while_loop depends on its "
                        "arguments.")
    return part_of(cond, (True,), kept)


def _while_split(trace: LinearTrace, operands: Values, params: Params) -> list[Any]:
    """What does not depend on tangents is computed now; the recorded loop computes it again."""
    values, body = _parts(operands, params), params["body_jaxpr"]
    consts, start = map(trace.linear_flags, (values.body_consts, values.carry))
    linear = _linear_carry(body, consts, start)
    tested = trace.linear_flags(values.cond_consts)
    cond = _known_cond(params["cond_jaxpr"], tested, linear)
    known = iter(() if all(linear) else bind_while(
        cond, selected(values.cond_consts, negated(tested)),
        part_of(body, negated(linear), negated(consts + linear)),
        selected(values.body_consts, negated(consts)), selected(values.carry, negated(linear)),
        params["max_steps"]))
    tangents = trace.record(while_p, operands, {
        **params, "cond_jaxpr": without_effects(params["cond_jaxpr"]),
        "body_jaxpr": without_effects(body)})
    return [t if lin else next(known) for t, lin in zip(tangents, linear, strict=True)]


def _while_transpose(cts: Tangents, *operands: Operand, **params: Any) -> Tangents:
    bound = params["max_steps"]
    if bound is None:
        raise ValueError(
            "Reverse-mode differentiation does not work for lax.while_loop or lax.fori_loop with "
            "dynamic start/stop values. Give lax.while_loop a bound on its iterations (max_steps), "
            "use lax.scan or lax.fori_loop with static bounds, or forward mode (jax.jvp, "
            "jax.jacfwd).")
    values, body = _parts(operands, params), params["body_jaxpr"]
    consts, start = map(linear_flags, (values.body_consts, values.carry))
    linear = _linear_carry(body, consts, start)
    cond = _known_cond(params["cond_jaxpr"], (False,) * params["cond_nconsts"], linear)
    backward = _backward(body, cond, consts, linear, bound)
    program, more = without_tracers(backward.jaxpr)
    outs = iter(call(
        program, "while_transposed", *more, *values.cond_consts,
        *selected(values.body_consts, negated(consts)), *selected(values.carry, negated(linear)),
        *map(instantiate, selected(cts, linear))))
    found = with_cotangents(values.body_consts, backward.consts_nonzero, outs)
    pulled = [next(outs) if lin else None for lin in linear]
    return [*[None] * len(values.cond_consts), *found,
            *[ct if lin else None for ct, lin in zip(pulled, start, strict=True)]]


class _Backward(Record):
    """From (constants of the condition, known ones of the body, the known carry at the start,
    cotangents of the linear carry at the end) to (cotangents of the linear constants that have
    some, cotangents of the linear carry at the start)."""

    jaxpr: ClosedJaxpr
    consts_nonzero: Flags


@derived
def _backward(body: ClosedJaxpr, cond: ClosedJaxpr, linear_consts: Flags, linear: Flags, bound: int
              ) -> _Backward:
    m, n_known = len(linear_consts), len(linear) - sum(linear)
    parts = split_jaxpr(body, linear_consts + linear, linear)
    n_linear = sum(linear_consts) + sum(linear)
    pulled = transpose_jaxpr(
        parts.linear, (False,) * (len(parts.linear.in_avals) - n_linear) + (True,) * n_linear,
        (True,) * sum(linear))
    consts_nonzero = pulled.nonzero[:sum(linear_consts)]
    carry_nonzero = pulled.nonzero[sum(linear_consts):]
    const_avals = selected(body.in_avals[:m], negated(linear_consts))
    known_avals = selected(body.in_avals[m:], negated(linear))
    carry_avals = list(map(cotangent_aval, selected(body.in_avals[m:], linear)))
    sum_avals = list(map(cotangent_aval, selected(
        selected(body.in_avals[:m], linear_consts), consts_nonzero)))
    cond_avals = cond.in_avals[:len(cond.in_avals) - n_known]
    forward = part_of(parts.known, (True,) * n_known + (False,) * (
        len(parts.known.out_avals) - n_known), (True,) * len(parts.known.in_avals))

    def fun(*args: Any) -> list[Any]:
        given = iter(args)
        cond_consts, consts, start, cts = [
            [next(given) for _ in part]
            for part in (cond_avals, const_avals, known_avals, carry_avals)]

        def pull(carry: Sequence[Any], back: Sequence[Any]) -> list[Any]:
            """Cotangents before an iteration, from those after it."""
            values = [*consts, *carry]
            residuals = jaxpr_as_fun(parts.known)(*values)[n_known:]
            outs = iter(jaxpr_as_fun(pulled.jaxpr)(
                *residuals, *[values[i] for i in parts.forwarded], *back[len(sum_avals):]))
            return [*[add_tangents(x, next(outs)) for x in back[:len(sum_avals)]],
                    *[next(outs) if flag else instantiate(Zero(a))
                      for flag, a in zip(carry_nonzero, carry_avals, strict=True)]]

        replay = Replay(lambda carry: jaxpr_as_fun(cond)(*cond_consts, *carry)[0],
                        lambda carry: jaxpr_as_fun(forward)(*consts, *carry), pull, bound, _loop)
        sums = [instantiate(Zero(a)) for a in sum_avals]
        return replay.reverse(replay.levels, start, [*sums, *cts])

    traced = trace_to_jaxpr(fun, [*cond_avals, *const_avals, *known_avals, *carry_avals],
                            body.debug_info)
    return _Backward(traced, consts_nonzero)


def _loop(holds: Callable[..., Any], step: Callable[..., list[Any]], start: Sequence[Any],
          max_steps: int) -> list[Any]:
    """A loop over a flat carry."""
    avals = list(map(get_aval, start))
    cond = trace_to_jaxpr(lambda *carry: [holds(*carry)], avals)
    body = trace_to_jaxpr(step, avals)
    return bind_while(consts_as_inputs(cond), cond.consts, consts_as_inputs(body), body.consts,
                      start, max_steps)


# -- batching, dead code ---------------------------------------------------------------------------


def _while_batch(trace: BatchTrace, operands: Values, dims: Dims, **params: Any
                 ) -> tuple[Values, Dims]:
    """Components that an iteration batches are batched from the start.

    With a batched condition the loop goes on while any example does, and the examples that are
    done keep their values.
    """
    axis = trace.axis
    values, given = _parts(operands, params), _parts(dims, params)
    cond, body = params["cond_jaxpr"], params["body_jaxpr"]
    cond_dims, body_dims = [in_front([d is not None for d in part])
                            for part in (given.cond_consts, given.body_consts)]

    def batched_cond(flags: Sequence[bool]) -> BatchedJaxpr:
        return batch_jaxpr(cond, (*cond_dims, *in_front(flags)), axis)

    def grow(flags: Sequence[bool]) -> list[bool]:
        each = batched_cond(flags).dims[0] is not None
        made = batch_jaxpr(body, (*body_dims, *in_front(flags)), axis).dims
        return [d is not None or each for d in made]

    flags = fixpoint(grow, [d is not None for d in given.carry])
    places = in_front(flags)
    new_cond, cond_out = batched_cond(flags)
    cond_consts = [x if d is None else at_front(x, d, axis)
                   for x, d in zip(values.cond_consts, given.cond_consts, strict=True)]
    body_consts = [x if d is None else at_front(x, d, axis)
                   for x, d in zip(values.body_consts, given.body_consts, strict=True)]
    carry = [at_front(x, d, axis) if flag else x
             for x, d, flag in zip(values.carry, given.carry, flags, strict=True)]
    if cond_out[0] is not None:
        _check_repeatable(params, "a while_loop with a batched predicate")
        step = _Step(body, (*body_dims, *places), axis, len(cond_consts), len(carry),
                     params["max_steps"] is not None)
        if is_ordered(new_cond.effects):
            return _asked_once(new_cond, cond_consts, step, body_consts, carry,
                               params["max_steps"]), places
        body_consts = [*cond_consts, *body_consts]
        new_body = _keeping_what_is_done(new_cond, step)
        new_cond = _while_any(new_cond)
    else:
        new_body = batch_jaxpr(body, (*body_dims, *places), axis, places).jaxpr
    return bind_while(new_cond, cond_consts, new_body, body_consts, carry,
                      params["max_steps"]), places


class _Step(Record):
    """The body of a loop whose condition says for which examples it runs: the program of one, and
    where its operands are batched. They are `n_cond` constants of the condition, its own, and
    the carry. With `cut` the carry of an example that is done has no derivative in the body, which
    may be infinite there."""

    body: ClosedJaxpr
    dims: tuple[int | None, ...]
    axis: Axis
    n_cond: int
    n_carry: int
    cut: bool

    def run(self, holding: Value, consts: Sequence[Value], carry: Sequence[Value]) -> list[Value]:
        """What the body gives; `consts` are those of the condition, too."""
        before = [cut_off(x, holding) for x in carry] if self.cut else carry
        return run_lanes(holding, self.body, [*consts[self.n_cond:], *before], self.dims,
                         self.axis)

    def in_avals(self, cond: ClosedJaxpr) -> list[Any]:
        own = batched(self.body, self.dims, self.axis).in_avals
        return [*cond.in_avals[:self.n_cond], *own]


def _asked_once(cond: ClosedJaxpr, cond_consts: Sequence[Any], step: _Step,
                body_consts: Sequence[Any], carry: Sequence[Any], bound: int | None) -> list[Any]:
    """A batched loop whose condition has ordered effects: they are had once before the loop and
    once an iteration, so the loop carries for which examples the condition holds."""
    holding = call(cond, "while_cond", *cond_consts, *carry)[0]
    avals = list(map(get_aval, [holding, *carry]))
    going_on = trace_to_jaxpr(lambda holding, *carry: [reduce_or(holding, (0,))], avals)
    return bind_while(going_on, [], _body_then_condition(cond, step), [*cond_consts, *body_consts],
                      [holding, *carry], bound)[1:]


@derived
def _body_then_condition(cond: ClosedJaxpr, step: _Step) -> ClosedJaxpr:
    """From (constants, flags, carry) to new flags and a new carry: for examples with a flag that of
    the body, and whether the condition holds for it."""

    def fun(*args: Value) -> list[Any]:
        consts, (holding, *carry) = args[:-step.n_carry - 1], args[-step.n_carry - 1:]
        outs = step.run(holding, consts, carry)
        again = jaxpr_as_fun(cond)(*consts[:step.n_cond], *outs)[0]
        return [bitwise_and(holding, again), *_where(holding, outs, carry)]

    avals = step.in_avals(cond)
    avals.insert(len(avals) - step.n_carry, cond.out_avals[0])
    return trace_to_jaxpr(fun, avals, step.body.debug_info)


def _where(holding: Value, new: Sequence[Value], old: Sequence[Value]) -> list[Value]:
    """New values of the examples with a flag, the old ones of the others."""
    return [select(broadcast_in_dim(holding, get_aval(y).shape, (0,)), x, y)
            for x, y in zip(new, old, strict=True)]


@derived
def _while_any(cond: ClosedJaxpr) -> ClosedJaxpr:
    """Whether a condition holds for one of a batch of examples."""
    return trace_to_jaxpr(lambda *xs: [reduce_or(jaxpr_as_fun(cond)(*xs)[0], (0,))], cond.in_avals)


@derived
def _keeping_what_is_done(cond: ClosedJaxpr, step: _Step) -> ClosedJaxpr:
    """The body, from (constants, carry), where the condition holds; the old carry elsewhere."""

    def fun(*args: Value) -> list[Any]:
        consts, carry = args[:len(args) - step.n_carry], args[len(args) - step.n_carry:]
        with set_name_stack(current_name_stack().beside("body_pred")):
            holding = jaxpr_as_fun(cond)(*consts[:step.n_cond], *carry)[0]
        return _where(holding, step.run(holding, consts, carry), carry)

    return trace_to_jaxpr(fun, step.in_avals(cond))


@derived_structure
def _body_then_cond(body: ClosedJaxpr, cond: ClosedJaxpr, n_cond: int, n_body: int
                    ) -> ClosedJaxpr:
    """From (constants of the condition, its own, token, holds, carry) to (token, holds, carry),
    for programs with tokens."""
    consts = [Var(a) for a in cond.in_avals[1:n_cond + 1]]
    own = [Var(a) for a in body.in_avals[1:n_body + 1]]
    token, holds = Var(abstract_token), Var(cond.out_avals[1])
    carry = [Var(a) for a in body.in_avals[n_body + 1:]]
    between, *now = [Var(a) for a in body.out_avals]
    last, again = Var(abstract_token), Var(cond.out_avals[1])
    eqns = [
        JaxprEqn(jit_p, [token, *own, *carry], [between, *now],
                 call_params(body, "while_body", 1 + len(own) + len(carry)), body.effects,
                 no_source_info),
        JaxprEqn(jit_p, [between, *consts, *now], [last, again],
                 call_params(cond, "while_cond", 1 + len(consts) + len(now)), cond.effects,
                 no_source_info),
    ]
    return ClosedJaxpr(Jaxpr([], [*consts, *own, token, holds, *carry], [last, again, *now], eqns,
                             body.effects | cond.effects, body.jaxpr.debug_info), [])


@derived_structure
def _holds(cond: ClosedJaxpr, n_carry: int) -> ClosedJaxpr:
    """From (token, holds, carry) to `holds`."""
    holds = Var(cond.out_avals[0])
    avals = cond.in_avals[len(cond.in_avals) - n_carry:]
    return ClosedJaxpr(Jaxpr([], [Var(abstract_token), holds, *map(Var, avals)], [holds], []), [])


def _check_repeatable(params: Params, where: str) -> None:
    refused = unrepeatable(params["cond_jaxpr"].effects | params["body_jaxpr"].effects)
    if refused:
        raise NotImplementedError(f"{refused[0]} effect not supported in {where}: iterations run "
                                  "more often than the program says. Use lax.scan or "
                                  "lax.fori_loop with static bounds, or make the effect outside of "
                                  "the loop.")


while_p = register(Primitive(
    "while", multiple_results=True, cached=False, batch_axis=_while_batch,
    linearize=_while_linearize, split=_while_split, transpose=_while_transpose,
    discharge=_while_discharge,
))

CONST, NEW = -2, -1  # roles


class _While(Holder):
    """The body is the program that is held. Before its inputs stand the constants of the condition,
    which reads the carry too, and is made anew for each body that is derived.

    The role of a component of the carry is its place; the first operand with that role has the
    value, others go with it. `NEW` is the role of what is carried for the body alone.
    """

    constant = CONST
    carried = NEW
    loops = True
    kinds = tuple([kind for kind in Holder.kinds if kind not in ("accumulate", "cut")])

    def held(self, params: Params) -> Held:
        body, b = params["body_jaxpr"], params["body_nconsts"]
        carry = range(len(body.jaxpr.outvars))
        return Held((body,), params["cond_nconsts"], [*[CONST] * b, *carry], carry, b, len(carry))

    def derived_params(self, params: Params, programs: Programs, ins: Roles, outs: Roles,
                       linear: bool = False) -> Params:
        (body,) = programs
        n_consts = ins.count(CONST)
        cond = _cond_of(params["cond_jaxpr"], params["cond_nconsts"], tuple(ins[n_consts:]),
                        tuple(body.in_avals[n_consts:]))
        return {**params, "cond_jaxpr": cond, "body_jaxpr": body, "body_nconsts": n_consts}

    def times(self, params: Params) -> None:
        return None

    def conditions(self, params: Params) -> Programs:
        return (params["cond_jaxpr"],)

    def effects(self, params: Params) -> Effects:
        return params["cond_jaxpr"].effects | params["body_jaxpr"].effects

    def shape_rule(self, *avals: Any, **params: Any) -> list[Any]:
        carry = avals[params["cond_nconsts"] + params["body_nconsts"]:]
        return [a if out.weak_type == a.weak_type else a.update_weak_type(out.weak_type)
                for a, out in zip(carry, params["body_jaxpr"].out_avals, strict=True)]

    def arranged(self, programs: Programs, operands: Sequence[Any], ins: Roles, outs: Roles,
                 params: Params) -> Any:
        head = len(operands) - len(ins)
        order = sorted(range(len(ins)), key=lambda i: ins[i] != CONST)
        if order != list(range(len(ins))):
            programs = [with_inputs(programs[0], tuple(order))]
            operands = [*operands[:head], *[operands[head + i] for i in order]]
            ins = [ins[i] for i in order]
        return programs, operands, ins, outs, None

    def bind(self, programs: Programs, operands: Sequence[Any], params: Params, ins: Roles,
             outs: Roles, linear: bool = False) -> list[Any]:
        programs, operands, ins, outs, _ = self.ready(programs, operands, params, ins, outs)
        params = self.derived_params(params, programs, ins, outs)
        given = _parts(operands, params)
        return bind_while(params["cond_jaxpr"], given.cond_consts, programs[0], given.body_consts,
                          given.carry, params["max_steps"])

    def dce(self, eqn: JaxprEqn, used: Flags) -> JaxprEqn:
        """Components of the carry that neither the condition, nor an effect, nor a result needs go.
        """
        cond, a = eqn.params["cond_jaxpr"], eqn.params["cond_nconsts"]
        tested = live_inputs(cond, (True,))
        needed = either([used, tested[a:]])
        if not any(needed):
            return eqn
        eqn = super().dce(eqn, needed)
        cond, tested = eqn.params["cond_jaxpr"], tested[:a]
        live = tested + (True,) * (len(cond.in_avals) - a)
        part = part_of(cond, (True,), live)
        if part is cond:
            return eqn
        return eqn.replace(
            invars=[*selected(eqn.invars, tested), *eqn.invars[a:]],
            params={**eqn.params, "cond_jaxpr": part, "cond_nconsts": sum(tested)},
            effects=part.effects | eqn.params["body_jaxpr"].effects)

    def thread(self, eqn: JaxprEqn, token: Atom, after: Var) -> list[JaxprEqn]:
        """A condition with ordered effects runs before the loop and at the end of the body, which
        carries whether it holds."""
        params, given = eqn.params, _parts(eqn.invars, eqn.params)
        cond = params["cond_jaxpr"]
        if not is_ordered(cond.effects):
            return super().thread(eqn, token, after)
        holds, start = Var(cond.out_avals[0]), Var(abstract_token)
        tested = threaded(cond)
        before = call_eqn(eqn, tested, "while_cond", [token, *given.cond_consts, *given.carry],
                          [start, holds])
        consts = given.cond_consts + given.body_consts
        body = _body_then_cond(threaded(params["body_jaxpr"]), tested, len(given.cond_consts),
                               len(given.body_consts))
        return [before, eqn.replace(
            invars=[*consts, start, holds, *given.carry],
            outvars=[after, Var(holds.aval), *eqn.outvars],
            params={**params, "cond_jaxpr": _holds(cond, len(given.carry)), "cond_nconsts": 0,
                    "body_jaxpr": body, "body_nconsts": len(consts)})]

    def check(self, eqn: JaxprEqn) -> None:
        given = _parts(eqn.invars, eqn.params)
        check_operands("condition of while", [*given.cond_consts, *given.carry],
                       eqn.params["cond_jaxpr"].in_avals)
        super().check(eqn)


@derived_structure
def _cond_of(cond: ClosedJaxpr, n_consts: int, carry: tuple[int, ...], avals: tuple[Any, ...]
             ) -> ClosedJaxpr:
    """The condition as a program of a carry of these roles and types."""
    seen: set[int] = set()
    order: list[Any] = list(range(n_consts))
    for role, aval in zip(carry, avals, strict=True):
        order.append(aval if role == NEW or role in seen else n_consts + role)
        seen.add(role)
    return cond if order == list(range(len(cond.in_avals))) else with_inputs(cond, tuple(order))


_While(while_p)
