"""Functions that return their own pull-back: `custom_gradient`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyjx.core.avals import get_aval
from pyjx.core.trace import eval_jaxpr, trace_to_jaxpr
from pyjx.engine.functions import FlatFun, flatten, name_of
from pyjx.transforms.custom_vjp import custom_vjp
from pyjx.tree_util import register_pytree_node


def custom_gradient(fun: Any = None, *, with_logs: bool = False, remat: bool = False,
                    with_accums: Any = None) -> Any:
    """A `custom_vjp` function from one that returns its output and its pull-back.

    Args:
      fun: returns `(output, vjp)`, where `vjp` takes a cotangent of the output and returns a tuple
        of cotangents, one for each argument, or the cotangent alone for a single argument.

    >>> import pyjx as jax
    >>> @jax.custom_gradient
    ... def square(x):
    ...     return x * x, lambda g: (g * 10.0,)
    >>> float(jax.grad(square)(3.0))
    10.0
    """
    if fun is None:
        return lambda f: custom_gradient(f, with_logs=with_logs, remat=remat,
                                         with_accums=with_accums)

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return fun(*args, **kwargs)[0]

    wrapped.__name__ = name_of(fun)
    wrapped.__doc__ = getattr(fun, "__doc__", None)
    wrapped.__wrapped__ = fun  # type: ignore[attr-defined]

    def fwd(*args: Any, **kwargs: Any) -> Any:
        out, pull_back = fun(*args, **kwargs)
        outs = flatten(out)[0]
        in_tree = flatten(args)[1]

        def pull_back_to_tuple(cotangent: Any) -> Any:
            result = pull_back(cotangent)
            return (result,) if len(args) == 1 and flatten(result)[1] != in_tree else result

        flat = FlatFun(pull_back_to_tuple, flatten((out,))[1])
        closed = trace_to_jaxpr(flat, [get_aval(x).to_tangent_aval() for x in outs])
        return out, _Residuals(closed.jaxpr, flat.out_tree, closed.consts)

    def bwd(residuals: _Residuals, cotangent: Any) -> Any:
        cts = eval_jaxpr(residuals.jaxpr, residuals.consts, *flatten(cotangent)[0])
        return residuals.tree.unflatten(cts)

    function = custom_vjp(wrapped)
    function.defvjp(fwd, bwd)
    return function


class _Residuals:
    """A jaxpr as residuals: its constants are the leaves."""

    __slots__ = ("consts", "jaxpr", "tree")

    def __init__(self, jaxpr: Any, tree: Any, consts: Sequence[Any]) -> None:
        self.jaxpr = jaxpr
        self.tree = tree
        self.consts = consts


register_pytree_node(_Residuals, lambda r: (r.consts, (r.jaxpr, r.tree)),
                     lambda aux, consts: _Residuals(aux[0], aux[1], consts))
