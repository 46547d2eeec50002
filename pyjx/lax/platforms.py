"""`platform_dependent`: one of several functions, by the platform that it is lowered for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lowering.conditionals import branch_of
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.primitive import Primitive, register
from pyjx.core.trace import eager_trace, state
from pyjx.engine.holders import with_all_consts
from pyjx.engine.rules import jvp_zero
from pyjx.jaxlib_api import raw_platform
from pyjx.lax.agreement import trace_branches
from pyjx.lax.common import operand
from pyjx.lax.conditionals import cond_p
from pyjx.runtime import backends
from pyjx.tree_util import tree_flatten, tree_unflatten


def platform_dependent(*args: Any, default: Callable[..., Any] | None = None,
                       **per_platform: Callable[..., Any]) -> Any:
    """`per_platform[p](*args)`, where p is the platform that runs it.

    All functions are traced; which one is compiled is chosen when the program is lowered. They have
    derivatives and batches as the branches of `switch` have.

    Args:
      args: pytrees of arrays.
      default: what serves on platforms without a function of their own.
      per_platform: functions by the names of platforms (cpu, cuda, rocm, tpu), which give results
        of one structure and the same types.

    Raises:
      TypeError: a function is none, or the results differ in structure or types.
      ValueError: there is no function, or one for `gpu`.
      NotImplementedError: there is none for the platform, and no default.

    >>> import pyjx as jax
    >>> float(jax.lax.platform_dependent(2.0, cpu=lambda x: x * x, default=lambda x: x ** 2))
    4.0
    """
    if "gpu" in per_platform:
        raise ValueError("Use 'cuda', 'rocm', or 'oneapi' for lax.platform_dependent.")
    funs = {**per_platform, **({} if default is None else {"default": default})}
    if not funs:
        raise ValueError("lax.platform_dependent: there is no branch. Give one by its platform's "
                         "name, as in cpu=f, or a default.")
    for name, fun in funs.items():
        if not callable(fun):
            raise TypeError(f"lax.platform_dependent: the '{name}' branch must be a callable.")
    shared: dict[Any, list[str]] = {}  # what serves several platforms is one branch
    for name, fun in per_platform.items():
        shared.setdefault(fun, []).append(name)
    branches = list(shared)
    platforms: list[tuple[str, ...] | None] = list(map(tuple, shared.values()))
    if default is not None:
        branches.append(default)
        platforms.append(None)
    if state.dynamic is eager_trace:
        place = branch_of(tuple(platforms), raw_platform(backends.default_device().client))
        return branches[place](*args)
    leaves, tree = tree_flatten(args)
    leaves = [operand("platform_dependent (args)", x, i) for i, x in enumerate(leaves)]
    names = [f"the branch of {', '.join(p)}" if p else "the default branch" for p in platforms]
    closed, out_tree = trace_branches("platform_dependent", names, branches, tree,
                                      list(map(get_aval, leaves)))
    programs, consts = with_all_consts(closed)
    index = platform_index_p.bind(platforms=tuple(platforms))
    outs = cond_p.bind(index, *consts, *leaves, branches=tuple(programs),
                       branches_platforms=tuple(platforms))
    return tree_unflatten(out_tree, outs)


# Which of these sets of platforms has the one that the program is lowered for: what knows the
# branches' platforms need not lower the others, and what does not takes the right branch all the
# same.
platform_index_p = register(Primitive(
    "platform_index", shape_rule=lambda *, platforms: ShapedArray((), np.dtype(np.int32))))
platform_index_p.define(jvp=jvp_zero(platform_index_p))
