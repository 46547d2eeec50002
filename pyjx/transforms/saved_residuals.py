"""What reverse mode keeps of a function, and where each value comes from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyjx.core import source_info
from pyjx.core.avals import get_aval
from pyjx.core.jaxpr import Atom, DebugInfo, Jaxpr, Literal
from pyjx.core.trace import trace_to_jaxpr
from pyjx.core.tracebacks import api_boundary
from pyjx.engine.calls import jit_p
from pyjx.engine.functions import FlatFun, check_values, flatten, source_of
from pyjx.engine.linearize import linearize_flat
from pyjx.engine.remat_calls import name_p, remat_p
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
    found = {v: _origin(jaxpr, v) for v in jaxpr.outvars if not isinstance(v, Literal)}
    return [(v.aval, text) for v, (_, text) in sorted(found.items(), key=lambda item: item[1][0])]


Place = tuple[int, ...]


def _origin(jaxpr: Jaxpr, v: Atom) -> tuple[Place, str]:
    """Where a value of a program comes from: constants sort first, then arguments, then results."""
    if v in jaxpr.invars:
        i = jaxpr.invars.index(v)  # type: ignore[arg-type]
        names = jaxpr.debug_info.arg_names
        return (1, i), f"from the argument {names[i] if names else i}"
    for i, eqn in enumerate(jaxpr.eqns):
        if v not in eqn.outvars:
            continue
        where = source_info.summarize(eqn.source_info)
        if eqn.primitive is remat_p:
            place, text = _inside(jaxpr, eqn, eqn.outvars.index(v))
            return (place if place[0] < 2 else (2, i, *place)), text
        for j, e in enumerate(jaxpr.eqns):
            if e.primitive is name_p and v in (*e.outvars, *e.invars):
                where = source_info.summarize(e.source_info)
                return (2, j), f"named '{e.params['name']}' from {where}"
        what = (f"jitted function '{eqn.params['name']}'" if eqn.primitive is jit_p
                else eqn.primitive.name)
        return (2, i, eqn.outvars.index(v)), f"output of {what} from {where}"
    return (0, 0), "from a constant"


def _inside(jaxpr: Jaxpr, eqn: Any, position: int) -> tuple[Place, str]:
    """The origin of a result of the forward pass of a `checkpoint` function."""
    called = eqn.params["jaxpr"].jaxpr
    v = called.outvars[position]
    if v in called.invars:
        return _origin(jaxpr, eqn.invars[called.invars.index(v)])
    return _origin(called, v)


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
