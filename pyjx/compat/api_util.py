"""`jax._src.api_util`: how functions of pytrees are called with leaves."""

from __future__ import annotations

from typing import Any

import pyjx.api_util


def infer_argnums_and_argnames(sig: Any, argnums: Any, argnames: Any
                               ) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Positions and names of the same arguments, of a signature, from either."""
    names = [p.name for p in sig.parameters.values()
             if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    numbers = () if argnums is None else (argnums,) if isinstance(argnums, int) else tuple(argnums)
    given = (argnames,) if isinstance(argnames, str) else tuple(argnames or ())
    if argnums is None:
        numbers = tuple([i for i, name in enumerate(names) if name in given])
    elif not given:
        given = tuple([names[i] for i in numbers if -len(names) <= i < len(names)])
    return numbers, given


def __getattr__(name: str) -> Any:
    return getattr(pyjx.api_util, name)
