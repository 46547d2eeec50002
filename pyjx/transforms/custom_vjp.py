"""Functions whose derivative is given by a forward and a backward rule: `custom_vjp`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyjx.core import dtypes
from pyjx.core.avals import get_aval
from pyjx.core.trace import Tracer, eager_trace, state
from pyjx.core.tracebacks import api_boundary
from pyjx.engine.custom_derivative_calls import custom_vjp_call_p, tangent_result
from pyjx.engine.functions import check_values, flatten, name_of, source_of
from pyjx.engine.tangents import Zero
from pyjx.engine.types import TreeDef
from pyjx.errors import UnexpectedTracerError
from pyjx.transforms.custom_function import CustomFun, CustomFunction, short_types
from pyjx.tree_util import keystr, tree_flatten_with_path


class CustomVJPPrimal:
    """An argument of a forward rule with `symbolic_zeros=True`.

    `value` is the argument, `perturbed` tells whether it is being differentiated.
    """

    __slots__ = ("perturbed", "value")

    def __init__(self, value: Any, perturbed: bool) -> None:
        self.value = value
        self.perturbed = perturbed

    def __repr__(self) -> str:
        return f"CustomVJPPrimal(value={self.value!r}, perturbed={self.perturbed})"


def custom_vjp_primal_tree_values(tree: Any) -> Any:
    """The tree with the values of its `CustomVJPPrimal` leaves."""
    leaves, treedef = flatten(tree, lambda x: isinstance(x, CustomVJPPrimal))
    return treedef.unflatten([x.value if isinstance(x, CustomVJPPrimal) else x for x in leaves])


class custom_vjp(CustomFunction):
    """A function whose reverse-mode derivative is given by a pair of rules.

    Forward mode through it is an error.

    Args:
      fun: the function; arguments and results are pytrees of arrays.
      nondiff_argnums, nondiff_argnames: arguments that are not differentiated, such as functions
        or options; they may not be tracers. The forward rule gets them in their places, the
        backward rule first.

    >>> import pyjx as jax
    >>> @jax.custom_vjp
    ... def clip_gradient(x):
    ...     return x
    >>> clip_gradient.defvjp(lambda x: (x, None), lambda _, g: (min(g, 1.0),))
    >>> float(jax.grad(lambda x: 5.0 * clip_gradient(x))(2.0))
    1.0
    """

    _kind = "custom_vjp"

    fwd: Callable[..., Any] | None = None
    bwd: Callable[..., Any] | None = None
    symbolic_zeros: bool = False
    optimize_remat: bool = False
    generic_batching: bool = False
    with_logs: bool = False
    with_accums: bool = False

    def defvjp(self, fwd: Callable[..., Any], bwd: Callable[..., Any],
               symbolic_zeros: bool = False, optimize_remat: bool = False,
               generic_batching: bool = False) -> None:
        """Set the rules.

        Args:
          fwd: takes the arguments of the function; returns a pair of its output and of residuals,
            a tree of arrays that is kept for `bwd`.
          bwd: takes the residuals and a cotangent of the output; returns a tuple with a cotangent
            for each differentiable argument, where None stands for zero.
          symbolic_zeros: the leaves of `fwd`'s arguments are `CustomVJPPrimal`, and cotangents that
            are zero are given to `bwd` as `SymbolicZero`.
          optimize_remat: accepted; rematerialization drops unneeded forward work in any case.
          generic_batching: accepted; the rules are batched operation by operation.
        """
        self.fwd = fwd
        self.bwd = bwd
        self.symbolic_zeros = symbolic_zeros
        self.optimize_remat = optimize_remat
        self.generic_batching = generic_batching

    @api_boundary
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.fwd is None or self.bwd is None:
            raise AttributeError(
                f"No VJP defined for custom_vjp function {self.__name__} using defvjp."
            )
        args = self.positional(args, kwargs)
        dynamic, static = self.split(args)
        if static:
            for x in flatten(static)[0]:
                if isinstance(x, Tracer):
                    _raise_nondiff_tracer()
        leaves, in_tree = flatten(dynamic)
        check_values(leaves)
        if state.dynamic is eager_trace and not any(isinstance(x, Tracer) for x in leaves):
            return self.run(custom_vjp_call_p, args)
        fun = CustomFun(self, in_tree, static)
        outs = custom_vjp_call_p.bind(
            *leaves, call_jaxpr=fun, fwd_jaxpr_thunk=_FlatFwd(fun), bwd=self.bwd, num_consts=0,
            out_trees=None, symbolic_zeros=self.symbolic_zeros,
        )
        return fun.out_tree.unflatten(outs)


def _raise_nondiff_tracer() -> None:
    raise UnexpectedTracerError(
        "Found a JAX Tracer object passed as an argument to a custom_vjp function in a position "
        "indicated by nondiff_argnums as non-differentiable. Tracers cannot be passed as "
        "non-differentiable arguments to custom_vjp functions; instead, nondiff_argnums should "
        "only be used for arguments that can't be or contain JAX tracers, e.g. function-valued "
        "arguments. In particular, array-valued arguments should typically not be indicated as "
        "nondiff_argnums."
    )


class _FlatFwd:
    """A custom_vjp function's forward rule on leaves; it makes the backward rule."""

    __slots__ = ("fun", "fwd")

    def __init__(self, fun: CustomFun) -> None:
        self.fun = fun
        self.fwd: Any = fun.owner.fwd  # type: ignore[attr-defined]

    @property
    def __name__(self) -> str:
        return name_of(self.fwd)

    def __call__(self, primals: Sequence[Any], nonzero: Sequence[bool]) -> tuple[Any, Any, Any]:
        fun = self.fun
        leaves = primals
        if fun.owner.symbolic_zeros:
            leaves = [CustomVJPPrimal(x, nz) for x, nz in zip(primals, nonzero, strict=True)]
        args = fun.owner.joined(fun.in_tree.unflatten(leaves), fun.static)
        result = self.fwd(*args)
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            self._raise_output(f"instead of a pair the fwd rule {self.__name__} produced {result}.",
                               "(equal to those of the custom_vjp-decorated function "
                               f"{fun.__name__}) ")
        outs, out_tree = flatten(result[0])
        check_values(outs)
        residuals, residual_tree = flatten(result[1])
        check_values(residuals)
        if fun.out_tree is None:
            fun.out_tree = out_tree
        elif fun.out_tree != out_tree:
            self._raise_output(
                "instead the fwd rule output's first element had container/pytree structure:\n"
                f"    {short_types(out_tree, [get_aval(x) for x in outs])}\nwhile the "
                f"custom_vjp-decorated function {fun.__name__} had output container/pytree "
                f"structure:\n    {fun.out_tree}"
            )
        avals = [get_aval(x) for x in primals]
        return outs, residuals, _FlatBwd(fun, residual_tree, out_tree, avals)

    def check(self, outs: Sequence[Any], expected: Sequence[Any]) -> None:
        """Raise TypeError unless the rule's outputs are of the types of the function's."""
        found = [get_aval(x) for x in outs]
        if any(f.shape != e.shape or f.dtype != e.dtype
               for f, e in zip(found, expected, strict=True)):
            tree = self.fun.out_tree
            self._raise_output(
                "instead the fwd rule output's first element had shapes/dtypes of:\n"
                f"    {short_types(tree, found)}\nwhile the custom_vjp-decorated function "
                f"{self.fun.__name__} had output shapes/dtypes of:\n"
                f"    {short_types(tree, expected)}"
            )

    def _raise_output(self, what: str, equal: str = "") -> None:
        name = self.fun.__name__
        raise TypeError(
            f"Custom VJP fwd rule {self.__name__} for function {name} must produce a pair (list or "
            "tuple of length two) where the first element represents the primal output "
            f"{equal or f'(equal to the output of the custom_vjp-decorated function {name}) '}"
            "and the second element represents residuals (i.e. values stored from the forward pass "
            f"for use on the backward pass), but {what}"
        )


class _FlatBwd:
    """A custom_vjp function's backward rule on leaves, for one run of the forward rule."""

    __slots__ = ("bwd", "fun", "in_avals", "out_tree", "residual_tree")

    def __init__(self, fun: CustomFun, residual_tree: Any, out_tree: TreeDef,
                 in_avals: Sequence[Any]) -> None:
        self.fun = fun
        self.bwd: Any = fun.owner.bwd  # type: ignore[attr-defined]
        self.residual_tree = residual_tree
        self.out_tree = out_tree
        self.in_avals = in_avals

    @property
    def __name__(self) -> str:
        return name_of(self.bwd)

    def __call__(self, residuals: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        fun = self.fun
        result = self.bwd(*fun.static, self.residual_tree.unflatten(residuals),
                          self.out_tree.unflatten(cotangents))
        in_cts, tree = flatten(tuple(result) if type(result) is list else result)
        if tree != fun.in_tree:
            in_cts = self._without_none(result, tree)
        return [self._checked(i, ct, a) for i, (ct, a) in
                enumerate(zip(in_cts, self.in_avals, strict=True))]

    def _without_none(self, result: Any, tree: Any) -> list[Any]:
        """The cotangents where some parts of the result are None, which stands for zeros."""
        in_tree = self.fun.in_tree
        cts, prefix = flatten(tuple(result) if type(result) is list else result,
                              lambda x: x is None)
        dummy = in_tree.unflatten(self.in_avals)
        out: list[Any] = []
        try:
            if not isinstance(result, (tuple, list)):
                raise ValueError
            for ct, subtree in zip(cts, prefix.flatten_up_to(dummy), strict=True):
                avals, subtree_def = flatten(subtree)
                if ct is None:
                    out += [Zero(a.to_tangent_aval()) for a in avals]
                elif subtree_def.num_nodes == 1 and len(avals) == 1:
                    out.append(ct)
                else:
                    raise ValueError
        except ValueError:
            raise TypeError(
                "Custom VJP bwd rule must produce an output with the same container (pytree) "
                "structure as the args tuple of the primal function, and in particular must "
                "produce a tuple of length equal to the number of arguments to the primal "
                f"function, but got bwd output structure {tree} for primal input structure "
                f"{in_tree}."
            ) from None
        return out

    def _checked(self, i: int, ct: Any, primal: Any) -> Any:
        ct = tangent_result(ct)
        expected = primal.to_tangent_aval()
        if type(ct) is Zero:
            return Zero(expected)
        check_values([ct])
        if expected.dtype == dtypes.float0:
            return Zero(expected)
        found = get_aval(ct)
        if found.shape != expected.shape:
            paths = tree_flatten_with_path(self.fun.in_tree.unflatten(self.in_avals))[0]
            raise ValueError(
                f"Custom VJP bwd rule attached to {source_of(self.fun.owner.fun)} must produce an "
                "output with the same type as the args tuple of the primal function, but at "
                f"output{keystr(paths[i][0])} the bwd rule produced an output of type "
                f"{found.str_short()} corresponding to an input of type {primal.str_short()}, so "
                "the shapes do not match"
            )
        return ct
