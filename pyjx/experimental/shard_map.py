"""`shard_map` as it was called before it was `jax.shard_map`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pyjx.lazy import directory, refuse
from pyjx.parallel import mapping

__all__ = ["shard_map"]
__dir__ = directory(__name__, __all__)

if not TYPE_CHECKING:
    __getattr__ = refuse(__name__)


def shard_map(f: Callable[..., Any], mesh: Any, in_specs: Any, out_specs: Any,
              check_rep: bool = True) -> Callable[..., Any]:
    """`jax.shard_map`, whose `check_vma` is called `check_rep` here.

    >>> import pyjx as jax
    >>> from pyjx.experimental.shard_map import shard_map
    >>> from pyjx.sharding import AxisType, PartitionSpec as P
    >>> mesh = jax.make_mesh((1,), ("x",), axis_types=(AxisType.Auto,))
    >>> shard_map(lambda x: x + 1, mesh, P("x"), P("x"))(jax.numpy.zeros(2)).tolist()
    [1.0, 1.0]
    """
    return mapping.shard_map(  # type: ignore[no-any-return]
        f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=check_rep)
