"""Functions that XLA is to make one kernel of."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

from pyjx.core.avals import is_valid_value
from pyjx.core.primitive import register
from pyjx.core.spaces import Space
from pyjx.engine.types import Params
from pyjx.experimental.staged_calls import PlacedCall, in_memory_of, spread, staged_call
from pyjx.lazy import directory
from pyjx.tree_util import tree_map

__all__ = ["fused", "fused_p"]
__dir__ = directory(__name__, __all__)


fused_p = register(PlacedCall("fused_call", "out_spaces"))


def fused(*, out_spaces: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: the operations of the function are to be one kernel, on operands in any memory.

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

    def decorated(f: Callable[..., Any]) -> Callable[..., Any]:
        call = staged_call(fused_p, f, per_result=partial(_spaces, out_spaces))

        @wraps(f)
        def called(*args: Any, **kwargs: Any) -> Any:
            args, kwargs = tree_map(_on_device, (args, kwargs))
            return call(*args, **kwargs)

        return called

    return decorated


def _on_device(x: Any) -> Any:
    """An operand for the kernel, in whose program no memory is told from another."""
    return in_memory_of(x, Space.Device) if is_valid_value(x) else x


def _spaces(out_spaces: Any, tree: Any) -> Params:
    return {"out_spaces": spread("fused: out_spaces", out_spaces, tree.num_leaves)}
