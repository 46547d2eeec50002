"""The primitive of functions with batching rules of their own: `custom_vmap_call`.

A call carries the function, as a jaxpr, and its rule. Batching takes the rule in its place. What is
derived from the call is a call again, of the derived function and the derived rule, so that the
order of the transformations does not matter: batching a derivative gives that of the rule.

A batch of derivatives may have operands that the rule knows nothing of: tangents, or cotangents.
Where no other operand is batched, the rule is called for one example, and told of no batch.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, NoReturn

from pyjx.core import dtypes
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.evaluation import jaxpr_as_fun
from pyjx.core.jaxpr import ClosedJaxpr
from pyjx.core.named_axes import Axis, outside_axis
from pyjx.core.primitive import Holding
from pyjx.core.records import Record
from pyjx.core.trace import new_level, trace_to_jaxpr
from pyjx.engine.axes import reduce_sum
from pyjx.engine.batching import BatchTrace, batch_flat, match_axis
from pyjx.engine.calls import standing_for
from pyjx.engine.forward import jvp_flat
from pyjx.engine.functions import name_of
from pyjx.engine.linearize import LinearProgram, LinearTrace
from pyjx.engine.subjaxprs import (
    batch_jaxpr,
    batched_aval,
    consts_as_inputs,
    dependent_outputs,
    jvp_jaxpr,
    linear_flags,
    negated,
    nonzero_flags,
    part_of,
    selected,
    transpose_jaxpr,
    with_inputs,
    with_zeros,
    without_tracers,
)
from pyjx.engine.tangents import Zero, instantiate
from pyjx.engine.types import Dims, Flags, FlatFunction, Operand, Params, Tangents, Value, Values


class BatchingRule(Record):
    """The rule of a call, on flat values: the user's, or one that is made of it.

    Attributes:
      of: the user's function.
      run: `(size, batched, *operands)` to outputs and which of them are batched. `batched` says of
        each operand whether its first axis is that of the batch; if none is, the outputs are those
        of each example.
      concerning: whether the user's rule is to know of a batch along these operands.
      takes_points: whether it wants maps over points where tangents are the same for all.
    """

    of: Callable[..., Any]
    run: Callable[..., tuple[list[Any], Sequence[bool]]]
    concerning: Callable[[Sequence[bool]], bool] = any
    takes_points: bool = False

    @property
    def __name__(self) -> str:
        return name_of(self.of)

    def derived(self, run: Callable[..., Any], concerning: Callable[[Sequence[bool]], bool] = any
                ) -> BatchingRule:
        return BatchingRule(self.of, run, concerning, self.takes_points)

    def noting(self, size: int, batched: Sequence[bool]) -> tuple[FlatFunction, list[bool]]:
        """A function of the operands alone, and what it will have said of its outputs."""
        flags: list[bool] = []

        def fun(*operands: Any) -> list[Any]:
            outs, flags[:] = self.run(size, batched, *operands)
            return outs

        return fun, flags


class _Active(threading.local):
    """Which rules of users' run in this thread for one example."""

    def __init__(self) -> None:
        self.rules: tuple[Any, ...] = ()


_active = _Active()


def bind_custom_vmap(closed: ClosedJaxpr, rule: BatchingRule, captured: Values, args: Values
                     ) -> list[Any]:
    """Call `closed`, of what it closes over and of `args`; the rule gets the latter only."""
    closed, operands, num_consts = _operands(closed, captured, args)
    return custom_vmap_call_p.bind(  # type: ignore[no-any-return]
        *operands, call=closed, rule=rule, num_consts=num_consts)


def _operands(closed: ClosedJaxpr, captured: Values, args: Values
              ) -> tuple[ClosedJaxpr, list[Any], int]:
    closed, consts = without_tracers(closed)
    return closed, [*consts, *captured, *args], len(consts) + len(captured)


# -- batching --------------------------------------------------------------------------------------


def _batch(trace: BatchTrace, operands: Values, dims: Dims, *, call: ClosedJaxpr,
           rule: BatchingRule, num_consts: int) -> Any:
    if any([d is not None for d in dims[:num_consts]]):
        _raise_captured(rule, "is mapped by the same vmap")
    batched = [d is not None for d in dims[num_consts:]]
    if not rule.concerning(batched):
        return _batch_derivative(trace, operands, dims, call, rule, num_consts)
    operands, dims = operands[num_consts:], dims[num_consts:]
    size = trace.axis.size
    at_front = [x if d is None else match_axis(x, d, 0, size)
                for x, d in zip(operands, dims, strict=True)]
    with outside_axis(trace.axis):  # the rule sees the whole batch
        outs, flags = rule.run(size, batched, *at_front)
    for i, (x, b) in enumerate(zip(outs, flags, strict=True)):
        if b and get_aval(x).shape[:1] != (size,):
            raise ValueError(
                f"custom_vmap: the rule {rule.__name__} says that output {i} is batched: expected "
                f"its first axis to be that of the {size} examples, got shape {get_aval(x).shape}.")
    return outs, [0 if b else None for b in flags]


def _batch_derivative(trace: BatchTrace, operands: Values, dims: Dims, call: ClosedJaxpr,
                      rule: BatchingRule, num_consts: int) -> Any:
    """A batch of tangents or cotangents at one point: a call again, whose rule is for points.

    The function is that of one example by the rule. A rule that calls the function again, which
    would not end, gets the function itself.
    """
    captured, args = operands[:num_consts], operands[num_consts:]
    axis, arg_dims = trace.axis, dims[num_consts:]
    if rule.of in _active.rules:
        batched, out_dims = batch_jaxpr(call, tuple(dims), axis)
    else:
        closed, out_dims = _batch_of_one(rule, args, arg_dims, axis)
        batched, captured = consts_as_inputs(closed), closed.consts
    mapped = _mapped(rule, arg_dims, out_dims, axis)
    return bind_custom_vmap(batched, mapped, captured, args), out_dims


def _batch_of_one(rule: BatchingRule, args: Values, dims: Dims, axis: Axis
                  ) -> tuple[ClosedJaxpr, tuple[int | None, ...]]:
    """The batched program of one example by the rule, and where its outputs are batched."""
    found: Dims = ()

    def one(*values: Value) -> list[Any]:
        nonlocal found
        fun, _ = rule.noting(axis.size, (False,) * len(values))
        outs, found = batch_flat(fun, values, dims, axis)
        return outs

    saved = _active.rules
    _active.rules = (*saved, rule.of)
    try:
        closed = trace_to_jaxpr(one, [get_aval(x) for x in args])
    finally:
        _active.rules = saved
    return closed, tuple(found)


def _mapped(rule: BatchingRule, in_dims: Dims, out_dims: Dims, axis: Axis) -> BatchingRule:
    """The rule of a batch along `axis` of tangents or cotangents."""
    def run(size: int, batched: Sequence[bool], *operands: Value) -> tuple[list[Any], list[bool]]:
        fun, flags = rule.noting(size, batched)
        outs, found = batch_flat(fun, operands, _behind(in_dims, batched), axis)
        return [match_axis(x, d, to, axis) for x, d, to in
                zip(outs, found, _behind(out_dims, flags), strict=True)], flags

    return rule.derived(run, rule.concerning)


def _behind(dims: Dims, batched: Sequence[bool]) -> list[int | None]:
    """Where axes of one example are where some examples have a batch axis in front."""
    return [d if d is None else d + b for d, b in zip(dims, batched, strict=True)]


def _raise_captured(rule: BatchingRule, how: str) -> NoReturn:
    raise ValueError(f"custom_vmap: the function of the rule {rule.__name__} closes over a value "
                     f"that {how}. The rule does not get it: pass it as an argument.")


# -- forward mode ----------------------------------------------------------------------------------


def _jvp_rule(rule: BatchingRule, nonzero: Flags, wanted: Flags, only_tangents: bool
              ) -> BatchingRule:
    """The rule of the derivative: of (primals, nonzero tangents). Its results are the primal ones,
    except with `only_tangents`, and the `wanted` tangents."""
    n = len(nonzero)

    def concerning(batched: Sequence[bool]) -> bool:
        """Unless it `takes_points`, a batch is one for it where points and tangents have it."""
        tangents = iter(batched[n:])
        return rule.concerning([
            p and (not moving or next(tangents) or rule.takes_points)
            for p, moving in zip(batched[:n], nonzero, strict=True)])

    def run(size: int, batched: Sequence[bool], *operands: Value) -> tuple[list[Any], list[bool]]:
        pairs = list(zip(operands, batched, strict=True))
        tangents = iter(pairs[n:])
        joined: list[Any] = [
            _with_common_axis(p, next(tangents), size) if moving else (p, None)
            for p, moving in zip(pairs[:n], nonzero, strict=True)]
        fun, flags = rule.noting(size, [p[1] for p, _ in joined])
        outs, out_tangents = jvp_flat(fun, [p[0] for p, _ in joined], [
            t if moving else Zero.of_primal(p[0])
            for (p, t), moving in zip(joined, nonzero, strict=True)])
        derivative = list(map(instantiate, selected(out_tangents, wanted)))
        of_derivative = selected(flags, wanted)
        if only_tangents:
            return derivative, of_derivative
        return [*outs, *derivative], [*flags, *of_derivative]

    return rule.derived(run, concerning)


def _with_common_axis(primal: tuple[Value, bool], tangent: tuple[Value, bool], size: int
                      ) -> tuple[tuple[Value, bool], Value]:
    """Primal and tangent, with a flag for both, where one at least may be batched."""
    x, batched = primal
    t, t_batched = tangent
    if batched and not t_batched:
        t = match_axis(t, None, 0, size)
    elif t_batched and not batched:
        x = match_axis(x, None, 0, size)
    return (x, batched or t_batched), t


def _no_rule(rule: BatchingRule) -> BatchingRule:
    """For derivatives by what the function closes over, of which the rule knows nothing."""
    return rule.derived(lambda *_: _raise_captured(rule, "is differentiated inside the vmap"))


def _pushed(primals: Values, tangents: Tangents, call: ClosedJaxpr, rule: BatchingRule,
            num_consts: int, only_tangents: bool) -> tuple[ClosedJaxpr, Any, Any, Any, Flags]:
    """The derivative as a call: function, rule, what they close over, arguments, and which tangents
    are results."""
    nonzero = nonzero_flags(tangents)
    wanted = tuple([a.to_tangent_aval().dtype != dtypes.float0 for a in call.out_avals])
    pushed, wanted = jvp_jaxpr(call, nonzero, wanted)
    if only_tangents:
        n = len(call.out_avals)
        outputs = tuple([i >= n for i in range(len(pushed.out_avals))])
        pushed = part_of(pushed, outputs, (True,) * len(pushed.in_avals), False)
    n = len(primals)
    m = sum(nonzero[:num_consts])
    if m:  # its tangents stand beside what it closes over
        pushed = with_inputs(pushed, (
            *range(num_consts), *range(n, n + m), *range(num_consts, n),
            *range(n + m, len(pushed.in_avals))))
    given = [t for t in tangents if type(t) is not Zero]
    derived = _no_rule(rule) if m else _jvp_rule(rule, nonzero[num_consts:], wanted, only_tangents)
    return (pushed, derived, [*primals[:num_consts], *given[:m]],
            [*primals[num_consts:], *given[m:]], wanted)


def _jvp(primals: Values, tangents: Tangents, *, call: ClosedJaxpr, rule: BatchingRule,
         num_consts: int) -> Any:
    pushed, derived, captured, args, wanted = _pushed(
        primals, tangents, call, rule, num_consts, False)
    results = bind_custom_vmap(pushed, derived, captured, args)
    n = len(call.out_avals)
    return results[:n], with_zeros(results[n:], wanted, call.out_avals)


# -- reverse mode ----------------------------------------------------------------------------------


def _linearize(trace: LinearTrace, primals: Values, tangents: Tangents, *, call: ClosedJaxpr,
               rule: BatchingRule, num_consts: int) -> Any:
    """Function and rule keep different residuals, so the linear part has none but the primals."""
    outs = custom_vmap_call_p.bind(*primals, call=call, rule=rule, num_consts=num_consts)
    if all([type(t) is Zero for t in tangents]):
        return outs, [Zero.of_primal(x) for x in outs]
    pushed, derived, captured, args, wanted = _pushed(
        primals, tangents, call, rule, num_consts, True)
    closed, operands, n = _operands(pushed, captured, args)
    out_tangents = trace.record(
        custom_vmap_call_p, operands, {"call": closed, "rule": derived, "num_consts": n})
    return outs, with_zeros(out_tangents, wanted, call.out_avals)


def _split(trace: LinearTrace, operands: Any, params: Params) -> Any:
    call = params["call"]
    linear = trace.linear_flags(operands)
    if all(dependent_outputs(call, linear)):
        return trace.record(custom_vmap_call_p, operands, params)
    return jaxpr_as_fun(call)(*operands)


def _transposed_rule(rule: BatchingRule, linear: Flags, in_avals: Sequence[ShapedArray],
                     nonzero: Flags) -> BatchingRule:
    """The rule of the transpose: from residuals and nonzero cotangents to cotangents.

    In a batch the cotangents of what is the same for all examples are not, so that all linear
    operands of the rule are batched.
    """
    n = linear.count(False)

    def concerning(batched: Sequence[bool]) -> bool:
        given = iter(batched)
        flags = [not lin and next(given) for lin in linear]
        return any(flags) and rule.concerning([
            lin or flag for lin, flag in zip(linear, flags, strict=True)])

    def run(size: int, batched: Sequence[bool], *operands: Value) -> tuple[list[Any], list[bool]]:
        some, given = any(batched), iter(batched)
        fun, flags = rule.noting(size, [some if lin else next(given) for lin in linear])
        values, trace = iter(operands), LinearTrace()
        with new_level(trace):
            args = [trace.new_arg(batched_aval(a, 0, size) if some else a) if lin else next(values)
                    for a, lin in zip(in_avals, linear, strict=True)]
            outs = fun(*args)
            program = LinearProgram([x._var for x in selected(args, linear)], trace.eqns,
                                    [trace.unwrap(x) for x in outs])
        cts = zip(operands[n:], batched[n:], strict=True)
        pulled = program.backward([
            _summed(*next(cts), flag, size, some) if moving else Zero.of_primal(x)
            for x, flag, moving in zip(outs, flags, nonzero, strict=True)])
        return list(map(instantiate, pulled)), [some] * len(pulled)

    return rule.derived(run, concerning)


def _summed(ct: Value, batched: bool, wanted: bool, size: int, some: bool) -> Value:
    """The cotangent of an output in a batch, if there is one: what is the same for all examples
    gets the sum of theirs."""
    if not some:
        return ct
    ct = ct if batched else match_axis(ct, None, 0, size)
    return ct if wanted else reduce_sum(ct, (0,))


def _transpose(cts: Tangents, *operands: Operand, call: ClosedJaxpr, rule: BatchingRule,
               num_consts: int) -> list[Any]:
    linear = linear_flags(operands)
    nonzero = nonzero_flags(cts)
    pulled = transpose_jaxpr(call, linear, nonzero, linear)
    derived = _no_rule(rule) if any(linear[:num_consts]) else _transposed_rule(
        rule, linear[num_consts:], call.in_avals[num_consts:], nonzero)
    captured = selected(operands[:num_consts], negated(linear[:num_consts]))
    args = selected(operands[num_consts:], negated(linear[num_consts:]))
    args += selected(cts, nonzero)
    outs = iter(bind_custom_vmap(pulled.jaxpr, derived, captured, args))
    return [next(outs) if flag else None for flag in linear]


custom_vmap_call_p = standing_for(
    "custom_vmap_call", itemgetter("call"),
    Holding(stands_for=itemgetter("call"), linearize=_linearize, split=_split), own_rules=True,
    jvp=_jvp, transpose=_transpose, batch_axis=_batch)
