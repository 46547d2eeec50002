"""Closures as functions of what they close over: `closure_convert`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyjx.core import dtypes
from pyjx.core.avals import get_aval
from pyjx.core.evaluation import eval_jaxpr
from pyjx.core.jaxpr import DebugInfo
from pyjx.core.trace import Tracer, trace_to_jaxpr
from pyjx.core.tracebacks import api_boundary
from pyjx.engine.functions import FlatFun, flatten, name_of, source_of
from pyjx.runtime.abstract import described
from pyjx.runtime.signature import names_when_asked
from pyjx.tree_util import tree_structure


@api_boundary
def closure_convert(fun: Callable[..., Any], *example_args: Any
                    ) -> tuple[Callable[..., Any], list[Any]]:
    """Turn values that a function closes over, and that may be differentiated, into arguments.

    Args:
      fun: a function of positional arguments.
      *example_args: arguments, or types of arguments, that it will be called with.

    Returns:
      `(converted, values)`: `converted(*args, *values)` equals `fun(*args)`.

    >>> import pyjx as jax
    >>> converted, values = jax.closure_convert(lambda x: x * 2.0, 1.0)
    >>> float(converted(3.0, *values))
    6.0
    """
    leaves, in_tree = flatten(example_args)
    flat = FlatFun(fun, in_tree)
    closed = trace_to_jaxpr(flat, [get_aval(described(x)) for x in leaves], DebugInfo(
        "closure_convert", source_of(fun),
        names_when_asked(fun, tree_structure((example_args, {})))))
    hoist = [_may_be_perturbed(c) for c in closed.consts]
    values = [c for c, h in zip(closed.consts, hoist, strict=True) if h]
    kept = [None if h else c for c, h in zip(closed.consts, hoist, strict=True)]
    n_values = len(values)

    def converted(*args: Any) -> Any:
        given = iter(args[len(args) - n_values:])
        flat_args, tree = flatten(args[:len(args) - n_values])
        if tree != in_tree:
            raise TypeError("closure_convert: the arguments have another tree structure than the "
                            f"example arguments: expected {in_tree}, got {tree}")
        consts = [next(given) if h else c for c, h in zip(kept, hoist, strict=True)]
        return flat.unflatten(eval_jaxpr(closed.jaxpr, consts, *flat_args))

    converted.__name__ = name_of(fun)
    return converted, values


def _may_be_perturbed(x: Any) -> bool:
    """Whether a constant could be under differentiation: a tracer of an inexact dtype."""
    return isinstance(x, Tracer) and x.aval.to_tangent_aval().dtype != dtypes.float0
