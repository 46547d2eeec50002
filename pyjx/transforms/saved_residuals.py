"""What reverse mode keeps of a function, and where each value comes from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyjx.core.avals import get_aval
from pyjx.core.jaxpr import DebugInfo, Literal
from pyjx.core.trace import trace_to_jaxpr
from pyjx.core.tracebacks import api_boundary
from pyjx.engine.functions import FlatFun, check_values, flatten, source_of
from pyjx.engine.linearize import linearize_flat
from pyjx.engine.origins import origin
from pyjx.runtime.signature import leaf_names, parameters_of
from pyjx.transforms.arguments import check_callable


def saved_residuals(f: Callable[..., Any], *args: Any, **kwargs: Any) -> list[tuple[Any, str]]:
    """The type of each value that a backward pass of `f(*args, **kwargs)` reads, and its origin."""
    check_callable(f)
    leaves, in_tree = flatten((args, kwargs))
    check_values(leaves)
    flat = FlatFun(lambda args, kwargs: f(*args, **kwargs), in_tree, of=f)

    def residuals(*primals: Any) -> list[Any]:
        return linearize_flat(flat, primals)[1].pruned().residuals()

    names = leaf_names(parameters_of(f), in_tree, ())
    jaxpr = trace_to_jaxpr(residuals, [get_aval(x) for x in leaves],
                           DebugInfo("saved_residuals", source_of(f), names)).jaxpr
    found = {v: origin(jaxpr, v) for v in jaxpr.outvars if not isinstance(v, Literal)}
    return [(v.aval, text) for v, (_, text) in sorted(found.items(), key=lambda item: item[1][0])]


@api_boundary
def print_saved_residuals(f: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Print what reverse mode keeps of `f(*args, **kwargs)`: the type of each value that the
    backward pass reads, and where it comes from.

    >>> import pyjx.numpy as jnp
    >>> from pyjx.ad_checkpoint import print_saved_residuals
    >>> print_saved_residuals(lambda x, y: jnp.sin(x) * y, 1.0, 2.0)  # doctest: +ELLIPSIS
    f32[] from the argument y
    f32[] output of sin from ...
    f32[] output of cos from ...
    """
    for aval, text in saved_residuals(f, *args, **kwargs):
        print(f"{aval.str_short(short_dtypes=True)} {text}")
