"""Derivatives and batches of functions of flat values, as libraries ask for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

from pyjx.compat.rule_tables import axis_of
from pyjx.core.avals import get_aval
from pyjx.core.evaluation import eval_jaxpr
from pyjx.core.jaxpr import ClosedJaxpr, Jaxpr
from pyjx.core.name_stack import transform_name_stack
from pyjx.core.named_axes import Axis
from pyjx.core.trace import trace_to_jaxpr
from pyjx.engine.axes import at_front, broadcast_axis
from pyjx.engine.axes import moveaxis as move
from pyjx.engine.batching import batch_flat, match_axis
from pyjx.engine.forward import JVPTracer, jvp_flat
from pyjx.engine.linearize import linearize_flat, record_flat
from pyjx.engine.logs import logging
from pyjx.engine.subjaxprs import batched_aval
from pyjx.engine.subjaxprs import jvp_jaxpr as forward_of
from pyjx.engine.tangents import Zero, is_undefined_primal
from pyjx.engine.tangents import instantiate as array_of
from pyjx.extend.linear_util import EqualStore, Store, WrappedFun


def jvp(fun: Callable[..., Any], primals: Sequence[Any] | None = None,
        tangents: Sequence[Any] | None = None, has_aux: bool = False,
        instantiate: bool | Sequence[bool] = True, transform_stack: bool = True) -> Any:
    """The results of a function of flat values, and their tangents.

    Args:
      primals, tangents: of its operands; a tangent may be a symbolic `Zero`. Without them `fun` is
        a wrapped function, and the result the one that takes them.
      has_aux: the function gives a pair, of which the second one comes along, as a third result.
      instantiate: whether tangents that are zero are made arrays: of all results, or of each.
      transform_stack: whether operations say in profiles that they are of a derivative.
    """
    if primals is None or tangents is None:
        return fun.wrap(_pushed, (has_aux, instantiate, transform_stack), None)  # type: ignore[attr-defined]
    return _pushed(fun, has_aux, instantiate, transform_stack, primals, tangents)


def _pushed(call: Callable[..., Any], has_aux: bool, instantiate: bool | Sequence[bool],
            transform_stack: bool, primals: Sequence[Any], tangents: Sequence[Any]
            ) -> tuple[Any, ...]:
    aux: list[Any] = []

    def run(*args: Any) -> Sequence[Any]:
        outs = call(*args)
        if has_aux:
            outs, aux[:] = outs
        return outs  # type: ignore[no-any-return]

    with transform_name_stack("jvp") if transform_stack else nullcontext():
        outs, pushed = jvp_flat(run, list(primals), list(tangents))
    wanted = [instantiate] * len(outs) if isinstance(instantiate, bool) else instantiate
    pushed = [array_of(t) if w else t for t, w in zip(pushed, wanted, strict=True)]
    if not has_aux:
        return outs, pushed
    return outs, pushed, [x.primal if isinstance(x, JVPTracer) else x for x in aux]


def jvp_jaxpr(jaxpr: ClosedJaxpr, nonzeros: Sequence[bool], instantiate: bool | Sequence[bool]
              ) -> tuple[ClosedJaxpr, list[bool]]:
    """The forward derivative of a program, from its inputs and the tangents that are not zero, and
    which results have a tangent."""
    count = len(jaxpr.jaxpr.outvars)
    wanted = (instantiate,) * count if isinstance(instantiate, bool) else tuple(instantiate)
    derived = forward_of(jaxpr, tuple(nonzeros), wanted)
    return derived[0], list(derived[1])


def linearize(traceable: WrappedFun, *primals: Any, **options: Any
              ) -> tuple[list[Any], Callable[..., list[Any]]]:
    """Results of a wrapped function, and the linear map of its derivative there."""
    outs, program = linearize_flat(traceable.call_wrapped, list(primals))
    return outs, lambda *tangents: program.forward(list(tangents))


def backward_pass(jaxpr: Jaxpr, transform_stack: Any, consts: Sequence[Any],
                  primals_in: Sequence[Any], cts_in: Sequence[Any], *, return_logs: bool = False
                  ) -> Any:
    """The cotangents of the linear inputs of a program, which are undefined primals; with
    `return_logs` a pair of them and of what backward rules have logged."""
    linear = [is_undefined_primal(x) for x in primals_in]
    args = [x.aval if is_undefined_primal(x) else x for x in primals_in]
    _, program, dependent = record_flat(
        lambda *xs: eval_jaxpr(jaxpr, consts, *xs), args, linear, [False] * len(jaxpr.outvars))
    named = transform_name_stack("transpose") if transform_stack else nullcontext()
    with logging() as log, named:
        cts = iter(program.backward([c for c, d in zip(cts_in, dependent, strict=True) if d]))
    found = [next(cts) if lin else Zero(v.aval.to_tangent_aval())
             for v, lin in zip(jaxpr.invars, linear, strict=True)]
    return (found, log) if return_logs else found


not_mapped = None  # where the axis of a value is that all examples share


class ZeroIfMapped:
    """The axis of a result which is first if the result is mapped, and else none."""


zero_if_mapped = ZeroIfMapped()


def moveaxis(x: Any, src: int | None, dst: int, *_: Any) -> Any:
    """`x` with an axis elsewhere."""
    return x if src is None else move(x, src % get_aval(x).ndim, dst % get_aval(x).ndim)


def broadcast(x: Any, sz: int, axis: int, mesh_axis: Any = None) -> Any:
    """`x` repeated along a new axis."""
    return broadcast_axis(x, sz, axis)


def bdim_at_front(x: Any, bdim: int | None, size: int, mesh_axis: Any = None) -> Any:
    """A batch with its axis in front; what all examples share is repeated."""
    return at_front(x, bdim, size)


def batch_subtrace(fun: WrappedFun, *gen_static_args: Any, use_eq_store: bool = False,
                   unk_names: bool = False) -> tuple[WrappedFun, Callable[[], Sequence[Any]]]:
    """A wrapped function on whole batches, and where its results have their axes.

    Args:
      gen_static_args: three: the tag of the interpreter, which nobody reads, the axis, and where
        the operands have it, or a function that gives that.
      use_eq_store: the results of several calls must have it at the same places.
      unk_names: nothing is known of the names of arguments and results.
    """
    if not isinstance(fun, WrappedFun):
        raise TypeError("batch_subtrace: expected a function that is wrapped by "
                        f"linear_util.wrap_init, got {fun!r}.")
    if len(gen_static_args) != 3:
        raise TypeError("batch_subtrace: expected three static arguments (a tag, the axis and "
                        f"where the operands have it), got {len(gen_static_args)}: "
                        f"{gen_static_args}.")
    _, axis_data, in_dims = gen_static_args
    dims = in_dims if callable(in_dims) else tuple(in_dims)
    store = EqualStore() if use_eq_store else Store()
    wrapped = fun.wrap(_mapped, (axis_of(axis_data), dims), store)
    return wrapped.with_unknown_names() if unk_names else wrapped, store


def _mapped(call: Callable[..., Any], dims_of_results: Store, axis: Axis, in_dims: Any,
            *args: Any) -> list[Any]:
    given = in_dims() if callable(in_dims) else in_dims
    outs, dims = batch_flat(call, list(args), list(given), axis)
    dims_of_results.store(dims)
    return outs


def batch_jaxpr_axes(closed_jaxpr: ClosedJaxpr, axis_data: Any, in_axes: Sequence[Any],
                     out_axes_dest: Sequence[Any]) -> tuple[ClosedJaxpr, list[Any]]:
    """A program on whole batches, whose results have their axes where `out_axes_dest` says, and
    where they have them."""
    axis = axis_of(axis_data)
    places: list[Any] = []

    def run(*args: Any) -> list[Any]:
        outs, dims = batch_flat(
            lambda *xs: eval_jaxpr(closed_jaxpr.jaxpr, closed_jaxpr.consts, *xs), list(args),
            list(in_axes), axis)
        wanted = [(None if d is None else 0) if w is zero_if_mapped else w
                  for d, w in zip(dims, out_axes_dest, strict=True)]
        places[:] = wanted
        return [match_axis(x, d, w, axis) for x, d, w in zip(outs, dims, wanted, strict=True)]

    avals = [batched_aval(a, d, axis)
             for a, d in zip(closed_jaxpr.in_avals, in_axes, strict=True)]
    return trace_to_jaxpr(run, avals), places
