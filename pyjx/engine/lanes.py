"""Lanes: the examples of a batch as a program of one example that runs for some of them.

Batched branches run for all examples, and loops as long as one example goes on; what the others get
is thrown away afterwards, so nobody need know which they are. Who asks what happens inside, such as
`checkify`, must: where `keeping_lanes` is set, batching leaves `lanes`, a call of the program of
one example with a flag for each. Else, and wherever it is lowered, it is the batched program.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pyjx.configuration import keeping_lanes
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.derived import derived
from pyjx.core.evaluation import jaxpr_as_fun
from pyjx.core.jaxpr import ClosedJaxpr
from pyjx.core.named_axes import Axis
from pyjx.core.trace import trace_to_jaxpr
from pyjx.engine.axes import at_front, broadcast_in_dim, reduce_sum
from pyjx.engine.batching import BatchTrace
from pyjx.engine.calls import standing_for
from pyjx.engine.holders import Held, Holder, Programs, Roles
from pyjx.engine.subjaxprs import (
    Places,
    TransposedJaxpr,
    batch_jaxpr,
    nonzero_flags,
    transpose_jaxpr,
    without_tracers,
)
from pyjx.engine.types import Dims, Flags, Params, Tangents, Values


def run_lanes(running: Any, closed: ClosedJaxpr, operands: Sequence[Any], dims: Places, axis: Axis
              ) -> list[Any]:
    """The results of a batched program, along a first axis.

    Args:
      running: for each example, whether it runs.
      closed: the program of one example.
      dims: for each operand 0 where its examples lie along its first axis, None where it is the
        same for all.
    """
    if not keeping_lanes.value:
        return jaxpr_as_fun(batched(closed, dims, axis))(*operands)
    closed, consts = without_tracers(closed)
    return lanes_p.bind(  # type: ignore[no-any-return]
        running, *consts, *operands, jaxpr=closed, dims=(None,) * len(consts) + dims, axis=axis)


def batched(closed: ClosedJaxpr, dims: Places, axis: Axis) -> ClosedJaxpr:
    """The program of all examples, whose results lie along a first axis."""
    with keeping_lanes(False):
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


def _batch(trace: BatchTrace, operands: Values, operand_dims: Dims, **params: Any) -> Any:
    """Lanes of lanes: all of the new examples run, those in them as they say."""
    places = tuple([None if d is None else 0 for d in operand_dims])
    values = [x if d is None else at_front(x, d, trace.axis)
              for x, d in zip(operands, operand_dims, strict=True)]
    if not keeping_lanes.value:
        outs = jaxpr_as_fun(batched(_stands_for(params), places, trace.axis))(*values)
        return outs, [0] * len(outs)
    avals = [get_aval(x) if d is None else get_aval(x).update(shape=get_aval(x).shape[1:])
             for x, d in zip(values, places, strict=True)]
    one = trace_to_jaxpr(lambda *args: lanes_p.bind(*args, **params), avals)
    running = broadcast_in_dim(np.bool_(True), (trace.axis.size,), ())
    outs = run_lanes(running, one, values, places, trace.axis)
    return outs, [0] * len(outs)


lanes_p = standing_for("lanes", _stands_for, batch_axis=_batch)


class _Lanes(Holder):
    """The role of a value is its batch axis: 0, or None where it is the same for all examples."""

    lacks = ("accumulate", "check", "cut", "discharge", "thread")
    stands_for = staticmethod(_stands_for)

    def held(self, params: Params) -> Held:
        closed = params["jaxpr"]
        return Held((closed,), 1, params["dims"], (0,) * len(closed.jaxpr.outvars), 0, 0)

    def derived_params(self, params: Params, programs: Programs, ins: Roles, outs: Roles,
                       linear: bool = False) -> Params:
        return {**params, "jaxpr": programs[0], "dims": tuple(ins)}

    def bind(self, programs: Programs, operands: Sequence[Any], params: Params, ins: Roles,
             outs: Roles, linear: bool = False) -> list[Any]:
        """What is to be the same for all examples, a cotangent, is the sum of theirs."""
        results = run_lanes(operands[0], programs[0], operands[1:], tuple(ins), params["axis"])
        return [reduce_sum(x, (0,)) if dim is None else x
                for x, dim in zip(results, outs, strict=True)]

    def residual_roles(self, avals: Sequence[Any], params: Params) -> Roles:
        return (0,) * len(avals)

    def transposed(self, params: Params, closed: ClosedJaxpr, linear: Flags, cts: Tangents,
                   added: Flags | None) -> TransposedJaxpr:
        return transpose_jaxpr(closed, linear, nonzero_flags(cts))


_Lanes(lanes_p)
