"""Batching: one example's program becomes the whole batch's."""

from __future__ import annotations

from typing import Any

from pyjx import configuration
from pyjx.core.array_type import ArrayLike
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.bounded import BoundedDict
from pyjx.core.effects import axis_names
from pyjx.core.explicit import entries_of, with_dim, without_dim
from pyjx.core.meshes import AbstractMesh
from pyjx.core.named_axes import Axis, named_axis, sharding_along
from pyjx.core.primitive import Primitive
from pyjx.core.trace import Trace, Tracer, as_dynamic, check_leaks, new_level, state
from pyjx.engine import discharge
from pyjx.engine.axes import at_front, broadcast_axis, moveaxis
from pyjx.engine.functions import made_in
from pyjx.engine.moves import made_to_lie
from pyjx.engine.types import Dims, FlatFunction, Params, Value, Values


class BatchTracer(Tracer):
    """One example of `val`, whose examples lie along axis `batch_dim`."""

    __slots__ = ("batch_dim", "val")

    batch_dim: int | None  # None for references that all examples share

    def __init__(self, trace: BatchTrace, val: Any, batch_dim: int) -> None:
        aval = get_aval(val)
        self._trace = trace
        example = _examples.get((aval, batch_dim))
        self.aval = example_aval(aval, batch_dim, trace.axis.size) if example is None else example
        self.val = val
        self.batch_dim = batch_dim

    def __repr__(self) -> str:
        batched = get_aval(self.val).str_short()
        return f"VmapTracer(aval={self.aval.str_short()}, batched={batched})"

    def _origin_msg(self) -> str:
        outer = self.val._origin_msg() if isinstance(self.val, Tracer) else ""
        return outer + made_in(self._trace.fun, "mapped by vmap")


_examples = BoundedDict(8192, "types of examples")  # by batched aval and axis


def example_aval(aval: ShapedArray, dim: int, size: int | None = None) -> ShapedArray:
    """The aval of one example of a batch, of this size, whose examples lie along axis `dim`."""
    example = _examples[aval, dim] = without_dim(aval, dim, size)
    return example


class BatchTrace(Trace):
    """Runs operations on whole batches, whose examples lie along `axis`."""

    __slots__ = ("axis", "fun", "tag")

    maps = True

    def __init__(self, axis: Axis, fun: FlatFunction | None = None) -> None:
        self.axis = axis
        self.fun = fun  # for messages
        self.tag = object()  # traces of one tag batch over one axis

    def __repr__(self) -> str:
        return "BatchTrace"

    def value_and_dim(self, x: ArrayLike) -> tuple[Any, int | None]:
        if type(x) is BatchTracer and x._trace.tag is self.tag:
            return x.val, x.batch_dim
        self.check_outer(x)
        return x, None

    def join(self, val: Any, dim: int | None) -> Any:
        return val if dim is None else BatchTracer(self, val, dim)

    def make_ref(self, primitive: Primitive, operands: tuple[Value, ...], params: Params) -> Any:
        pairs = [self.value_and_dim(x) for x in operands]
        batched = any([d is not None for _, d in pairs])
        values = [at_front(x, d, self.axis) if batched else x for x, d in pairs]
        ref = self.parent.make_ref(primitive, tuple(values), params)
        return BatchTracer(self, ref, 0) if batched else self.own_ref(ref)

    def own_ref(self, ref: Any) -> BatchTracer:
        """A reference made here that is the same for all examples, as long as none writes a value
        of its own."""
        tracer = object.__new__(BatchTracer)
        tracer._trace = self
        tracer.aval = get_aval(ref)
        tracer.val = ref
        tracer.batch_dim = None
        return tracer

    def part_own_refs(self, operands: tuple[Value, ...]) -> None:
        """Give each example a part of the references among the operands, which are made here, if
        some operand is batched."""
        if not any([self.value_and_dim(x)[1] is not None for x in operands]):
            return
        for x in operands:
            if type(x) is BatchTracer and x.batch_dim is None and x._trace is self:
                whole = broadcast_axis(discharge.get_p.bind(x.val, indexers=()), self.axis, 0)
                kind = x.val.aval.kind
                x.val = self.parent.make_ref(discharge.new_ref_p, (whole,), {
                    "memory_space": x.aval.memory_space, "kind": kind, "pin": False})
                x.batch_dim = 0

    def process(self, primitive: Primitive, operands: tuple[Value, ...], params: Params) -> Any:
        if not self.alive:
            self.check_alive(operands)
        if primitive.effects is not None and discharge.holds_state(primitive, params):
            if not discharge.rules_take_refs(primitive, operands, params):
                return discharge.bind_discharged(primitive, operands, params)
            params = discharge.without_own_refs(params)
            self.part_own_refs(operands)
        elif primitive is discharge.swap_p or primitive is discharge.addupdate_p:
            self.part_own_refs(operands)
        vals = []
        dims: list[int | None] = []
        for x in operands:
            val, dim = (x.val, x.batch_dim) if (
                type(x) is BatchTracer and x._trace is self) else self.value_and_dim(x)
            vals.append(val)
            dims.append(dim)
        if primitive.asked:
            primitive.check_operands(operands, params)
        if primitive.batch_axis is not None:
            if self.axis.sharding is not None:
                vals = [cut_along(x, d, self.axis) for x, d in zip(vals, dims, strict=True)]
            out, dim_out = primitive.batch_axis(self, vals, dims, **params)
        elif primitive.batch is not None:
            try:
                out, dim_out = primitive.batch(vals, dims, **params)
            except (TypeError, ValueError):  # told of in the sizes of an example
                if primitive.cached:
                    primitive.check_operands(operands, params)
                raise
        elif primitive.decomposition is not None:
            return primitive.decomposition(*operands, **params)
        else:
            raise NotImplementedError(f"Batching rule for '{primitive}' not implemented. "
                                      "jax.lax.map(f, xs) calls f for each example.")
        if primitive.multiple_results:
            return [self.join(v, d) for v, d in zip(out, dim_out, strict=True)]
        return out if dim_out is None else BatchTracer(self, out, dim_out)


class SameAxisTrace(BatchTrace):
    """Batches over the axis of another trace, whose tracers it takes for its own.

    A function that the user gave as part of a rule is batched later than the code around it. It
    may close over tracers of that code, on which the operations must come here too: this trace is
    the thread's dynamic one while the function runs.
    """

    __slots__ = ("axis_read", "outside")

    def __init__(self, like: BatchTrace) -> None:
        BatchTrace.__init__(self, like.axis)
        self.tag = like.tag
        self.outside = state.dynamic
        self.axis_read = False  # whether an operation has read the axis by its name

    def process(self, primitive: Primitive, operands: tuple[Value, ...], params: Params) -> Any:
        with as_dynamic(self.outside):
            if reads_axis(primitive, operands, params, self.axis):
                self.axis_read = True
            elif not may_close_over_values(primitive, params):
                pairs = [self.value_and_dim(x) for x in operands]
                if all([d is None for _, d in pairs]):
                    return primitive.bind(*[x for x, _ in pairs], **params)
            return BatchTrace.process(self, primitive, operands, params)


def reads_axis(primitive: Primitive, operands: Values, params: Params, axis: Axis) -> bool:
    """Whether the primitive reads the axis by its name."""
    return primitive.effects is not None and axis.name in axis_names(
        primitive.effects_of(operands, params))


def may_close_over_values(primitive: Primitive, params: Params) -> bool:
    """Whether the primitive is a call of a Python function."""
    return primitive.record is not None and callable(params.get("call_jaxpr"))


def bind_function(primitive: Primitive, operands: Values, params: Params,
                  inside: Trace | None = None) -> Any:
    """Bind a call of a Python function, which may close over values that are mapped where the
    operands are not: batches around it, those outside of the trace `inside`, come first."""
    level = max([state.dynamic.level, *[x._trace.level for x in operands if isinstance(x, Tracer)]])
    trace = state.innermost
    while trace.level > level:
        if isinstance(trace, BatchTrace) and (inside is None or trace.level < inside.level):
            return trace.process(primitive, tuple(operands), params)
        trace = trace.parent
    return primitive.bind(*operands, **params)


def batch_again(fun: FlatFunction, args: Values, in_dims: Dims, like: BatchTrace
                ) -> tuple[list[Any], list[int | None], bool]:
    """As `batch_flat`, over the axis of the trace `like`, and whether that axis was read by name.
    """
    trace = SameAxisTrace(like)
    with new_level(trace), named_axis(like.axis, trace):
        with as_dynamic(trace):
            outs = fun(*[trace.join(x, d) for x, d in zip(args, in_dims, strict=True)])
        pairs = [trace.value_and_dim(x) for x in outs]
    if trace.axis_read and type(like) is SameAxisTrace:
        like.axis_read = True
    return [v for v, _ in pairs], [d for _, d in pairs], trace.axis_read


def batch_flat(fun: FlatFunction, args: Values, in_dims: Dims, axis: Axis | int
               ) -> tuple[list[Any], list[int | None]]:
    """Batched outputs of a function on flat values, and where their batch axes are.

    An int is the size of an axis without a name.
    """
    if type(axis) is int:
        axis = Axis(None, axis)
    assert isinstance(axis, Axis)
    trace = BatchTrace(axis, fun)
    with new_level(trace), named_axis(axis, trace):
        outs = fun(*[trace.join(x, d) for x, d in zip(args, in_dims, strict=True)])
        pairs = [trace.value_and_dim(x) for x in outs]
    if configuration.check_tracer_leaks.value:
        del outs
        check_leaks(trace)
    return [v for v, _ in pairs], [d for _, d in pairs]


def match_axis(x: ArrayLike, dim: int | None, destination: int | None, along: Axis | int) -> Any:
    """A batched output with its batch axis where the caller wants it."""
    if dim is None:
        return x if destination is None else broadcast_axis(x, along, destination)
    return moveaxis(x, dim, destination)  # type: ignore[arg-type]


def cut_along(x: ArrayLike, dim: int | None, axis: Axis) -> Any:
    """A batch that lies along `axis` as that says."""
    cut = None if dim is None else sharding_along(axis)
    if dim is None or cut is None:
        return x
    aval = get_aval(x)
    if entries_of(aval)[dim] == cut.spec[0]:
        return x
    wanted = with_dim(without_dim(aval, dim), dim, axis.size, cut=cut)
    return made_to_lie(x, wanted.place.sharding,
                       None if isinstance(cut.mesh, AbstractMesh) else cut.mesh)
