"""Functions with a rule for batches that the user gives: `custom_vmap`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyjx.core.array_type import Array
from pyjx.core.avals import ShapedArray, get_aval, is_valid_value
from pyjx.core.jaxpr import DebugInfo
from pyjx.core.trace import Tracer, eager_trace, state, trace_to_jaxpr
from pyjx.engine.axes import broadcast_in_dim
from pyjx.engine.custom_batching_calls import BatchingRule, bind_custom_vmap
from pyjx.engine.functions import (
    FlatFun,
    check_values,
    flatten,
    name_of,
    raise_bad_result,
    source_of,
    tree_text,
)
from pyjx.engine.subjaxprs import consts_as_inputs
from pyjx.engine.types import R
from pyjx.guards import guard
from pyjx.transforms.arguments import check_callable
from pyjx.transforms.custom_jvp import PositionalFunction


@guard
class custom_vmap(PositionalFunction[R]):
    """A function whose `vmap` is given by a rule.

    Derivatives have rules too, which are the derivatives of the rule: mapping a derivative gives
    what differentiating the mapped function gives.

    Args:
      fun: the function; arguments and results are pytrees of arrays.

    >>> import numpy as np, pyjx as jax
    >>> from pyjx.custom_batching import custom_vmap
    >>> @custom_vmap
    ... def double(x):
    ...     return x + x
    ...
    >>> @double.def_vmap
    ... def double_vmap(axis_size, in_batched, x):
    ...     return 2 * x, in_batched[0]
    ...
    >>> jax.vmap(double)(np.arange(3)).tolist()
    [0, 2, 4]
    """

    _kind = "custom_vmap"

    vmap_rule: Callable[..., Any] | None = None
    # Whether the rule takes maps over points beside tangents that are the same for all, too.
    takes_points: bool = False

    def def_vmap(self, vmap_rule: Callable[..., tuple[R, Any]]) -> Callable[..., tuple[R, Any]]:
        """Set the rule; usable as decorator.

        Args:
          vmap_rule: `(axis_size, in_batched, *args) -> (output, out_batched)`. `in_batched` has the
            structure of the arguments: bools that say whether the argument has the batch axis,
            which is the first. `out_batched` says the same of the output.
        """
        check_callable(vmap_rule)
        self.vmap_rule = vmap_rule
        return vmap_rule

    def __call__(self, *args: Any, **kwargs: Any) -> R:
        if self.vmap_rule is None:
            raise AttributeError("No batching rule defined for custom_vmap function "
                                 f"{self.__name__} using def_vmap.")
        args = self.positional(args, kwargs)
        leaves, in_tree = flatten(args)
        check_values(leaves)
        if state.dynamic is eager_trace and all([
                isinstance(x, Array) and not isinstance(x, Tracer) for x in leaves]):
            return self.fun(*args)
        flat = FlatFun(self.fun, in_tree)
        closed = trace_to_jaxpr(flat, [get_aval(x) for x in leaves],
                                DebugInfo("custom_vmap", self.__name__))
        rule = _on_leaves(self.vmap_rule, flat, closed.out_avals, self.takes_points)
        return flat.unflatten(bind_custom_vmap(
            consts_as_inputs(closed), rule, closed.consts, leaves))


def _on_leaves(rule: Callable[..., Any], flat: FlatFun, out_avals: Sequence[Any],
               takes_points: bool) -> BatchingRule:
    """The user's rule, on leaves."""
    name, unflatten = name_of(rule), flat.in_tree.unflatten

    def run(size: int, batched: Sequence[bool], *leaves: Any) -> tuple[list[Any], list[bool]]:
        returned = rule(size, list(unflatten(batched)), *unflatten(leaves))
        if not isinstance(returned, (tuple, list)) or len(returned) != 2:
            raise TypeError(f"custom_vmap: the rule {source_of(rule)} must return a pair of the "
                            "output of the batch and of bools, True for each leaf of the output "
                            f"that has a batch axis (in front), got {tree_text(returned)}.")
        result, out_batched = returned
        outs, tree = flatten(result)
        flags, flags_tree = flatten(out_batched)
        if tree != flags_tree:
            raise ValueError("structure of output value and output batching specification returned "
                             f"by custom vmap rule ({name}) do not match.\nOutput values: "
                             f"{tree}\nBatching spec: {flags_tree}")
        if flat.out_tree != tree:
            raise ValueError(f"structure of output returned by custom vmap rule ({name}) does not "
                             "match that of original custom-vmapped function.\nOriginal output: "
                             f"{flat.out_tree}\nRule output: {tree}")
        if not all(map(is_valid_value, outs)):
            raise_bad_result(f"the rule {source_of(rule)} of custom_vmap", tree, outs)
        if any(batched):
            return outs, flags
        examples = [_example(name, i, x, aval, size)
                    for i, (x, aval) in enumerate(zip(outs, out_avals, strict=True))]
        return examples, [False] * len(examples)

    return BatchingRule(rule, run, takes_points=takes_points)


def _example(name: str, i: int, x: Array, aval: ShapedArray, size: int) -> Array:
    """What each of the examples, which are alike, has of an output, whatever the rule says of its
    axes."""
    shape = get_aval(x).shape
    if shape == aval.shape:
        return x
    if shape == (size, *aval.shape):
        return broadcast_in_dim(x, shape, range(len(shape)))[0]
    raise ValueError(f"custom_vmap: the rule {name} was called for {size} examples of which none "
                     "has a batch axis (a map over tangents or cotangents alone): expected shape "
                     f"{aval.shape} for output {i}, or {(size, *aval.shape)}, got {shape}. Have it "
                     "return what the function does where `in_batched` is all False.")
