"""`jax._src.core`: programs, types and interpreters."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import pyjx.core
import pyjx.errors
import pyjx.extend.core
import pyjx.extend.core.primitives
from pyjx.compat.avals import raise_to_shaped
from pyjx.core.avals import canonical_shape as canonicalize_shape
from pyjx.core.avals import get_aval
from pyjx.core.contexts import (
    AxisEnv,
    OpaqueTraceState,
    TracingContext,
    set_current_trace,
    take_current_trace,
    trace_ctx,
    trace_state_clean,
)
from pyjx.core.jaxpr import Jaxpr, JaxprEqn, Var
from pyjx.core.open_sums import ShardingTypeError
from pyjx.core.references import Ref
from pyjx.core.trace import EagerTrace as EvalTrace
from pyjx.lax.references import empty_ref, free_ref, freeze, new_ref
from pyjx.runtime.executable import physical_aval

__all__ = [
    "AxisEnv", "AxisName", "EvalTrace", "OpaqueTraceState", "Ref", "ShardingTypeError",
    "TracingContext", "canonicalize_shape", "clean_up_dead_vars", "empty_ref", "free_ref",
    "freeze", "get_axis_env", "is_constant_dim", "is_empty_shape", "last_used", "new_ref",
    "physical_aval", "raise_to_shaped", "set_current_trace", "shaped_abstractify",
    "take_current_trace", "trace_ctx", "trace_state_clean", "typematch", "typeof",
    "unsafe_am_i_under_a_jit", "unsafe_am_i_under_a_vmap", "unsafe_get_axis_names",
]

AxisName = Hashable
typeof = shaped_abstractify = get_aval
unsafe_am_i_under_a_jit = pyjx.core.unsafe_am_i_under_a_jit_DO_NOT_USE
unsafe_am_i_under_a_vmap = pyjx.core.unsafe_am_i_under_a_vmap_DO_NOT_USE
unsafe_get_axis_names = pyjx.core.unsafe_get_axis_names_DO_NOT_USE


def get_axis_env() -> AxisEnv:
    """The named axes that are in force."""
    return trace_ctx.axis_env


def is_constant_dim(d: Any) -> bool:
    """Whether a dimension is a number."""
    return isinstance(d, int)


def is_empty_shape(s: Any) -> bool:
    """Whether arrays of a shape have no elements.

    >>> is_empty_shape((2, 0)), is_empty_shape(())
    (True, False)
    """
    return any([is_constant_dim(d) and d == 0 for d in s])


def typematch(t1: Any, t2: Any) -> bool:
    """Whether types are equal but for being weak."""
    return bool(t1 == t2 or raise_to_shaped(t1, False) == raise_to_shaped(t2, False))


def last_used(jaxpr: Jaxpr) -> dict[Var, JaxprEqn | None]:
    """For each variable the equation that reads it last, None for what is a result.

    >>> import pyjx as jax
    >>> jaxpr = jax.make_jaxpr(lambda x: x * 2 + 1)(1.0).jaxpr
    >>> last_used(jaxpr)[jaxpr.invars[0]] is jaxpr.eqns[0]
    True
    """
    last: dict[Var, JaxprEqn | None] = {v: None for v in jaxpr.outvars if isinstance(v, Var)}
    for eqn in reversed(jaxpr.eqns):
        for v in eqn.invars:
            if isinstance(v, Var):
                last.setdefault(v, eqn)
    return last


def clean_up_dead_vars(eqn: JaxprEqn, env: dict[Var, Any],
                       last_used: dict[Var, JaxprEqn | None]) -> None:
    """Forget in `env` the values that nothing reads after the equation."""
    for v in {v for v in eqn.invars if isinstance(v, Var)}:
        if last_used[v] is eqn:
            env.pop(v, None)


_PUBLIC = (pyjx.extend.core, pyjx.core, pyjx.extend.core.primitives, pyjx.errors)


def __getattr__(name: str) -> Any:
    for public in _PUBLIC:
        if name in public.__all__:
            return getattr(public, name)
    raise AttributeError(f"module 'jax._src.core' has no attribute {name!r} here")
