"""`while_loop`: repeats a body for as long as a condition holds.

It has forward-mode derivatives and batching. Reverse mode needs the carry of every iteration, last
first; with a bound on their number these are computed again from few that are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

import numpy as np

from pyjx import configuration
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import ShapedArray, cotangent_aval, get_aval
from pyjx.core.derived import derived, derived_structure
from pyjx.core.effects import Effects, has_state, is_ordered, join_effects, unrepeatable
from pyjx.core.evaluation import jaxpr_as_fun
from pyjx.core.integers import as_int
from pyjx.core.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Var
from pyjx.core.name_stack import current_name_stack, set_name_stack
from pyjx.core.named_axes import Axis
from pyjx.core.passes.dce import without_effects
from pyjx.core.passes.tokens import threaded
from pyjx.core.primitive import Primitive, register, vary
from pyjx.core.source_info import from_here, no_source_info
from pyjx.core.trace import is_concrete, trace_to_jaxpr
from pyjx.engine.axes import at_front, broadcast_in_dim
from pyjx.engine.batching import BatchTrace, batch_flat
from pyjx.engine.calls import call, call_eqn, call_params, jit_p
from pyjx.engine.discharge import Box, run
from pyjx.engine.functions import source_of
from pyjx.engine.holders import Held, Holder, Programs, Roles, either
from pyjx.engine.lanes import batched, run_lanes
from pyjx.engine.linearize import LinearTrace
from pyjx.engine.own_types import part_types
from pyjx.engine.subjaxprs import (
    BatchedJaxpr,
    JvpJaxpr,
    Places,
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
    with_cotangents,
    with_inputs,
    with_outputs,
    with_zeros,
    without_tracers,
    without_unchanged,
)
from pyjx.engine.tangents import Zero, add_tangents, instantiate
from pyjx.engine.types import Dims, Flags, Operand, Params, Tangents, TreeDef, Value, Values
from pyjx.lax.agreement import (
    as_in_program,
    check_nothing_is_summed,
    check_sends_nothing,
    returns_nothing,
    trace_function,
    traced_with_carry,
)
from pyjx.lax.bitwise import bitwise_and
from pyjx.lax.common import operands_in
from pyjx.lax.compare import gt, lt, select
from pyjx.lax.conditionals import cut_off
from pyjx.lax.elementwise import add, sub
from pyjx.lax.laying import run_laid
from pyjx.lax.reductions import reduce_or
from pyjx.lax.slicing import dynamic_index_in_dim, dynamic_update_index_in_dim
from pyjx.tree_util import tree_map, tree_unflatten, treedef_is_leaf

# -- iterations from the last to the first ---------------------------------------------------------

# How many carries a level keeps at most.
_BRANCHES = 8


class Replay:
    """The iterations of a loop from the last to the first.

    A level keeps the carries at the starts of equal parts of the iterations, and reverses these,
    last first, by the level below; the lowest reverses an iteration. With b parts on each of L
    levels, b^L iterations need the memory of b L carries and L times the work of the loop. All of
    it is loops with bounds, so it has itself a reverse mode.

    Args:
      holds: whether there is an iteration after this carry.
      step: the next carry.
      pull: `(carry, back)` to `back` before the iteration that starts with this carry.
      bound: of the number of iterations.
      loop: `(holds, step, start, max_steps)` to the last of the values that begin with `start`.
    """

    def __init__(self, holds: Callable[[Any], Any], step: Callable[[Any], list[Any]],
                 pull: Callable[[Any, Any], list[Any]], bound: int,
                 loop: Callable[..., list[Any]]) -> None:
        self.holds = holds
        self.step = step
        self.pull = pull
        self.loop = loop
        self.levels = 1
        while _BRANCHES ** self.levels < bound:
            self.levels += 1
        self.branches = 1
        while self.branches ** self.levels < bound:
            self.branches += 1

    def reverse(self, level: int, carry: Sequence[Any], back: Sequence[Any]) -> list[Any]:
        """`back` before the iterations of this level that follow the carry."""
        if level == 0:
            return self.pull(carry, back)
        count, kept = self.keep(level, carry)

        def part_before(count: Any, *back: Any) -> list[Any]:
            i = sub(count, np.int32(1))
            carry = [dynamic_index_in_dim(x, i, 0, False) for x in kept]
            return [i, *self.reverse(level - 1, carry, back)]

        return self.loop(lambda count, *_: gt(count, np.int32(0)), part_before, [count, *back],
                     self.branches)[1:]

    def keep(self, level: int, carry: Sequence[Any]) -> tuple[Any, list[Any]]:
        """How many parts there are, and the carries at their starts."""
        n = len(carry)

        def goes_on(i: Any, *rest: Any) -> Any:
            return bitwise_and(lt(i, np.int32(self.branches)), self.holds(rest[:n]))

        def keep_one(i: Any, *rest: Any) -> list[Any]:
            carry, kept = rest[:n], rest[n:]
            return [add(i, np.int32(1)), *self.advance(level - 1, carry),
                    *[dynamic_update_index_in_dim(xs, x, i, 0)
                      for xs, x in zip(kept, carry, strict=True)]]

        places = [broadcast_in_dim(x, (self.branches, *get_aval(x).shape),
                                   tuple(range(1, get_aval(x).ndim + 1))) for x in carry]
        outs = self.loop(goes_on, keep_one, [np.int32(0), *carry, *places], self.branches)
        return outs[0], outs[1 + n:]

    def advance(self, level: int, carry: Sequence[Any]) -> list[Any]:
        """The carry after a part of this level."""
        if level == 0:
            return self.step(carry)
        count = self.branches ** level
        return self.loop(
            lambda i, *carry: bitwise_and(lt(i, np.int32(count)), self.holds(carry)),
            lambda i, *carry: [add(i, np.int32(1)), *self.step(carry)], [np.int32(0), *carry],
            count)[1:]


# -- the loop --------------------------------------------------------------------------------------

_Carry = TypeVar("_Carry")


@overload
def while_loop(cond_fun: Callable[[Array], ArrayLike], body_fun: Callable[[Array], ArrayLike],
               init_val: ArrayLike, *, max_steps: int | None = None) -> Array: ...


@overload
def while_loop(cond_fun: Callable[[_Carry], ArrayLike], body_fun: Callable[[_Carry], _Carry],
               init_val: _Carry, *, max_steps: int | None = None) -> _Carry: ...


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

    Newton's method, with a tuple as the value:

    >>> def root(a):
    ...     step = lambda v: ((v[0] + a / v[0]) / 2, v[1] + 1)
    ...     return jax.lax.while_loop(lambda v: abs(v[0] * v[0] - a) > 1e-5, step, (a, 0))[0]
    ...
    >>> round(float(jax.jit(root)(2.0)), 4)
    1.4142
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
    leaves, tree = operands_in("while_loop (init_val)", init_val)
    leaves, cond, body, types = _agreeing(cond_fun, body_fun, leaves, tree)
    cond_jaxpr, body_jaxpr = consts_as_inputs(cond), consts_as_inputs(body)
    if bound is not None:
        leaves, types = [np.int32(0), *leaves], types and [_COUNT, *types]
        cond_jaxpr = _cond_of_counted(cond_jaxpr, len(cond.consts), bound)
        body_jaxpr = _body_of_counted(body_jaxpr, len(body.consts))
    outs = run_laid(body, types, lambda carry, of_cond, of_body: bind_while(
        cond_jaxpr, of_cond, body_jaxpr, of_body, carry, bound), leaves, cond.consts, body.consts)
    return tree_unflatten(tree, outs if bound is None else outs[1:])


def _agreeing(cond_fun: Callable[..., Any], body_fun: Callable[..., Any], leaves: list[Any],
              tree: TreeDef
              ) -> tuple[list[Any], ClosedJaxpr, ClosedJaxpr, list[ShapedArray] | None]:
    """The carry, of the types that the body gives it, and the condition and the body for these;
    and these types, if the carry is yet to be laid so."""
    # The condition comes first: where the two are exchanged, its result is what is wrong.
    given = list(map(get_aval, leaves))
    cond = _condition(cond_fun, given, tree)
    traced = trace_function("while_loop", "body_fun", body_fun, tree, given)
    leaves, (body, _), types = traced_with_carry(
        "while_loop", "body_fun", body_fun, tree, leaves, traced, lambda carry: trace_function(
            "while_loop", "body_fun", body_fun, tree, carry))
    if body.in_avals != given:
        cond = _condition(cond_fun, body.in_avals, tree)
    # devices that go on while others stop differ in all
    apart = cond.out_avals[0].place.mat.varying
    if not all([apart <= get_aval(x).place.mat.varying for x in leaves]):
        return _agreeing(cond_fun, body_fun, [vary(x, apart) for x in leaves], tree)
    if apart:
        op, asked = ("fori_loop", "bound") if hasattr(body_fun, "user_body") else (
            "while_loop", "condition")
        check_sends_nothing(
            op, f"{asked} varies", {"body_fun": body, "cond_fun": cond}, apart, "go on would wait "
            "for those that have stopped",
            f"so that all go on alike, ask jax.lax.pmax({asked}, {{}})")
    return leaves, cond, body, types


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


def _condition(fun: Callable[..., Any], carry: Sequence[ShapedArray], tree: TreeDef
               ) -> ClosedJaxpr:
    cond, out_tree = trace_function("while_loop", "cond_fun", fun, tree, carry)
    avals = cond.out_avals
    if treedef_is_leaf(out_tree) and [(x.shape, x.dtype) for x in avals] == [((), np.bool_)]:
        return cond
    single = treedef_is_leaf(out_tree) and len(avals) == 1  # None is a leaf of no values
    got = f"output type(s) {list(avals)}" if single else f"pytree {out_tree}"
    cure = returns_nothing(out_tree)
    if single:
        cure = (" Take jnp.any or jnp.all of it; vmap of a loop ends it for each example."
                if avals[0].shape else " Let it compare, as in x != 0.")
    if out_tree == tree and all(map(ShapedArray.describes, avals, carry)):  # as a body does
        cure += " Before the body comes the condition: while_loop(cond_fun, body_fun, init_val)."
    raise TypeError(f"while_loop: cond_fun must return a boolean scalar, but got {got}. The "
                    f"function is {source_of(fun)}.{cure}")


# -- the primitive ---------------------------------------------------------------------------------


def bind_while(cond: ClosedJaxpr, cond_consts: Sequence[Any], body: ClosedJaxpr,
               body_consts: Sequence[Any], carry: Sequence[Any], max_steps: int | None
               ) -> list[Any]:
    """The last carry of a loop that does at most `max_steps` iterations, if that is known.

    What the body does not change of the carry is a constant of both programs.
    """
    cond, more_cond = without_tracers(cond)
    body, more_body = without_tracers(body)
    cond_consts, body_consts = [*more_cond, *cond_consts], [*more_body, *body_consts]
    step, same = without_unchanged(body, len(body_consts), len(carry))
    if all(same):
        same = (False,) * len(carry)
    elif any(same):
        body, cond = step, carry_as_consts(cond, len(cond_consts), same)
        cond_consts += selected(carry, same)
        body_consts += selected(carry, same)
    outs = iter(while_p.bind(
        *cond_consts, *body_consts, *selected(carry, negated(same)),
        cond_jaxpr=cond, cond_nconsts=len(cond_consts),
        body_jaxpr=body, body_nconsts=len(body_consts), max_steps=max_steps))
    return [x if flag else next(outs) for x, flag in zip(carry, same, strict=True)]


# -- reverse mode ----------------------------------------------------------------------------------


@derived
def _with_tangents(body: ClosedJaxpr, nonzero: Flags, wanted: Flags | None = None) -> JvpJaxpr:
    """As `jvp_jaxpr`, where what computes results and what computes tangents are apart."""
    parts = linearize_jaxpr(without_effects(body), nonzero, wanted)
    avals, n = body.in_avals, len(body.out_avals)

    def fun(*args: Any) -> list[Any]:
        values, tangents = args[:len(avals)], args[len(avals):]
        outs = jaxpr_as_fun(parts.known)(*values)
        return outs[:n] + jaxpr_as_fun(parts.linear)(
            *outs[n:], *[values[i] for i in parts.forwarded], *tangents)

    return JvpJaxpr(trace_to_jaxpr(fun, [*avals, *tangent_avals(avals, nonzero)],
                                   body.debug_info), parts.nonzero)


def _while_transpose(cts: Tangents, *operands: Operand, **params: Any) -> Tangents:
    body, a, n = params["body_jaxpr"], params["cond_nconsts"], len(cts)
    k = len(operands) - n
    given = linear_flags(operands)
    linear = fixpoint(lambda flags: dependent_outputs(body, given[a:k] + flags), given[k:])
    known = tuple([i for i, flag in enumerate(linear) if not flag])
    check_nothing_is_summed("while_loop", params["cond_jaxpr"].out_avals[0].place.mat.varying,
                            "do iterations", operands[a:k])
    cond = _cond_of(params["cond_jaxpr"], a, known,
                    tuple(selected(body.out_avals, negated(linear))))
    bound = params["max_steps"]
    if bound is None:
        raise ValueError("Reverse-mode differentiation does not work for lax.while_loop or "
                         "lax.fori_loop with dynamic start/stop values. Give lax.while_loop a "
                         "bound on its iterations (max_steps: there it ends, whatever the "
                         "condition is), use lax.scan or lax.fori_loop with static bounds, or "
                         "forward mode (jax.jvp, jax.jacfwd).")
    values = [*selected(operands, negated(given[:k] + linear)),
              *map(instantiate, selected(cts, linear))]
    backward, consts_nonzero = _backward(
        body, cond, a, given[a:k], linear, bound, tuple(map(get_aval, values)))
    program, more = without_tracers(backward)
    outs = iter(call(program, "while_transposed", *more, *values))
    found = with_cotangents(operands[:k], consts_nonzero, outs)
    pulled = [next(outs) if lin else None for lin in linear]
    return [*found, *[ct if lin else None for ct, lin in zip(pulled, given[k:], strict=True)]]


@derived
def _backward(body: ClosedJaxpr, cond: ClosedJaxpr, a: int, consts: Flags, linear: Flags,
              bound: int, avals: tuple[ShapedArray, ...]) -> tuple[ClosedJaxpr, Flags]:
    """The program from (constants of the condition, known ones of the body, the known carry at the
    start, cotangents of the linear carry at the end) to (cotangents of the linear constants that
    have some, cotangents of the linear carry at the start); and which of the former have some."""
    parts = split_jaxpr(body, consts + linear, linear)
    m, n = sum(consts), sum(linear)
    start, end = len(avals) - len(linear), len(avals) - n  # of the known carry
    residuals = len(parts.linear.in_avals) - m - n
    flags = (True,) * n
    pulled = transpose_jaxpr(parts.linear, (False,) * residuals + (True,) * (m + n), flags,
                             (False,) * (residuals + m) + flags)
    nonzero = pulled.nonzero[:m]
    sums = list(map(cotangent_aval, selected(
        selected(body.in_avals[:len(consts)], consts), nonzero)))
    n_known = end - start
    forward = part_of(parts.known, (True,) * n_known + (False,) * (
        len(parts.known.out_avals) - n_known), (True,) * len(parts.known.in_avals))

    def fun(*args: Any) -> list[Any]:

        def pull(carry: Sequence[Any], back: Sequence[Any]) -> list[Any]:
            """Cotangents before an iteration, from those after it."""
            values = [*args[a:start], *carry]
            saved = jaxpr_as_fun(parts.known)(*values)[n_known:]
            outs = jaxpr_as_fun(pulled.jaxpr)(
                *saved, *[values[i] for i in parts.forwarded], *back[len(sums):])
            return [*map(add_tangents, back[:len(sums)], outs), *outs[len(sums):]]

        replay = Replay(lambda carry: jaxpr_as_fun(cond)(*args[:a], *carry)[0],
                        lambda carry: jaxpr_as_fun(forward)(*args[a:start], *carry), pull, bound,
                        _loop)
        return replay.reverse(replay.levels, args[start:end], [
            *[instantiate(Zero(aval)) for aval in sums], *args[end:]])

    return trace_to_jaxpr(fun, avals, body.debug_info), nonzero


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
    axis, cond, body = trace.axis, params["cond_jaxpr"], params["body_jaxpr"]
    a, n = params["cond_nconsts"], len(body.out_avals)
    k = len(operands) - n
    consts = in_front([d is not None for d in dims[:k]])

    def batched_cond(flags: Sequence[bool]) -> BatchedJaxpr:
        return batch_jaxpr(cond, (*consts[:a], *in_front(flags)), axis)

    def grow(flags: Sequence[bool]) -> list[bool]:
        each = batched_cond(flags).dims[0] is not None
        made = batch_jaxpr(body, (*consts[a:], *in_front(flags)), axis).dims
        return [d is not None or each for d in made]

    flags = fixpoint(grow, [d is not None for d in dims[k:]])
    places = in_front(flags)
    new_cond, cond_out = batched_cond(flags)
    values = [x if to is None else at_front(x, d, axis)
              for x, d, to in zip(operands, dims, consts + places, strict=True)]
    first = a
    if cond_out[0] is not None:
        _check_repeatable(params, "a while_loop with a batched predicate")
        if is_ordered(new_cond.effects):
            outs, out_dims = batch_flat(
                jaxpr_as_fun(_holder.asked_first(params)), operands, dims, axis)
            return outs, out_dims
        cut = params["max_steps"] is not None
        new_body, first = _keeping_what_is_done(new_cond, body, consts + places, axis, a, cut), 0
        new_cond = _while_any(new_cond)
    else:
        new_body = batch_jaxpr(body, consts[a:] + places, axis, places).jaxpr
    return bind_while(new_cond, values[:a], new_body, values[first:k], values[k:],
                      params["max_steps"]), places


@derived
def _while_any(cond: ClosedJaxpr) -> ClosedJaxpr:
    """Whether a condition holds for one of a batch of examples."""
    return trace_to_jaxpr(lambda *xs: [reduce_or(jaxpr_as_fun(cond)(*xs)[0], (0,))], cond.in_avals)


@derived
def _keeping_what_is_done(cond: ClosedJaxpr, body: ClosedJaxpr, places: Places, axis: Axis, a: int,
                          cut: bool) -> ClosedJaxpr:
    """From (constants of the batched condition, those of the body, carry) to the carry that the
    body gives for the examples for which the condition holds, and the old one for the others. With
    `cut` the carry of an example that is done has no derivative in the body, which may be infinite
    there."""
    k = len(places) - len(body.out_avals)

    def fun(*args: Value) -> list[Any]:
        consts, carry = args[a:k], args[k:]
        with set_name_stack(current_name_stack().beside("body_pred")):
            holding = jaxpr_as_fun(cond)(*args[:a], *carry)[0]
        before = [cut_off(x, holding) for x in carry] if cut else carry
        new = run_lanes(holding, body, [*consts, *before], places[a:], axis)
        return [select(broadcast_in_dim(holding, get_aval(y).shape, (0,)), x, y)
                for x, y in zip(new, carry, strict=True)]

    avals = [*cond.in_avals[:a], *batched(body, places[a:], axis).in_avals]
    return trace_to_jaxpr(fun, avals)


def _check_repeatable(params: Params, where: str) -> None:
    refused = unrepeatable(params["cond_jaxpr"].effects | params["body_jaxpr"].effects)
    if refused:
        raise NotImplementedError(f"{refused[0]} effect not supported in {where}: iterations run "
                                  "more often than the program says. Use lax.scan or lax.fori_loop "
                                  "with static bounds, or make the effect outside of the loop.")


while_p = register(Primitive(
    "while", multiple_results=True, cached=False, batch_axis=_while_batch,
    transpose=_while_transpose))

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
    lacks = ("cut",)

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
        if linear:
            cond = without_effects(cond)
        return {**params, "cond_jaxpr": cond, "body_jaxpr": body, "body_nconsts": n_consts}

    def times(self, params: Params) -> None:
        return None

    def roles_of_parts(self, roles: Roles, counts: Sequence[int]) -> Roles:
        places = iter(range(sum(counts)))
        return [role if role == CONST else next(places)
                for role in super().roles_of_parts(roles, counts)]

    def asked_on_parts(self, params: Params, on_parts: Callable[..., ClosedJaxpr]) -> Params:
        cond, a = params["cond_jaxpr"], params["cond_nconsts"]
        return {**params, "cond_jaxpr": on_parts(cond),
                "cond_nconsts": sum([len(part_types(t)) for t in cond.in_avals[:a]])}

    def conditions(self, params: Params) -> Programs:
        return (params["cond_jaxpr"],)

    def asked_first(self, params: Params, same: Sequence[int] | None = None) -> ClosedJaxpr:
        """The loop carries the answer. Constants with one number in `same` are the same."""
        cond, body, a = params["cond_jaxpr"], params["body_jaxpr"], params["cond_nconsts"]
        k = a + params["body_nconsts"]
        same = range(k) if same is None else same
        operands = list(map(Var, [*cond.in_avals[:a], *body.in_avals]))
        answer = cond.out_avals[0]

        def called(closed: ClosedJaxpr, name: str, inputs: Sequence[Any]) -> JaxprEqn:
            return JaxprEqn(jit_p, inputs, list(map(Var, closed.out_avals)),
                            call_params(closed, name, len(inputs)), closed.effects, no_source_info)

        def program(invars: Sequence[Any], outvars: Sequence[Any], *eqns: JaxprEqn) -> ClosedJaxpr:
            return ClosedJaxpr(Jaxpr([], invars, outvars, eqns, join_effects(eqns),
                                     body.jaxpr.debug_info), [])

        own = {i: Var(operands[i].aval) for i in same}
        consts, carry = [own[i] for i in same], list(map(Var, body.in_avals[k - a:]))
        step = called(body, "while_body", [*consts[a:], *carry])
        again = called(cond, "while_cond", [*consts[:a], *step.outvars])
        now = list(map(Var, [answer, *body.out_avals]))
        first = called(cond, "while_cond", [*[operands[i] for i in same[:a]], *operands[k:]])
        inner = {**params, "cond_jaxpr": program(now, now[:1]), "cond_nconsts": 0,
                 "body_jaxpr": program([*own.values(), Var(answer), *carry],
                                       [*again.outvars, *step.outvars], step, again),
                 "body_nconsts": len(own)}
        loop = JaxprEqn(while_p, [*[operands[i] for i in own], *first.outvars, *operands[k:]],
                        [Var(answer), *map(Var, body.out_avals)], inner, self.effects(inner),
                        no_source_info)
        return program(operands, loop.outvars[1:], first, loop)

    def effects(self, params: Params) -> Effects:
        return params["cond_jaxpr"].effects | params["body_jaxpr"].effects

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
        a = params["cond_nconsts"]
        k = a + params["body_nconsts"]
        return bind_while(params["cond_jaxpr"], operands[:a], programs[0], operands[a:k],
                          operands[k:], params["max_steps"])

    def linearize(self, trace: LinearTrace, primals: Values, tangents: Tangents, **params: Any
                  ) -> Any:
        """The loop now; in the linear program one that does it again and moves tangents along."""
        held, n = self.held(params), params["cond_nconsts"]
        nonzero, pushed, wanted = self.pushed(_with_tangents, held, params,
                                              nonzero_flags(tangents[n:]))
        if not any(wanted):
            return self.still(primals, params)
        _check_repeatable(params, "the derivative of a while_loop")
        known = linearize_jaxpr(held.programs[0], nonzero, wanted).known  # by the user's rules
        outs = self.bind([with_outputs(known, tuple(held.outs))], primals, params, held.ins,
                         held.outs)
        moving = list(map(instantiate, selected(tangents[n:], nonzero)))
        recorded = from_here(  # as reverse mode may be refused
            self.record, trace, [pushed[0].jaxpr], [*primals, *moving], params,
            [*held.ins, *selected(held.ins, nonzero)], [*held.outs, *selected(held.outs, wanted)],
            True)
        return outs, with_zeros(recorded[len(outs):], wanted, list(map(get_aval, outs)))

    def split(self, trace: LinearTrace, operands: Values, params: Params) -> list[Any]:
        operands, params = _asking(operands, params)
        if any(trace.linear_flags(operands[:params["cond_nconsts"]])):
            _refuse_linear_condition()
        return super().split(trace, operands, params)

    def dce(self, eqn: JaxprEqn, used: Flags) -> JaxprEqn:
        """Components of the carry that neither the condition, nor an effect, nor a result needs go.
        """
        tested = live_inputs(eqn.params["cond_jaxpr"], (True,))[eqn.params["cond_nconsts"]:]
        needed = either([used, tested])
        if not any(needed):
            return eqn
        eqn = super().dce(eqn, needed)
        operands, params = _asking(eqn.invars, eqn.params)
        return eqn if params is eqn.params else eqn.replace(
            invars=operands, params=params, effects=self.effects(params))

    def thread(self, eqn: JaxprEqn, token: Atom, after: Var) -> list[JaxprEqn]:
        if not is_ordered(eqn.params["cond_jaxpr"].effects):
            return super().thread(eqn, token, after)
        program = threaded(self.asked_first(eqn.params))
        return [call_eqn(eqn, program, "while", [token, *eqn.invars], [after, *eqn.outvars])]

    def discharge(self, operands: Values, params: Params, derivable: bool) -> list[Any]:
        n = params["cond_nconsts"]
        consts = operands[:n + params["body_nconsts"]]
        if has_state(params["cond_jaxpr"].effects) or any(
                [isinstance(x, Box) for x in consts[:n]]):
            first: dict[int, int] = {}
            same = [first.setdefault(id(x), i) for i, x in enumerate(consts)]
            return run(self.asked_first(params, same), operands, derivable)
        return super().discharge(operands, params, derivable)

    def check(self, eqn: JaxprEqn) -> None:
        a, n = eqn.params["cond_nconsts"], len(eqn.outvars)
        check_operands("condition of while", [*eqn.invars[:a], *eqn.invars[len(eqn.invars) - n:]],
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
    if order == list(range(len(cond.in_avals))):
        return cond
    if any([live and i - n_consts not in seen
            for i, live in enumerate(live_inputs(cond, (True,))) if i >= n_consts]):
        _refuse_linear_condition()
    return with_inputs(cond, tuple(order))


def _refuse_linear_condition() -> None:
    raise TypeError("The function is not linear: the condition of a while_loop depends on its "
                    "arguments.")


def _asking(operands: Sequence[Any], params: Params) -> tuple[Sequence[Any], Params]:
    """Operands and parameters without constants of the condition that it does not read."""
    cond, a = params["cond_jaxpr"], params["cond_nconsts"]
    tested = live_inputs(cond, (True,))[:a]
    part = part_of(cond, (True,), tested + (True,) * (len(cond.in_avals) - a))
    if part is cond:
        return operands, params
    return [*selected(operands, tested), *operands[a:]], {
        **params, "cond_jaxpr": part, "cond_nconsts": sum(tested)}


_holder = _While(while_p)
