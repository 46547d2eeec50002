"""Functions with batching rules that the user gives: `custom_vmap`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyjx.core.array_type import Array
from pyjx.core.avals import get_aval
from pyjx.core.jaxpr import DebugInfo
from pyjx.core.trace import Tracer, eager_trace, state, trace_to_jaxpr
from pyjx.core.tracebacks import api_boundary
from pyjx.engine.custom_batching_calls import bind_custom_vmap
from pyjx.engine.functions import FlatFun, check_values, flatten, name_of
from pyjx.engine.subjaxprs import consts_as_inputs


class custom_vmap:
    """A function whose `vmap` is given by a rule.

    Derivatives have rules too, which are the derivatives of the rule: mapping a derivative gives
    what differentiating the mapped function gives.

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
        # What it is traced to holds the rule, which may call it: together they go.
        self.jit_traces: dict[Any, Any] = {}

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
        if state.dynamic is eager_trace and all([
                isinstance(x, Array) and not isinstance(x, Tracer) for x in leaves]):
            return self.fun(*args)
        flat = FlatFun(self.fun, in_tree)
        closed = trace_to_jaxpr(flat, [get_aval(x) for x in leaves],
                                DebugInfo("custom_vmap", self.__name__))
        rule = _Rule(self.vmap_rule, flat)
        return flat.unflatten(bind_custom_vmap(
            consts_as_inputs(closed), rule, closed.consts, leaves))


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
        if flat.out_tree != tree:
            raise ValueError(
                f"structure of output returned by custom vmap rule ({self.__name__}) does not "
                f"match that of original custom-vmapped function.\nOriginal output: "
                f"{flat.out_tree}\nRule output: {tree}"
            )
        check_values(outs)
        return outs, flags
