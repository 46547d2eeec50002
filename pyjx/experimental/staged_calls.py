"""Functions whose calls are one operation, which holds their program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.jaxpr import JaxprEqn
from pyjx.core.primitive import Primitive
from pyjx.core.spaces import Space
from pyjx.core.tracebacks import api_boundary
from pyjx.engine.batching import BatchTrace
from pyjx.engine.calls import define_call
from pyjx.engine.moves import moved
from pyjx.engine.subjaxprs import batch_jaxpr, consts_as_inputs, live_inputs, part_of, selected
from pyjx.engine.types import Dims, Values
from pyjx.runtime.jit import JitSpec, Options
from pyjx.tree_util import tree_unflatten


class PlacedCall(Primitive):
    """A call whose parameter `spaces` says for each result the memory that it is left in; batches
    of results are left where the results are, and what else is derived has its results where they
    are made, which None says of all."""

    __slots__ = ("spaces",)

    def __init__(self, name: str, spaces: str) -> None:
        super().__init__(name, multiple_results=True, cached=False,
                         printed=lambda params: sorted(params.items()))
        self.spaces = spaces
        self.define(batch_axis=self._batched)
        define_call(self, lambda params, origins, linear: {**params, spaces: None})
        self.holder.dce = self._some_results

    def bind(self, *operands: Any, **params: Any) -> Any:
        if params[self.spaces] is None:
            params[self.spaces] = tuple([a.memory_space for a in params["jaxpr"].out_avals])
        return super().bind(*operands, **params)

    def _batched(self, trace: BatchTrace, operands: Values, dims: Dims, **params: Any) -> Any:
        batched = batch_jaxpr(params["jaxpr"], tuple(dims), trace.axis)
        params["jaxpr"] = consts_as_inputs(batched.jaxpr)
        return self.bind(*batched.jaxpr.consts, *operands, **params), batched.dims

    def _some_results(self, eqn: JaxprEqn, used: tuple[bool, ...]) -> JaxprEqn:
        """The equation without the results that are not used."""
        closed, spaces = eqn.params["jaxpr"], eqn.params[self.spaces]
        live = live_inputs(closed, used)
        part = part_of(closed, used, live)
        if part is closed:
            return eqn
        left = None if spaces is None else tuple(selected(spaces, used))
        return eqn.replace(
            invars=selected(eqn.invars, live), outvars=selected(eqn.outvars, used),
            params={**eqn.params, "jaxpr": part, self.spaces: left}, effects=part.effects)


def staged_call(primitive: Primitive, f: Callable[..., Any], *, per_result: Any = None,
                **params: Any) -> Callable[..., Any]:
    """`f` as calls of a primitive, which holds its program as the parameter `jaxpr`; it is traced
    once for each signature, so its program is written once.

    Args:
      per_result: `tree of results -> parameters`, those that depend on it.
      params: the other parameters.
    """
    spec = JitSpec(f, Options(traced_for=primitive.name))

    @wraps(f)
    @api_boundary
    def called(*args: Any, **kwargs: Any) -> Any:
        traced, leaves = spec.trace(args, kwargs)
        closed = traced.closed
        own = {} if per_result is None else per_result(traced.out_tree)
        outs = primitive.bind(*closed.consts, *leaves, jaxpr=consts_as_inputs(closed), **params,
                              **own)
        if isinstance(primitive, PlacedCall):
            outs = [in_memory_of(x, space)
                    for x, space in zip(outs, own[primitive.spaces], strict=True)]
        return tree_unflatten(traced.out_tree, outs)

    return called


def in_memory_of(x: Any, space: Space) -> Any:
    """A value in this memory, if it is one of arrays."""
    aval = get_aval(x)
    if type(aval) is not ShapedArray or space is Space.Any or aval.memory_space is space:
        return x
    return moved(x, space)


def spread(what: str, given: Any, n: int) -> tuple[Any, ...]:
    """One for each of `n` results.

    Raises:
      ValueError: there are more or fewer.
    """
    found = tuple(given) if isinstance(given, Sequence) else (given,) * n
    if len(found) != n:
        raise ValueError(f"{what} has {len(found)} entries for {n} results")
    return found
