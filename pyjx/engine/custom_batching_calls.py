"""The primitive of functions with batching rules of their own: `custom_vmap_call`.

A call carries the function, as a jaxpr, and its rule. Batching takes the rule in its place. What is
derived from the call is a call again, of the derived function and the derived rule, so that the
order of the transformations does not matter: batching a derivative gives that of the rule.

A batch of derivatives may have operands that the rule knows nothing of: tangents, or cotangents.
Where no other operand is batched, the rule is called for one example, and told of no batch.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import partial
from operator import itemgetter
from typing import Any

from pyjx.core import dtypes
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.evaluation import jaxpr_as_fun
from pyjx.core.jaxpr import ClosedJaxpr
from pyjx.core.named_axes import Axis, outside_axis
from pyjx.core.primitive import Holding
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


class BatchingRule:
    """The rule of a call, on flat values."""

    __slots__ = ()

    of: Any  # the user's function, which this comes from
    takes_points: bool  # whether it wants maps over points where tangents are the same for all

    def __call__(self, size: int, batched: Sequence[bool], *operands: Any
                 ) -> tuple[list[Any], Sequence[bool]]:
        """Outputs, and which of them are batched. `batched` says of each operand whether its first
        axis is that of the batch."""
        raise NotImplementedError

    def of_one(self, size: int, *operands: Any) -> list[Any]:
        """The outputs of each example where the batch is along no operand that the user's rule has.
        """
        raise NotImplementedError

    def concerning(self, batched: Sequence[bool]) -> bool:
        """Whether the user's rule is to know of a batch along these operands."""
        return any(batched)


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
        outs, flags = rule(size, batched, *at_front)
    for i, (x, b) in enumerate(zip(outs, flags, strict=True)):
        if b and get_aval(x).shape[:1] != (size,):
            raise ValueError(
                f"custom_vmap: the rule {name_of(rule)} says that output {i} is batched: expected "
                f"its first axis to be that of the {size} examples, got shape {get_aval(x).shape}."
            )
    return outs, [0 if b else None for b in flags]


class _DerivedRule(BatchingRule):
    """A rule made from another one, and in the end from the user's."""

    __slots__ = ("rule",)

    rule: BatchingRule

    @property
    def __name__(self) -> str:
        return name_of(self.rule)

    @property
    def of(self) -> Any:
        return self.rule.of

    @property
    def takes_points(self) -> bool:  # type: ignore[override]
        return self.rule.takes_points


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
    mapped = _MappedRule(rule, arg_dims, out_dims, axis)
    return bind_custom_vmap(batched, mapped, captured, args), out_dims


def _batch_of_one(rule: BatchingRule, args: Values, dims: Dims, axis: Axis
                  ) -> tuple[ClosedJaxpr, tuple[int | None, ...]]:
    """The batched program of one example by the rule, and where its outputs are batched."""
    found: Dims = ()

    def fun(*values: Value) -> list[Any]:
        nonlocal found
        outs, found = batch_flat(partial(rule.of_one, axis.size), values, dims, axis)
        return outs

    saved = _active.rules
    _active.rules = (*saved, rule.of)
    try:
        closed = trace_to_jaxpr(fun, [get_aval(x) for x in args])
    finally:
        _active.rules = saved
    return closed, tuple(found)


class _MappedRule(_DerivedRule):
    """The rule of a batch along `axis` of tangents or cotangents."""

    __slots__ = ("axis", "in_dims", "out_dims")

    def __init__(self, rule: BatchingRule, in_dims: Dims, out_dims: Dims, axis: Axis) -> None:
        self.rule = rule
        self.in_dims = in_dims
        self.out_dims = out_dims
        self.axis = axis

    def concerning(self, batched: Sequence[bool]) -> bool:
        return self.rule.concerning(batched)

    def __call__(self, size: int, batched: Sequence[bool], *operands: Value
                 ) -> tuple[list[Any], list[bool]]:
        out_flags: list[bool] = []

        def fun(*args: Value) -> list[Any]:
            outs, out_flags[:] = self.rule(size, batched, *args)
            return outs

        outs, found = batch_flat(fun, operands, _behind(self.in_dims, batched), self.axis)
        wanted = _behind(self.out_dims, out_flags)
        return [match_axis(x, d, to, self.axis)
                for x, d, to in zip(outs, found, wanted, strict=True)], out_flags

    def of_one(self, size: int, *operands: Any) -> list[Any]:
        outs, found = batch_flat(partial(self.rule.of_one, size), operands, self.in_dims,
                                 self.axis)
        return [match_axis(x, d, to, self.axis)
                for x, d, to in zip(outs, found, self.out_dims, strict=True)]


def _behind(dims: Dims, batched: Sequence[bool]) -> list[int | None]:
    """Where axes of one example are where some examples have a batch axis in front."""
    return [d if d is None else d + b for d, b in zip(dims, batched, strict=True)]


def _raise_captured(rule: Any, how: str) -> None:
    raise ValueError(
        f"custom_vmap: the function of the rule {name_of(rule)} closes over a value that {how}. "
        "The rule does not get it: pass it as an argument."
    )


# -- forward mode ----------------------------------------------------------------------------------


class _JvpRule(_DerivedRule):
    """The rule of the derivative: of (primals, nonzero tangents).

    Its results are the primal ones, except with `only_tangents`, and the `wanted` tangents.
    """

    __slots__ = ("nonzero", "only_tangents", "wanted")

    def __init__(self, rule: BatchingRule, nonzero: Flags, wanted: Flags, only_tangents: bool
                 ) -> None:
        self.rule = rule
        self.nonzero = nonzero
        self.wanted = wanted
        self.only_tangents = only_tangents

    def concerning(self, batched: Sequence[bool]) -> bool:
        """Unless it `takes_points`, a batch is one for it where points and tangents have it."""
        n = len(self.nonzero)
        tangents = iter(batched[n:])
        return self.rule.concerning([
            p and (not nonzero or next(tangents) or self.takes_points)
            for p, nonzero in zip(batched[:n], self.nonzero, strict=True)])

    def __call__(self, size: int, batched: Sequence[bool], *operands: Value
                 ) -> tuple[list[Any], list[bool]]:
        n = len(self.nonzero)
        primals, tangents = operands[:n], operands[n:]
        pairs = list(zip(primals, batched[:n], strict=True))
        given = zip(tangents, batched[n:], strict=True)
        joined = [_with_common_axis(p, next(given), size) if nonzero else (p, None)
                  for p, nonzero in zip(pairs, self.nonzero, strict=True)]
        flags = [p[1] for p, _ in joined]
        out_flags: list[bool] = []

        def fun(*args: Value) -> list[Any]:
            outs, out_flags[:] = self.rule(size, flags, *args)
            return outs

        results = self._pushed(fun, [p[0] for p, _ in joined], [t for _, t in joined])
        derivative_flags = selected(out_flags, self.wanted)
        return results, derivative_flags if self.only_tangents else [*out_flags, *derivative_flags]

    def of_one(self, size: int, *operands: Any) -> list[Any]:
        n = len(self.nonzero)
        given = iter(operands[n:])
        return self._pushed(partial(self.rule.of_one, size), operands[:n],
                            [next(given) if nonzero else None for nonzero in self.nonzero])

    def _pushed(self, fun: FlatFunction, points: Values, tangents: Values) -> list[Any]:
        outs, out_tangents = jvp_flat(fun, points, [
            t if nonzero else Zero.of_primal(x)
            for x, t, nonzero in zip(points, tangents, self.nonzero, strict=True)])
        derivative = list(map(instantiate, selected(out_tangents, self.wanted)))
        return derivative if self.only_tangents else [*outs, *derivative]


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


class _NoRule(_DerivedRule):
    """For derivatives by what the function closes over, of which the rule knows nothing."""

    __slots__ = ()

    def __init__(self, rule: BatchingRule) -> None:
        self.rule = rule

    def __call__(self, size: int, batched: Sequence[bool], *operands: Value) -> Any:
        _raise_captured(self.rule, "is differentiated inside the vmap")


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
    derived = _NoRule(rule) if m else _JvpRule(rule, nonzero[num_consts:], wanted, only_tangents)
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


class _TransposedRule(_DerivedRule):
    """The rule of the transpose: from residuals and nonzero cotangents to cotangents.

    The cotangents of what is the same for all examples are not, so that all linear operands of the
    rule are batched.
    """

    __slots__ = ("in_avals", "linear", "nonzero")

    def __init__(self, rule: BatchingRule, linear: Flags, in_avals: Sequence[ShapedArray],
                 nonzero: Flags) -> None:
        self.rule = rule
        self.linear = linear
        self.in_avals = in_avals
        self.nonzero = nonzero

    def concerning(self, batched: Sequence[bool]) -> bool:
        given = iter(batched)
        flags = [not linear and next(given) for linear in self.linear]
        return any(flags) and self.rule.concerning([
            linear or flag for linear, flag in zip(self.linear, flags, strict=True)])

    def __call__(self, size: int, batched: Sequence[bool], *operands: Value
                 ) -> tuple[list[Any], list[bool]]:
        given = iter(batched)
        flags = [linear or next(given) for linear in self.linear]
        out_flags: list[bool] = []

        def fun(*args: Value) -> list[Any]:
            outs, out_flags[:] = self.rule(size, flags, *args)
            return outs

        program = self._recorded(fun, operands, [batched_aval(a, 0, size) for a in self.in_avals])
        cts = zip(operands[len(self.linear) - sum(self.linear):], given, strict=True)
        in_cts = self._pulled(program, [
            _summed(*next(cts), flag, size) if nonzero else None
            for flag, nonzero in zip(out_flags, self.nonzero, strict=True)])
        return in_cts, [True] * len(in_cts)

    def of_one(self, size: int, *operands: Any) -> list[Any]:
        program = self._recorded(partial(self.rule.of_one, size), operands, self.in_avals)
        cts = iter(operands[len(self.linear) - sum(self.linear):])
        return self._pulled(program, [next(cts) if nonzero else None for nonzero in self.nonzero])

    def _recorded(self, fun: FlatFunction, operands: Values, in_avals: Sequence[Any]
                  ) -> tuple[LinearProgram, Sequence[Any]]:
        """What the function of residuals and linear operands records, and its outputs."""
        given = iter(operands)
        trace = LinearTrace()
        with new_level(trace):
            args = [trace.new_arg(aval) if linear else next(given)
                    for aval, linear in zip(in_avals, self.linear, strict=True)]
            outs = fun(*args)
            return LinearProgram([x._var for x in selected(args, self.linear)], trace.eqns,
                                 [trace.unwrap(x) for x in outs]), outs

    def _pulled(self, recorded: tuple[LinearProgram, Sequence[Any]], cts: Values) -> list[Any]:
        program, outs = recorded
        given = [ct if nonzero else Zero.of_primal(x)
                 for x, ct, nonzero in zip(outs, cts, self.nonzero, strict=True)]
        return list(map(instantiate, program.backward(given)))


def _summed(ct: Value, batched: bool, wanted: bool, size: int) -> Value:
    """The cotangent of an output: what is the same for all examples gets the sum of theirs."""
    ct = ct if batched else match_axis(ct, None, 0, size)
    return ct if wanted else reduce_sum(ct, (0,))


def _transpose(cts: Tangents, *operands: Operand, call: ClosedJaxpr, rule: BatchingRule,
               num_consts: int) -> list[Any]:
    linear = linear_flags(operands)
    nonzero = nonzero_flags(cts)
    pulled = transpose_jaxpr(call, linear, nonzero, True)
    derived = _NoRule(rule) if any(linear[:num_consts]) else _TransposedRule(
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
