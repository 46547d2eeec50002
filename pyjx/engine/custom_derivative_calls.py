"""The primitives of functions with custom derivatives: `custom_jvp_call` and `custom_vjp_call`.

A call carries the function and its rule. Where nothing is transformed the function runs; forward
mode takes the rule in its place; batching makes a call whose function and rule are both batched;
recording traces the function into a jaxpr and keeps the rule beside it, so that the equation can
be differentiated later.

Functions and rules are on flat values here:
    fun(*primals) -> outs
    jvp(primals, tangents) -> (outs, out tangents); a tangent may be a symbolic zero
    fwd(primals, nonzero) -> (outs, residuals, bwd), where
    bwd(residuals, cotangents) -> one cotangent, or symbolic zero, for each primal
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyjx.core import dtypes
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.effects import Effects, axis_names, no_effects
from pyjx.core.evaluation import jaxpr_as_fun
from pyjx.core.jaxpr import ClosedJaxpr, DebugInfo
from pyjx.core.named_axes import Axis
from pyjx.core.primitive import Holding, Primitive, register
from pyjx.core.records import Field, Record, of_field
from pyjx.core.trace import eager_trace, state, trace_to_jaxpr
from pyjx.engine import logs
from pyjx.engine.axes import reduce_sum
from pyjx.engine.batching import BatchTrace, batch_again, bind_function, example_aval, match_axis
from pyjx.engine.calls import call
from pyjx.engine.discharge import Box
from pyjx.engine.forward import CustomVJPException, refuse_captured_tangents, whose_call
from pyjx.engine.functions import flatten, name_of, source_of
from pyjx.engine.linearize import LinearTracer
from pyjx.engine.subjaxprs import backward_jaxpr, batch_jaxpr, consts_as_inputs, selected
from pyjx.engine.tangents import Zero, materialized
from pyjx.engine.types import Dims, Operand, Params, Tangent, Tangents, Value, Values


class SymbolicZero:
    """What a rule with `symbolic_zeros=True` gets and may give for a tangent that is zero.

    It has the aval, shape and dtype of the tangent.
    """

    __slots__ = ("aval",)

    def __init__(self, aval: Any) -> None:
        self.aval = aval

    shape: Field[tuple[int, ...]] = of_field("aval.shape")
    dtype: Field[Any] = of_field("aval.dtype")

    @property
    def ndim(self) -> int:
        return len(self.aval.shape)

    @staticmethod
    def from_primal_value(val: Any) -> SymbolicZero:
        """The zero tangent at `val`."""
        return SymbolicZero(get_aval(val).to_tangent_aval())

    def __reduce__(self) -> Any:
        return type(self), (self.aval,)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.aval = state["aval"]  # jax pickles it so

    def __repr__(self) -> str:
        return "SymbolicZero"


def _checked_before(outs: Values, expected: Sequence[Any]) -> None:
    """What was recorded has been checked there."""


class FlatRule(Record):
    """A rule on flat values that is made of another one, whose name it has.

    Attributes:
      of: the other one.
      run: what it does.
      check: `(outs, expected)`: raises TypeError unless outputs are of the types of the function's.
    """

    of: Callable[..., Any]
    run: Callable[..., Any]
    check: Callable[..., None] = _checked_before

    @property
    def __name__(self) -> str:
        return name_of(self.of)

    def __call__(self, *args: Any) -> Any:
        return self.run(*args)


def record_call(primitive: Primitive, operands: tuple[Value, ...], params: Params) -> Any:
    """The function of a call as a jaxpr; what it closes over comes first as operands."""
    fun = params["call_jaxpr"]
    if isinstance(fun, ClosedJaxpr):
        return None
    debug = DebugInfo(primitive.name, name_of(fun))
    closed = trace_to_jaxpr(fun, [get_aval(x) for x in operands], debug)
    consts = closed.consts
    params = {**params, "call_jaxpr": consts_as_inputs(closed), "num_consts": len(consts)}
    return primitive.bind(*consts, *operands, **params)


def _run(primitive: Primitive, args: Values, call_jaxpr: Any) -> list[Any]:
    """The function, where nothing is transformed."""
    if isinstance(call_jaxpr, ClosedJaxpr):
        return call(call_jaxpr, call_jaxpr.debug_info.func_name, *args)
    outs: list[Any] = call_jaxpr(*args)
    refuse_captured_tangents(primitive, call_jaxpr, outs)
    return outs


def called_function(call_jaxpr: ClosedJaxpr) -> Callable[..., list[Any]]:
    """The function of a call, which is a jaxpr once it was recorded."""
    return jaxpr_as_fun(call_jaxpr) if isinstance(call_jaxpr, ClosedJaxpr) else call_jaxpr


def _effects(params: Params) -> Effects:
    fun = params["call_jaxpr"]
    return fun.effects if isinstance(fun, ClosedJaxpr) else no_effects


def _printed(params: Params, *rules: str) -> list[tuple[str, Any]]:
    """What jaxprs show of a call, by name."""
    called = params["call_jaxpr"]
    shown = [("call_jaxpr", called), ("symbolic_zeros", params["symbolic_zeros"])]
    shown += [(rule.partition("_")[0], params[rule]) for rule in rules]
    if params["num_consts"]:
        shown.append(("num_consts", params["num_consts"]))
    return [("name", called.jaxpr.debug_info.func_name), *sorted(shown, key=lambda item: item[0])]


def _custom_call(name: str, *rules: str) -> Primitive:
    """A call whose `call_jaxpr` is a jaxpr, or (until it is recorded) a Python function."""
    primitive = register(Primitive(
        name, multiple_results=True, cached=False, own_rules=True, holder=Holding(
            stands_for=lambda params: params["call_jaxpr"],
            split=lambda trace, operands, params: called_function(
                params["call_jaxpr"])(*operands))))
    return primitive.define(
        shape_rule=lambda *avals, call_jaxpr, **_: call_jaxpr.out_avals, effects=_effects,
        impl=lambda *args, call_jaxpr, **_: _run(primitive, args, call_jaxpr),
        printed=lambda params: _printed(params, *rules),
        record=lambda trace, operands, params: record_call(primitive, operands, params),
        transpose=lambda cts, *operands, call_jaxpr, **_: backward_jaxpr(
            call_jaxpr, operands, cts),
    )


custom_jvp_call_p = _custom_call("custom_jvp_call", "jvp_jaxpr_fun")
custom_vjp_call_p = _custom_call("custom_vjp_call", "fwd_jaxpr_thunk", "bwd")


def tangent_argument(t: Any, symbolic_zeros: bool) -> Any:
    """A tangent or cotangent as a rule gets it."""
    return SymbolicZero(t.aval) if symbolic_zeros and type(t) is Zero else materialized(t)


def tangent_result(t: Any) -> Any:
    """A tangent or cotangent as a rule gave it, with the zeros symbolic."""
    if type(t) is SymbolicZero:
        return Zero(t.aval)
    if type(t) is not Zero and getattr(t, "dtype", None) == dtypes.float0:
        return Zero(ShapedArray(t.shape, dtypes.float0))
    return t


# -- custom_jvp: forward mode ----------------------------------------------------------------------


def _custom_jvp_jvp(primals: Values, tangents: Tangents, *, call_jaxpr: Any, jvp_jaxpr_fun: Any,
                    num_consts: int, symbolic_zeros: bool) -> Any:
    if any(type(t) is not Zero for t in tangents[:num_consts]):
        raise CustomVJPException(custom_jvp_call_p, whose_call(call_jaxpr))
    given = [tangent_argument(t, symbolic_zeros) for t in tangents[num_consts:]]
    points = list(map(materialized, primals[num_consts:]))
    outs, out_tangents = jvp_jaxpr_fun(points, given)
    for t in given:
        if type(t) is LinearTracer:
            t._trace.rules.append(jvp_jaxpr_fun)
            break
    if isinstance(call_jaxpr, ClosedJaxpr):
        jvp_jaxpr_fun.check(outs, call_jaxpr.out_avals)
    return (_as_given(outs, points, primals[num_consts:]),
            _as_given(out_tangents, given, tangents[num_consts:]))


def _as_given(outs: Values, points: Values, primals: Tangents) -> Values:
    """Outputs of a rule, where it passes a scalar on that it got as an array, with that scalar."""
    scalars = {id(x): p for x, p in zip(points, primals, strict=True)
               if x is not p and type(p) is not Zero}
    return [scalars.get(id(x), x) for x in outs] if scalars else outs


# -- batching --------------------------------------------------------------------------------------


class _Batching:
    """What function and rule of a batched call share: the axis, and where outputs have it.

    Whichever of the two runs first decides where outputs have their batch axes; the other follows.
    """

    __slots__ = ("axis", "axis_read", "dims", "like", "out_dims")

    def __init__(self, dims: tuple[int | None, ...], like: BatchTrace,
                 out_dims: list[int | None] | None = None) -> None:
        self.dims = dims
        self.like = like
        self.axis = like.axis
        self.out_dims = out_dims
        self.axis_read = False

    def placed(self, outs: Values, found: Dims, all_batched: bool = False,
               wanted: Dims | None = None) -> list[Any]:
        """Outputs with their batch axes where they were decided to be: now, as is `wanted`."""
        if self.out_dims is None:
            self.out_dims = list(found if wanted is None else wanted)
            # What a rule makes later may be batched where this is not.
            known = not all_batched and state.dynamic is eager_trace
            if not known and self.may_differ(self.axis_read):
                self.out_dims = [0 if d is None else d for d in self.out_dims]
        return [self.moved(x, d, to) for x, d, to in zip(outs, found, self.out_dims, strict=True)]

    def may_differ(self, axis_read: bool) -> bool:
        """Whether outputs that are the same for all examples are not so by the rule, perhaps.

        Not where no operand is mapped, nor where they are what a collective over the axis gives.
        """
        return not axis_read and any([d is not None for d in self.dims])

    def moved(self, x: Any, dim: int | None, to: int | None) -> Any:
        if dim is not None and to is None:
            raise ValueError("custom_jvp, custom_vjp: under vmap the function gives one output for "
                             "all examples, where its rule gives each example another one. Have "
                             "both depend on the same mapped values.")
        return x if dim == to else match_axis(x, dim, to, self.axis)

    def run(self, fun: Callable[..., Any], args: Values, dims: Dims
            ) -> tuple[list[Any], list[int | None]]:
        outs, found, self.axis_read = batch_again(fun, args, dims, self.like)
        return outs, found


def _batched_jvp(rule: Callable[..., Any], b: _Batching) -> FlatRule:
    def run(primals: Values, tangents: Sequence[Any]) -> tuple[Any, Any]:
        moving = [type(t) is not SymbolicZero and getattr(t, "dtype", None) != dtypes.float0
                  for t in tangents]
        n, n_out, out_moving = len(primals), 0, []

        def fun(*args: Any) -> list[Any]:
            nonlocal n_out, out_moving
            given = iter(args[n:])
            outs, out_tangents = rule(args[:n], [
                next(given) if flag else zero_from_primal(p, type(t) is SymbolicZero)
                for p, t, flag in zip(args[:n], tangents, moving, strict=True)])
            n_out, out_moving = len(outs), [type(t) is not Zero for t in out_tangents]
            return [*outs, *selected(out_tangents, out_moving)]

        # Tangents have the shapes of their primals.
        flat, found = b.run(fun, [*primals, *selected(tangents, moving)],
                            [*b.dims, *selected(b.dims, moving)])
        given = iter(zip(flat[n_out:], found[n_out:], strict=True))
        pairs = [next(given) if flag else (None, None) for flag in out_moving]
        outs = b.placed(flat[:n_out], found[:n_out], wanted=[
            t_dim if d is None else d for d, (_, t_dim) in zip(found, pairs, strict=False)])
        return outs, [b.moved(t, d, to) if flag else Zero.of_primal(x) for (t, d), to, flag, x in
                      zip(pairs, b.out_dims or (), out_moving, outs, strict=True)]

    return FlatRule(rule, run)


def _batched_call(like: BatchTrace, dims: Dims, fun: Any, num_consts: int
                  ) -> tuple[Any, list[int | None] | None, _Batching]:
    """The batched function of a call, its output axes if known, and what the rule needs."""
    if not isinstance(fun, ClosedJaxpr):
        b = _Batching(tuple(dims), like)
        return FlatRule(fun, lambda *args: b.placed(*b.run(fun, args, b.dims))), None, b
    batched, out_dims = batch_jaxpr(fun, tuple(dims), like.axis)
    places = list(out_dims)
    batching = _Batching(tuple(dims[num_consts:]), like, places)
    if None in places and batching.may_differ(like.axis.name in axis_names(fun.effects)):
        places[:] = [0 if d is None else d for d in out_dims]
        batched, _ = batch_jaxpr(fun, tuple(dims), like.axis, tuple(places))
    return batched, places, batching


def _batch_rule(primitive: Primitive, rule: str, batched: Callable[[Any, _Batching], FlatRule]
                ) -> Callable[..., Any]:
    """The rule for batches of a call, whose parameter `rule` is batched likewise."""
    def batch_axis(trace: BatchTrace, operands: Values, dims: Dims, **params: Any) -> Any:
        fun, out_dims, batching = _batched_call(
            trace, dims, params["call_jaxpr"], params["num_consts"])
        outs = bind_function(primitive, operands, {
            **params, "call_jaxpr": fun, rule: batched(params[rule], batching)}, trace)
        return outs, batching.out_dims if out_dims is None else out_dims

    return batch_axis


custom_jvp_call_p.define(jvp=_custom_jvp_jvp, batch_axis=_batch_rule(
    custom_jvp_call_p, "jvp_jaxpr_fun", _batched_jvp))


# -- custom_vjp: reverse mode ----------------------------------------------------------------------


def _raise_forward_mode(*_: Any, **__: Any) -> Any:
    raise TypeError("can't apply forward-mode autodiff (jvp) to a custom_vjp function. A function "
                    "with a custom_jvp rule has both modes; grad, vjp and jacrev are reverse mode.")


def _lin_transpose(cts: Tangents, *operands: Operand, bwd: Callable[..., Any],
                   in_zeros: tuple[bool, ...], num_res: int, out_avals: tuple[Any, ...],
                   symbolic_zeros: bool) -> list[Any]:
    given = [tangent_argument(ct, symbolic_zeros) for ct in cts]
    in_cts = bwd(operands[:num_res], given)
    return [None] * num_res + [ct for ct, zero in zip(in_cts, in_zeros, strict=True) if not zero]


def _lin_jvp(primals: Values, tangents: Tangents, *, num_res: int, bwd: Callable[..., Any],
             **_: Any) -> Any:
    """Residuals that are differentiated where the tangents are recorded come from outside."""
    if any([type(x) is LinearTracer for x in primals[num_res:]]):
        raise CustomVJPException(custom_vjp_call_p, f" Its backward rule is {source_of(bwd)}.")
    _raise_forward_mode()


# The derivative of a custom_vjp function: from (residuals, tangents that are not zero) to tangents
# of the outputs. It can only be transposed.
custom_lin_p = register(Primitive(
    "custom_lin", shape_rule=lambda *avals, out_avals, **_: out_avals,
    transpose=_lin_transpose, impl=_raise_forward_mode,
    jvp=_lin_jvp, batch_axis=_raise_forward_mode, multiple_results=True, cached=False,
    own_rules=True, printed=lambda params: [
        ("bwd", params["bwd"]), ("in_zeros", list(params["in_zeros"])),
        ("num_res", params["num_res"]), ("symbolic_zeros", params["symbolic_zeros"]),
    ],
))


def _custom_vjp_jvp(primals: Values, tangents: Tangents, *, call_jaxpr: Any, fwd_jaxpr_thunk: Any,
                    bwd: Callable[..., Any], num_consts: int, out_trees: Any, symbolic_zeros: bool
                   ) -> Any:
    if any(type(t) is not Zero for t in tangents[:num_consts]):
        raise CustomVJPException(custom_vjp_call_p, whose_call(call_jaxpr))
    # A reference has the tangent of what it holds. The rules say what comes to that; what they
    # write has no tangent, so it stays.
    tangents = [t.value if isinstance(t, Box) else t for t in tangents[num_consts:]]
    nonzero = [type(t) is not Zero for t in tangents]
    points = list(map(materialized, primals[num_consts:]))
    outs, residuals, pull_back = fwd_jaxpr_thunk(points, nonzero)
    if isinstance(call_jaxpr, ClosedJaxpr):
        fwd_jaxpr_thunk.check(outs, call_jaxpr.out_avals)
    out_avals = tuple([get_aval(x).to_tangent_aval() for x in outs])
    out_tangents = custom_lin_p.bind(*residuals, *selected(tangents, nonzero), bwd=pull_back,
                                     in_zeros=tuple([not nz for nz in nonzero]),
                                     num_res=len(residuals), out_avals=out_avals,
                                     symbolic_zeros=symbolic_zeros)
    return _as_given(outs, points, primals[num_consts:]), [
        Zero(a) if a.is_float0 else t
        for a, t in zip(out_avals, out_tangents, strict=True)]


def _batched_fwd(fwd: Callable[..., Any], b: _Batching) -> FlatRule:
    def run(primals: Values, nonzero: Sequence[bool]) -> tuple[Any, Any, Any]:
        n_outs = 0
        bwd: Any = None

        def fun(*args: Any) -> list[Any]:
            nonlocal n_outs, bwd
            outs, residuals, bwd = fwd(args, nonzero)
            n_outs = len(outs)
            return [*outs, *residuals]

        flat, found = b.run(fun, primals, b.dims)
        # A backward rule takes the cotangents of one example.
        outs = b.placed(flat[:n_outs], found[:n_outs], all_batched=True)
        return outs, flat[n_outs:], _batched_bwd(bwd, b, found[n_outs:])

    return FlatRule(fwd, run)


def _batched_bwd(bwd: Callable[..., Any], b: _Batching, residual_dims: Dims) -> FlatRule:
    def run(residuals: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        assert b.out_dims is not None
        n = len(residuals)
        zero_avals = [None if type(ct) is not SymbolicZero else ct.aval if d is None
                      else example_aval(ct.aval, d)
                      for ct, d in zip(cotangents, b.out_dims, strict=True)]
        values = [ct for ct in cotangents if type(ct) is not SymbolicZero]
        dims = [None if getattr(ct, "dtype", None) == dtypes.float0 else d
                for ct, d, a in zip(cotangents, b.out_dims, zero_avals, strict=True) if a is None]
        log_tree: logs.LogTree | None = None

        def fun(*args: Any) -> list[Any]:
            nonlocal log_tree
            given = iter(args[n:])
            cts = [next(given) if a is None else SymbolicZero(a) for a in zero_avals]
            with logs.logging() as log:
                in_cts: list[Any] = bwd(args[:n], cts)
            if not log:
                return in_cts
            log_tree, arrays = logs.parted(log)
            return [*in_cts, *arrays]

        outs, found = b.run(fun, [*residuals, *values], [*residual_dims, *dims])
        n_cts = len(b.dims)
        if log_tree is not None:
            logs.write(log_tree.filled([
                match_axis(x, d, 0, b.axis)
                for x, d in zip(outs[n_cts:], found[n_cts:], strict=True)]))
        return [_unbatched(x, d, to, b.axis)
                for x, d, to in zip(outs[:n_cts], found, b.dims, strict=False)]

    return FlatRule(bwd, run)


def _unbatched(ct: Tangent, dim: int | None, wanted: int | None, axis: Axis) -> Any:
    """The cotangent of an input: what was the same for all examples gets the sum of theirs."""
    if type(ct) is Zero:
        return ct
    if wanted is None:
        return ct if dim is None else reduce_sum(ct, (dim,))
    return match_axis(ct, dim, wanted, axis)


custom_vjp_call_p.define(jvp=_custom_vjp_jvp, batch_axis=_batch_rule(
    custom_vjp_call_p, "fwd_jaxpr_thunk", _batched_fwd))


def zero_from_primal(val: Any, symbolic_zeros: bool = False) -> Any:
    """The zero tangent at each leaf of `val`: an array, or a `SymbolicZero` with `symbolic_zeros`.
    """
    leaves, tree = flatten(val)
    avals = [get_aval(x).to_tangent_aval() for x in leaves]
    return tree.unflatten([SymbolicZero(a) if symbolic_zeros else materialized(Zero(a))
                           for a in avals])
