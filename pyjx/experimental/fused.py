"""Functions that XLA is to make one kernel of."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from pyjx.core.primitive import register
from pyjx.engine.types import Params
from pyjx.experimental.staged_calls import PlacedCall, spread, staged_call
from pyjx.lazy import directory

__all__ = ["fused", "fused_p"]
__dir__ = directory(__name__, __all__)


fused_p = register(PlacedCall("fused_call", "out_spaces"))


def fused(*, out_spaces: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: the operations of the function are to be one kernel.

    Args:
      out_spaces: for each result the memory that it is left in.

    Raises:
      ValueError: there are more or fewer than results, when the function is called.

    >>> import pyjx as jax
    >>> from pyjx.experimental.fused import fused
    >>> f = fused(out_spaces=(jax.memory.Space.Device,))(lambda x: x * x)
    >>> float(jax.grad(f)(3.0))
    6.0
    """
    return lambda f: staged_call(fused_p, f, per_result=partial(_spaces, out_spaces))


def _spaces(out_spaces: Any, tree: Any) -> Params:
    return {"out_spaces": spread("fused: out_spaces", out_spaces, tree.num_leaves)}
