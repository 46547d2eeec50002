"""Functions with rules that the user gives: a forward rule for the derivative, `custom_jvp`, and a
rule for batches, `custom_vmap`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyjx.core.array_type import Array
from pyjx.core.avals import ShapedArray, get_aval, is_valid_value
from pyjx.core.jaxpr import DebugInfo
from pyjx.core.source_info import at_own_lines
from pyjx.core.trace import Tracer, eager_trace, state, trace_to_jaxpr
from pyjx.engine.axes import broadcast_in_dim
from pyjx.engine.batching import bind_function
from pyjx.engine.custom_batching_calls import BatchingRule, bind_custom_vmap
from pyjx.engine.custom_derivative_calls import (
    FlatRule,
    SymbolicZero,
    custom_jvp_call_p,
    tangent_result,
    zero_from_primal,
)
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
from pyjx.engine.tangents import Zero
from pyjx.engine.types import TreeDef
from pyjx.guards import guard
from pyjx.transforms.arguments import (
    CustomFun,
    CustomFunction,
    PositionalFunction,
    R,
    check_callable,
    short_types,
)

# -- forward rules ---------------------------------------------------------------------------------


@guard
class custom_jvp(CustomFunction[R]):
    """A function whose derivative is given by a rule, for forward and reverse mode.

    Args:
      fun: the function; arguments and results are pytrees of arrays.
      nondiff_argnums, nondiff_argnames: arguments that are not differentiated, such as functions
        or options. The rule gets them first, in order of position.

    >>> import pyjx as jax
    >>> @jax.custom_jvp
    ... def square(x):
    ...     return x * x
    ...
    >>> @square.defjvp
    ... def square_jvp(primals, tangents):
    ...     (x,), (t,) = primals, tangents
    ...     return square(x), 2 * x * t
    ...
    >>> float(jax.grad(square)(3.0))
    6.0
    """

    _kind = "custom_jvp"

    jvp: Callable[..., Any] | None = None
    symbolic_zeros: bool = False

    def defjvp(self, jvp: Callable[..., tuple[R, Any]], symbolic_zeros: bool = False
               ) -> Callable[..., tuple[R, Any]]:
        """Set the rule, `(primals, tangents) -> (outputs, output tangents)`; usable as decorator.

        Args:
          jvp: takes two tuples as long as the differentiable arguments, after the
            non-differentiable arguments if there are any.
          symbolic_zeros: tangents that are zero are given as `SymbolicZero` and not as arrays.
        """
        check_callable(jvp)
        self.jvp = jvp
        self.symbolic_zeros = symbolic_zeros
        return jvp

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Set one rule for each argument, `(tangent, output, *primals) -> output tangent`.

        None stands for an argument that the output does not depend on.

        Raises:
          TypeError: there are non-differentiable arguments.
          ValueError: when it is differentiated, if there are not as many rules as arguments.

        >>> import pyjx as jax
        >>> @jax.custom_jvp
        ... def product(x, y):
        ...     return x * y
        ...
        >>> product.defjvps(lambda t, out, x, y: t * y, lambda t, out, x, y: x * t)
        >>> float(jax.grad(product)(3.0, 5.0))
        5.0
        """
        if self.nondiff_argnums:
            raise TypeError("Can't use ``defjvps`` with ``nondiff_argnums``.")

        def jvp(primals: Any, tangents: Any) -> Any:
            if len(jvps) != len(tangents):
                raise ValueError(
                    f"defjvps gave {len(jvps)} rules to the custom_jvp function {self.__name__}, "
                    f"which has {len(tangents)} arguments here. Give one rule for each argument; "
                    "None stands for one that the output does not depend on.")
            out = self(*primals)
            outs, tree = flatten(out)
            total: list[Any] = [None] * len(outs)
            for rule, t in zip(jvps, tangents, strict=True):
                if rule is None or type(t) is SymbolicZero:
                    continue
                parts = flatten(rule(t, out, *primals))[0]
                total = [p if s is None else s + p for s, p in zip(total, parts, strict=True)]
            return out, tree.unflatten([
                zero_from_primal(x) if t is None else t for x, t in zip(outs, total, strict=True)
            ])

        self.defjvp(jvp)

    def __call__(self, *args: Any, **kwargs: Any) -> R:
        if self.jvp is None:
            raise AttributeError(
                f"No JVP defined for custom_jvp function {self.__name__} using defjvp."
            )
        args = self.positional(args, kwargs)
        dynamic, static = self.split(args)
        if static and any(isinstance(x, Tracer) for x in flatten(static)[0]):
            static = tuple(map(_constant, static))
        leaves, in_tree = flatten(dynamic)
        if state.dynamic is eager_trace and not any(isinstance(x, Tracer) for x in leaves):
            check_values(leaves)
            return self.run(custom_jvp_call_p, self.joined(dynamic, static))
        check_values(leaves)
        fun = CustomFun(self, in_tree, static)
        outs = bind_function(custom_jvp_call_p, leaves, {
            "call_jaxpr": fun, "jvp_jaxpr_fun": _FlatJvp(fun), "num_consts": 0,
            "symbolic_zeros": self.symbolic_zeros})
        return fun.out_tree.unflatten(outs)


class _FlatJvp:
    """A custom_jvp function's rule on leaves."""

    __slots__ = ("fun", "jvp")

    def __init__(self, fun: CustomFun) -> None:
        self.fun = fun
        self.jvp: Any = fun.owner.jvp  # type: ignore[attr-defined]

    @property
    def __name__(self) -> str:
        return name_of(self.jvp)

    def __call__(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        fun = self.fun
        unflatten = fun.in_tree.unflatten
        result = at_own_lines(self.jvp, *fun.static, unflatten(primals), unflatten(tangents))
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            raise TypeError(
                f"Custom JVP rule {self.__name__} for function {fun.__name__} must produce a pair "
                "(list or tuple of length two) representing primal and tangent outputs, but got "
                f"{tree_text(result)}."
            )
        outs, tree = flatten(result[0])
        out_tangents, tangent_tree = flatten(result[1])
        if tree != tangent_tree:
            raise TypeError(
                f"Custom JVP rule {self.__name__} for function {fun.__name__} must produce primal "
                "and tangent outputs with equal container (pytree) structures, but got "
                f"{tree} and {tangent_tree} respectively."
            )
        if fun.out_tree is None:
            fun.out_tree = tree
        elif fun.out_tree != tree:
            self._raise_other_tree(tree, outs)
        out_tangents = list(map(tangent_result, out_tangents))
        for found in (outs, [0 if type(x) is Zero else x for x in out_tangents]):
            if not all(map(is_valid_value, found)):
                raise_bad_result(f"the rule {source_of(self.jvp)} of custom_jvp", tree, found)
        return outs, [self._checked(x, t) for x, t in zip(outs, out_tangents, strict=True)]

    def _checked(self, primal: Any, tangent: Any) -> Any:
        aval = get_aval(primal)
        expected = aval.to_tangent_aval()
        found = tangent.aval if type(tangent) is Zero else get_aval(tangent)
        if not expected.describes(found):
            raise TypeError(
                "Custom JVP rule must produce primal and tangent outputs with corresponding "
                f"shapes and dtypes. Expected {expected.str_short()} (tangent type of "
                f"{aval.str_short()}) but got {found.str_short()}. The rule is "
                f"{source_of(self.jvp)}."
            )
        return tangent

    def check(self, outs: Sequence[Any], expected: Sequence[Any]) -> None:
        """Raise TypeError unless the rule's outputs are of the types of the function's."""
        found = [get_aval(x) for x in outs]
        if not all(e.describes(f) for f, e in zip(found, expected, strict=True)):
            self._raise_output("and in particular with leaves of the same shape/dtype",
                               "shapes/dtypes of", found, expected, self.fun.out_tree,
                               "output shapes/dtypes of")

    def _raise_other_tree(self, tree: TreeDef, outs: Sequence[Any]) -> None:
        expected = self.fun.out_avals or ["*"] * self.fun.out_tree.num_leaves
        self._raise_output("and in particular of the same container/pytree structure",
                           "container/pytree structure", [get_aval(x) for x in outs], expected,
                           tree, "output container/pytree structure")

    def _raise_output(self, what: str, rule_had: str, found: Sequence[Any],
                      expected: Sequence[Any], tree: Any, fun_had: str) -> None:
        name = self.fun.__name__
        texts = [short_types(tree, found), short_types(self.fun.out_tree, expected)]
        raise TypeError(
            f"Custom JVP rule {self.__name__} for function {name} must produce a pair (list or "
            "tuple of length two) where the first element represents the primal output (equal in "
            f"value to the output of the custom_jvp-decorated function {name}, {what}), but "
            f"instead the JVP rule output's first element had {rule_had}:\n    {texts[0]}\nwhile "
            f"the custom_jvp-decorated function {name} had {fun_had}:\n    {texts[1]}"
        )


def _constant(tree: Any) -> Any:
    """The tree with the derivatives of its leaves cut."""
    leaves, treedef = flatten(tree)
    return treedef.unflatten([_cut(x) if isinstance(x, Tracer) else x for x in leaves])


def _identity(x: Any) -> list[Any]:
    return [x]


def _cut_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    return list(primals), [Zero.of_primal(x) for x in primals]


_cutting = FlatRule(_cut_jvp, _cut_jvp)


def _cut(x: Any) -> Any:
    return custom_jvp_call_p.bind(x, call_jaxpr=_identity, jvp_jaxpr_fun=_cutting, num_consts=0,
                                  symbolic_zeros=False)[0]


# -- batching rules --------------------------------------------------------------------------------


@guard
class custom_vmap(PositionalFunction[R]):
    """A function whose `vmap` is given by a rule.

    Derivatives have rules too, which are the derivatives of the rule: mapping a derivative gives
    what differentiating the mapped function gives.

    Args:
      fun: the function; arguments and results are pytrees of arrays.

    >>> import numpy as np, pyjx as jax
    >>> from pyjx.transforms.custom_jvp import custom_vmap
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
            raise AttributeError(
                f"No batching rule defined for custom_vmap function {self.__name__} using def_vmap."
            )
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
            raise TypeError(
                f"custom_vmap: the rule {source_of(rule)} must return a pair of the output of the "
                "batch and of bools, True for each leaf of the output that has a batch axis (in "
                f"front), got {tree_text(returned)}.")
        result, out_batched = returned
        outs, tree = flatten(result)
        flags, flags_tree = flatten(out_batched)
        if tree != flags_tree:
            raise ValueError(
                "structure of output value and output batching specification returned by custom "
                f"vmap rule ({name}) do not match.\nOutput values: {tree}\nBatching spec: "
                f"{flags_tree}"
            )
        if flat.out_tree != tree:
            raise ValueError(
                f"structure of output returned by custom vmap rule ({name}) does not "
                f"match that of original custom-vmapped function.\nOriginal output: "
                f"{flat.out_tree}\nRule output: {tree}"
            )
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
    raise ValueError(
        f"custom_vmap: the rule {name} was called for {size} examples of which none has a batch "
        f"axis (a map over tangents or cotangents alone): expected shape {aval.shape} for output "
        f"{i}, or {(size, *aval.shape)}, got {shape}. Have it return what the function does where "
        "`in_batched` is all False.")
