"""The primitive of functions with batching rules of their own: `custom_vmap_call`.

A call carries the function, as a jaxpr, and its rule. Batching takes the rule in its place. What is
derived from the call is a call again, of the derived function and the derived rule, so that the
order of the transformations does not matter: batching a derivative gives that of the rule.

Rules are on flat values here:
    rule(size, batched, *operands) -> (outs, which of them are batched)
where `batched` says of each operand whether its first axis is that of the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyjx.core import dtypes
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.evaluation import jaxpr_as_fun
from pyjx.core.jaxpr import ClosedJaxpr
from pyjx.core.named_axes import Axis, outside_axis
from pyjx.core.primitive import Primitive, register
from pyjx.core.trace import new_level
from pyjx.engine.axes import reduce_sum
from pyjx.engine.batching import BatchTrace, batch_flat, match_axis
from pyjx.engine.calls import call as bind_call
from pyjx.engine.forward import jvp_flat
from pyjx.engine.functions import name_of
from pyjx.engine.linearize import LinearProgram, LinearTrace
from pyjx.engine.subjaxprs import (
    batch_jaxpr,
    batched_aval,
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
from pyjx.engine.types import Dims, Flags, Operand, Params, Tangents, Value, Values

BatchingRule = Callable[..., tuple[list[Any], Sequence[bool]]]


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


def _run(*args: Any, call: ClosedJaxpr, **_: Any) -> list[Any]:
    """The function, where nothing is transformed."""
    return bind_call(call, call.debug_info.func_name, *args)


# -- batching --------------------------------------------------------------------------------------


def _batch(trace: BatchTrace, operands: Values, dims: Dims, *, call: ClosedJaxpr,
           rule: BatchingRule, num_consts: int) -> Any:
    if any([d is not None for d in dims[:num_consts]]):
        _raise_captured(rule, "is mapped by the same vmap")
    if not _concerns(rule, [d is not None for d in dims[num_consts:]]):
        return _batch_derivative(trace, operands, dims, call, rule, num_consts)
    operands, dims = operands[num_consts:], dims[num_consts:]
    size = trace.axis.size
    at_front = [x if d is None else match_axis(x, d, 0, size)
                for x, d in zip(operands, dims, strict=True)]
    with outside_axis(trace.axis):  # the rule sees the whole batch
        outs, batched = rule(size, [d is not None for d in dims], *at_front)
    for i, (x, b, aval) in enumerate(zip(outs, batched, call.out_avals, strict=True)):
        expected = batched_aval(aval, 0 if b else None, size)
        found = get_aval(x)
        if found.shape != expected.shape:
            raise ValueError(
                f"custom_vmap: the rule {name_of(rule)} must return what the function returns for "
                f"each of {size} examples: expected shape {expected.shape} for output {i}, "
                f"{'batched' if b else 'not batched'}, got {found.shape}."
            )
    return outs, [0 if b else None for b in batched]


def _concerns(rule: Any, batched: Sequence[bool]) -> bool:
    """Whether an operand of the user's rule is batched, and not tangents and cotangents alone."""
    if isinstance(rule, _DerivedRule):
        return _concerns(rule.rule, rule.concerning(batched))
    return any(batched)


class _DerivedRule:
    """A rule made from another one, and in the end from the user's."""

    __slots__ = ("rule",)

    rule: BatchingRule

    @property
    def __name__(self) -> str:
        return name_of(self.rule)

    def concerning(self, batched: Sequence[bool]) -> Sequence[bool]:
        """Which operands of the other rule are batched where these of this one are."""
        return batched


def _batch_derivative(trace: BatchTrace, operands: Values, dims: Dims, call: ClosedJaxpr,
                      rule: BatchingRule, num_consts: int) -> Any:
    """A batch of tangents or cotangents at one point: a call again, whose rule is for points.

    The rule itself would not end, if it calls the function that it is the rule of.
    """
    batched, out_dims = batch_jaxpr(call, tuple(dims), trace.axis)
    mapped = _MappedRule(rule, dims[num_consts:], out_dims, trace.axis)
    return bind_custom_vmap(
        batched, mapped, operands[:num_consts], operands[num_consts:]), out_dims


class _MappedRule(_DerivedRule):
    """The rule of a batch along `axis` of tangents or cotangents."""

    __slots__ = ("axis", "in_dims", "out_dims")

    def __init__(self, rule: BatchingRule, in_dims: Dims, out_dims: Dims, axis: Axis) -> None:
        self.rule = rule
        self.in_dims = in_dims
        self.out_dims = out_dims
        self.axis = axis

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

    def concerning(self, batched: Sequence[bool]) -> Sequence[bool]:
        return batched[:len(self.nonzero)]

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

        points = [p[0] for p, _ in joined]
        outs, out_tangents = jvp_flat(fun, points, [
            t if nonzero else Zero.of_primal(x)
            for x, (_, t), nonzero in zip(points, joined, self.nonzero, strict=True)])
        derivative = list(map(instantiate, selected(out_tangents, self.wanted)))
        derivative_flags = selected(out_flags, self.wanted)
        if self.only_tangents:
            return derivative, derivative_flags
        return [*outs, *derivative], [*out_flags, *derivative_flags]


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
    def refuse(size: int, batched: Sequence[bool], *operands: Value) -> Any:
        _raise_captured(rule, "is differentiated inside the vmap")

    return refuse


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
    derived = _no_rule(rule) if m else _JvpRule(rule, nonzero[num_consts:], wanted, only_tangents)
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

    def concerning(self, batched: Sequence[bool]) -> Sequence[bool]:
        given = iter(batched)
        return [not linear and next(given) for linear in self.linear]

    def __call__(self, size: int, batched: Sequence[bool], *operands: Value
                 ) -> tuple[list[Any], list[bool]]:
        given = zip(operands, batched, strict=False)
        trace = LinearTrace()
        with new_level(trace):
            args: list[Any] = []
            flags: list[bool] = []
            for aval, linear in zip(self.in_avals, self.linear, strict=True):
                x, flag = (trace.new_arg(batched_aval(aval, 0, size)), True) if linear else \
                    next(given)
                args.append(x)
                flags.append(flag)
            outs, out_flags = self.rule(size, flags, *args)
            program = LinearProgram([x._var for x in selected(args, self.linear)], trace.eqns,
                                    [trace.unwrap(x) for x in outs])
        n = len(self.linear) - sum(self.linear)
        given = zip(operands[n:], batched[n:], strict=True)
        cts = [_summed(*next(given), flag, size) if nonzero else Zero.of_primal(x)
               for x, flag, nonzero in zip(outs, out_flags, self.nonzero, strict=True)]
        in_cts = list(map(instantiate, program.backward(cts)))
        return in_cts, [True] * len(in_cts)


def _summed(ct: Value, batched: bool, wanted: bool, size: int) -> Value:
    """The cotangent of an output: what is the same for all examples gets the sum of theirs."""
    ct = ct if batched else match_axis(ct, None, 0, size)
    return ct if wanted else reduce_sum(ct, (0,))


def _transpose(cts: Tangents, *operands: Operand, call: ClosedJaxpr, rule: BatchingRule,
               num_consts: int) -> list[Any]:
    linear = linear_flags(operands)
    nonzero = nonzero_flags(cts)
    pulled = transpose_jaxpr(call, linear, nonzero, True)
    derived = _no_rule(rule) if any(linear[:num_consts]) else _TransposedRule(
        rule, linear[num_consts:], call.in_avals[num_consts:], nonzero)
    captured = selected(operands[:num_consts], negated(linear[:num_consts]))
    args = selected(operands[num_consts:], negated(linear[num_consts:]))
    args += selected(cts, nonzero)
    outs = iter(bind_custom_vmap(pulled.jaxpr, derived, captured, args))
    return [next(outs) if flag else None for flag in linear]


custom_vmap_call_p = register(Primitive(
    "custom_vmap_call", shape_rule=lambda *avals, call, **_: call.out_avals, jvp=_jvp,
    linearize=_linearize, split=_split, transpose=_transpose, batch_axis=_batch, impl=_run,
    effects=lambda params: params["call"].effects,
    stands_for=lambda params: params["call"],
    multiple_results=True, cached=False, own_rules=True,
))
