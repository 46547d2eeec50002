"""Lanes: the examples of a batch as a program of one example that runs for some of them.

Batched branches run for all examples, and loops as long as one example goes on; what the others get
is thrown away afterwards, so nobody need know which they are. Who asks what happens inside, such as
`checkify`, must: where `kept` is set, batching leaves `lanes`, a call of the program of one example
with a flag for each. Else, and wherever it is lowered, it is the batched program.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.derived import derived
from pyjx.core.evaluation import jaxpr_as_fun
from pyjx.core.jaxpr import ClosedJaxpr
from pyjx.core.named_axes import Axis
from pyjx.core.primitive import Primitive, register
from pyjx.core.trace import trace_to_jaxpr
from pyjx.engine.axes import at_front, broadcast_in_dim, reduce_sum
from pyjx.engine.batching import BatchTrace
from pyjx.engine.calls import call
from pyjx.engine.linearize import LinearTrace
from pyjx.engine.subjaxprs import (
    Places,
    batch_jaxpr,
    dependent_outputs,
    jvp_jaxpr,
    linear_flags,
    linearize_jaxpr,
    negated,
    nonzero_flags,
    part_of,
    selected,
    transpose_jaxpr,
    with_cotangents,
    with_zeros,
    without_tracers,
)
from pyjx.engine.tangents import Zero
from pyjx.engine.types import Dims, Operand, Params, Tangents, Values
from pyjx.states import LocalState

kept = LocalState("lanes", False, in_trace_context=True)


def run_lanes(running: Any, closed: ClosedJaxpr, operands: Sequence[Any], dims: Places, axis: Axis
              ) -> list[Any]:
    """The results of a batched program, along a first axis.

    Args:
      running: for each example, whether it runs.
      closed: the program of one example.
      dims: for each operand 0 where its examples lie along its first axis, None where it is the
        same for all.
    """
    if not kept.value:
        return jaxpr_as_fun(batched(closed, dims, axis))(*operands)
    closed, consts = without_tracers(closed)
    return lanes_p.bind(  # type: ignore[no-any-return]
        running, *consts, *operands, jaxpr=closed, dims=(None,) * len(consts) + dims, axis=axis)


def batched(closed: ClosedJaxpr, dims: Places, axis: Axis) -> ClosedJaxpr:
    """The program of all examples, whose results lie along a first axis."""
    with kept(False):
        return batch_jaxpr(closed, dims, axis, (0,) * len(closed.outvars)).jaxpr


@derived
def _whole(closed: ClosedJaxpr, dims: Places, axis: Axis) -> ClosedJaxpr:
    """The program of all examples, from flags, which it does not read, and the operands."""
    program = batched(closed, dims, axis)
    flags = ShapedArray((axis.size,), np.dtype(bool))
    return trace_to_jaxpr(lambda _, *args: jaxpr_as_fun(program)(*args),
                          [flags, *program.in_avals], closed.debug_info)


def _stands_for(params: Params) -> ClosedJaxpr:
    return _whole(params["jaxpr"], params["dims"], params["axis"])


def _jvp(primals: Values, tangents: Tangents, *, jaxpr: ClosedJaxpr, dims: Places, axis: Axis
         ) -> Any:
    nonzero = nonzero_flags(tangents[1:])
    pushed = jvp_jaxpr(jaxpr, nonzero)
    outs = run_lanes(primals[0], pushed.jaxpr, [*primals[1:], *selected(tangents[1:], nonzero)],
                     dims + tuple(selected(dims, nonzero)), axis)
    n = len(jaxpr.outvars)
    return outs[:n], with_zeros(outs[n:], pushed.nonzero, list(map(get_aval, outs[:n])))


def _linearize(trace: LinearTrace, primals: Values, tangents: Tangents, *, jaxpr: ClosedJaxpr,
               dims: Places, axis: Axis) -> Any:
    nonzero = nonzero_flags(tangents[1:])
    if not any(nonzero):
        outs = run_lanes(primals[0], jaxpr, primals[1:], dims, axis)
        return outs, [Zero.of_primal(x) for x in outs]
    parts = linearize_jaxpr(jaxpr, nonzero)
    results = run_lanes(primals[0], parts.known, primals[1:], dims, axis)
    n = len(jaxpr.outvars)
    outs, residuals = results[:n], results[n:]
    linear, consts = without_tracers(parts.linear)
    operands = [*consts, *residuals, *[primals[1 + i] for i in parts.forwarded],
                *selected(tangents[1:], nonzero)]
    places = (*[None] * len(consts), *[0] * len(residuals), *[dims[i] for i in parts.forwarded],
              *selected(dims, nonzero))
    pushed = trace.record(lanes_p, [primals[0], *operands], {
        "jaxpr": linear, "dims": places, "axis": axis})
    return outs, with_zeros(pushed, parts.nonzero, list(map(get_aval, outs)))


def _split(trace: LinearTrace, operands: Any, params: Params) -> list[Any]:
    closed, dims = params["jaxpr"], params["dims"]
    running, *values = operands
    linear = trace.linear_flags(values)
    dependent, given = dependent_outputs(closed, linear), negated(linear)
    known = iter(() if all(dependent) else run_lanes(
        running, part_of(closed, negated(dependent), given), selected(values, given),
        tuple(selected(dims, given)), params["axis"]))
    tangents = iter(() if not any(dependent) else trace.record(lanes_p, operands, {
        **params, "jaxpr": part_of(closed, dependent, (True,) * len(values), False)}))
    return [next(tangents) if d else next(known) for d in dependent]


def _transpose(cts: Tangents, running: Operand, *operands: Operand, jaxpr: ClosedJaxpr,
               dims: Places, axis: Axis) -> Tangents:
    linear = linear_flags(operands)
    pulled = transpose_jaxpr(jaxpr, linear, nonzero_flags(cts))
    given = [ct for ct in cts if type(ct) is not Zero]
    outs = run_lanes(running, pulled.jaxpr, [*selected(operands, negated(linear)), *given],
                     (*selected(dims, negated(linear)), *[0] * len(given)), axis)
    places = selected(selected(dims, linear), pulled.nonzero)
    return [None, *with_cotangents(operands, pulled.nonzero, iter([
        reduce_sum(x, (0,)) if d is None else x for x, d in zip(outs, places, strict=True)]))]


def _batch(trace: BatchTrace, operands: Values, operand_dims: Dims, **params: Any) -> Any:
    """Lanes of lanes: all of the new examples run, those in them as they say."""
    places = tuple([None if d is None else 0 for d in operand_dims])
    values = [x if d is None else at_front(x, d, trace.axis)
              for x, d in zip(operands, operand_dims, strict=True)]
    if not kept.value:
        outs = jaxpr_as_fun(batched(_stands_for(params), places, trace.axis))(*values)
        return outs, [0] * len(outs)
    avals = [get_aval(x) if d is None else get_aval(x).update(shape=get_aval(x).shape[1:])
             for x, d in zip(values, places, strict=True)]
    one = trace_to_jaxpr(lambda *args: lanes_p.bind(*args, **params), avals)
    running = broadcast_in_dim(np.bool_(True), (trace.axis.size,), ())
    outs = run_lanes(running, one, values, places, trace.axis)
    return outs, [0] * len(outs)


lanes_p = register(Primitive(
    "lanes", multiple_results=True, cached=False,
    shape_rule=lambda *avals, **params: _stands_for(params).out_avals,
    effects=lambda params: _stands_for(params).effects, stands_for=_stands_for,
    impl=lambda *args, **params: call(_stands_for(params), "lanes", *args),
    split=_split,
    jvp=_jvp, linearize=_linearize, transpose=_transpose, batch_axis=_batch,
))
