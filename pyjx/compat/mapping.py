"""Mapping functions of flat values, as libraries ask for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyjx.compat.rule_tables import axis_of
from pyjx.core.avals import get_aval
from pyjx.core.evaluation import eval_jaxpr
from pyjx.core.jaxpr import ClosedJaxpr
from pyjx.core.named_axes import Axis
from pyjx.core.trace import trace_to_jaxpr
from pyjx.engine.axes import at_front, broadcast_axis
from pyjx.engine.axes import moveaxis as move
from pyjx.engine.batching import batch_flat, match_axis
from pyjx.engine.subjaxprs import batched_aval
from pyjx.extend.linear_util import EqualStore, Store, WrappedFun

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
