"""`jax._src.state.discharge`: programs on values in the place of programs on references."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyjx.core.avals import AbstractRef
from pyjx.core.jaxpr import ClosedJaxpr
from pyjx.core.trace import trace_to_jaxpr
from pyjx.engine.discharge import run
from pyjx.engine.references import Box
from pyjx.lax.references import freeze, new_ref
from pyjx.tree_util import tree_map

__all__ = ["discharge_state", "run_state", "run_state_reference"]


def discharge_state(closed_jaxpr: ClosedJaxpr, should_discharge: bool | Sequence[bool] = True
                    ) -> ClosedJaxpr:
    """The program with values for the references that it takes, whose new values it gives behind
    its results.

    Args:
      closed_jaxpr: the program.
      should_discharge: for each reference that it takes, or for all, whether it is one of these.

    >>> import pyjx as jax
    >>> def f(ref):
    ...     ref[...] = ref[...] * 2
    >>> discharge_state(jax.make_jaxpr(f)(jax.new_ref(1.0)))
    { lambda ; a:f32[]. let b:f32[] = mul a 2.0:f32[] in (b,) }
    """
    refs = [type(a) is AbstractRef for a in closed_jaxpr.in_avals]
    chosen = iter([should_discharge] * sum(refs) if isinstance(should_discharge, bool)
                  else should_discharge)
    boxed = [is_ref and next(chosen) for is_ref in refs]

    def fun(*args: Any) -> list[Any]:
        inputs = [Box(x) if b else x for x, b in zip(args, boxed, strict=True)]
        outs = run(closed_jaxpr, inputs, derivable=True)
        return [*outs, *[x.value for x in inputs if type(x) is Box]]

    avals = [a.inner_aval if b else a for a, b in zip(closed_jaxpr.in_avals, boxed, strict=True)]
    return trace_to_jaxpr(fun, avals, closed_jaxpr.debug_info)


def run_state(f: Callable[..., None]) -> Callable[[Any], Any]:
    """The function from a pytree of values to the values that references to them have after `f`.

    Args:
      f: takes the pytree of references.

    >>> from pyjx.compat.state.discharge import run_state
    >>> def double(ref):
    ...     ref[...] = ref[...] * 2
    >>> run_state(double)(3)
    Array(6, dtype=int32)
    """
    def values_after(args: Any) -> Any:
        refs = tree_map(new_ref, args)
        f(refs)
        return tree_map(freeze, refs)

    return values_after


run_state_reference = run_state
