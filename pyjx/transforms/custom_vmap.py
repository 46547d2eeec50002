"""Functions with batching rules that the user gives: `custom_vmap`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyjx.core.avals import get_aval
from pyjx.core.jaxpr import ClosedJaxpr, DebugInfo
from pyjx.core.primitive import Primitive, register
from pyjx.core.trace import (
    JaxprTrace,
    Tracer,
    eager_trace,
    jaxpr_as_fun,
    state,
    trace_to_jaxpr,
)
from pyjx.core.tracebacks import api_boundary
from pyjx.engine.batching import BatchTrace, match_axis
from pyjx.engine.calls import call as bind_call
from pyjx.engine.forward import jvp_flat
from pyjx.engine.functions import FlatFun, check_values, flatten, name_of
from pyjx.engine.subjaxprs import backward_jaxpr, consts_as_inputs


class custom_vmap:
    """A function whose `vmap` is given by a rule.

    Derivatives are those of the function; where a batched call is differentiated they are those of
    the rule.

    Args:
      fun: the function; arguments and results are pytrees of arrays.

    >>> import numpy as np, pyjx as jax
    >>> from pyjx.transforms.custom_vmap import custom_vmap
    >>> @custom_vmap
    ... def double(x):
    ...     return x + x
    >>> @double.def_vmap
    ... def double_vmap(axis_size, in_batched, x):
    ...     return 2 * x, in_batched[0]
    >>> jax.vmap(double)(np.arange(3)).tolist()
    [0, 2, 4]
    """

    fun: Callable[..., Any]
    vmap_rule: Callable[..., Any] | None

    def __init__(self, fun: Callable[..., Any]) -> None:
        self.fun = fun
        self.__wrapped__ = fun
        self.__name__ = name_of(fun)
        self.__doc__ = getattr(fun, "__doc__", None)
        self.vmap_rule = None

    def def_vmap(self, vmap_rule: Callable[..., Any]) -> Callable[..., Any]:
        """Set the rule; usable as decorator.

        Args:
          vmap_rule: `(axis_size, in_batched, *args) -> (output, out_batched)`. `in_batched` has the
            structure of the arguments: bools that say whether the argument has the batch axis,
            which is the first. `out_batched` says the same of the output.
        """
        self.vmap_rule = vmap_rule
        return vmap_rule

    @api_boundary
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.vmap_rule is None:
            raise AttributeError(
                f"No batching rule defined for custom_vmap function {self.__name__} using def_vmap."
            )
        if kwargs:
            import inspect  # slow to load, and seldom needed

            bound = inspect.signature(self.fun).bind(*args, **kwargs)
            bound.apply_defaults()
            if bound.kwargs:
                raise TypeError(
                    f"The input arguments to the custom_vmap function {self.__name__} could not be "
                    f"resolved to positional-only arguments: {sorted(bound.kwargs)} are "
                    "keyword-only.")
            args = bound.args
        leaves, in_tree = flatten(args)
        check_values(leaves)
        if state.dynamic is eager_trace and not any([isinstance(x, Tracer) for x in leaves]):
            return self.fun(*args)
        flat = FlatFun(self.fun, in_tree)
        rule = _Rule(self.vmap_rule, flat)
        outs = custom_vmap_call_p.bind(*leaves, call=flat, rule=rule, in_tree=in_tree,
                                       out_tree=None, num_consts=0)
        return flat.unflatten(outs)


class _Rule:
    """The rule on leaves: `(size, batched, *leaves) -> (outs, which are batched)`."""

    __slots__ = ("flat", "rule")

    def __init__(self, rule: Callable[..., Any], flat: FlatFun) -> None:
        self.rule = rule
        self.flat = flat

    @property
    def __name__(self) -> str:
        return name_of(self.rule)

    def __call__(self, size: int, batched: Sequence[bool], *leaves: Any
                 ) -> tuple[list[Any], list[bool]]:
        flat = self.flat
        unflatten = flat.in_tree.unflatten
        in_batched = list(unflatten(batched))
        result, out_batched = self.rule(size, in_batched, *unflatten(leaves))
        outs, tree = flatten(result)
        flags, flags_tree = flatten(out_batched)
        if tree != flags_tree:
            raise ValueError(
                "structure of output value and output batching specification returned by custom "
                f"vmap rule ({self.__name__}) do not match.\nOutput values: {tree}\nBatching spec: "
                f"{flags_tree}"
            )
        if flat.out_tree is None:
            flat.out_tree = tree
        elif flat.out_tree != tree:
            raise ValueError(
                f"structure of output returned by custom vmap rule ({self.__name__}) does not "
                f"match that of original custom-vmapped function.\nOriginal output: "
                f"{flat.out_tree}\nRule output: {tree}"
            )
        check_values(outs)
        return outs, flags


# -- the primitive: `call` is a jaxpr, or (until it is recorded) a Python function -----------------


def _record(trace: JaxprTrace, operands: tuple[Any, ...], params: dict[str, Any]) -> Any:
    fun = params["call"]
    if isinstance(fun, ClosedJaxpr):
        return None
    closed = trace_to_jaxpr(fun, [get_aval(x) for x in operands],
                            DebugInfo("custom_vmap", fun.__name__))
    return custom_vmap_call_p.bind(*closed.consts, *operands, **{
        **params, "call": consts_as_inputs(closed), "out_tree": fun.out_tree,
        "num_consts": len(closed.consts)})


def _function(fun: Any) -> Callable[..., list[Any]]:
    return jaxpr_as_fun(fun) if isinstance(fun, ClosedJaxpr) else fun


def _call_jvp(primals: Any, tangents: Any, **params: Any) -> Any:
    outs = custom_vmap_call_p.bind(*primals, **params)
    return outs, jvp_flat(_function(params["call"]), primals, tangents)[1]


def _call_batch(trace: BatchTrace, operands: Any, dims: Any, *, rule: Any, num_consts: int, **_: Any
                ) -> Any:
    if any([d is not None for d in dims[:num_consts]]):
        raise ValueError(
            f"custom_vmap: the function of the rule {rule.__name__} closes over a value that is "
            "mapped by the same vmap. The rule does not get it: pass it as an argument."
        )
    operands, dims = operands[num_consts:], dims[num_consts:]
    size = trace.axis.size
    at_front = [x if d is None else match_axis(x, d, 0, size)
                for x, d in zip(operands, dims, strict=True)]
    outs, batched = rule(size, [d is not None for d in dims], *at_front)
    return outs, [0 if b else None for b in batched]


def _run(*args: Any, call: Any, **_: Any) -> list[Any]:
    """The function, where nothing is transformed."""
    if isinstance(call, ClosedJaxpr):
        return bind_call(call, call.debug_info.func_name, *args)
    return call(*args)  # type: ignore[no-any-return]


custom_vmap_call_p = register(Primitive(
    "custom_vmap_call", shape_rule=lambda *avals, call, **_: call.out_avals, jvp=_call_jvp,
    batch_axis=_call_batch, record=_record, cached=False, impl=_run, multiple_results=True,
    transpose=lambda cts, *operands, call, **_: backward_jaxpr(call, operands, cts),
    split=lambda trace, operands, params: _function(params["call"])(*operands),
    decomposition=lambda *args, call, **_: jaxpr_as_fun(call)(*args),
))
