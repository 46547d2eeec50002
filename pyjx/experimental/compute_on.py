"""Computing parts of a program elsewhere than on its devices: on their hosts."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from pyjx.core.primitive import register
from pyjx.engine.types import Params
from pyjx.experimental.staged_calls import PlacedCall, staged_call
from pyjx.experimental.xla_metadata import MetadataContext
from pyjx.lazy import directory
from pyjx.tree_util import broadcast_prefix, tree_unflatten

__all__ = ["compute_on", "compute_on2"]
__dir__ = directory(__name__, __all__)

_TYPES = "`device_host`, `device`, `tpu_sparsecore`, and `gpu_stream:#`"


compute_on_p = register(PlacedCall("compute_on", "out_memory_spaces"))


def _check(compute_type: str) -> str:
    if compute_type not in ("device_host", "device", "tpu_sparsecore") and not re.fullmatch(
            r"gpu_stream:\d+", compute_type):
        raise ValueError(f"Invalid compute type {compute_type}. Current supported values are "
                         f"{_TYPES}.")
    return compute_type


def compute_on(f: Any = None, *, compute_type: str | None = None, out_memory_spaces: Any = None,
               compiler_options: Mapping[str, Any] | None = None) -> Any:
    """A function that is computed elsewhere, as part of a program for devices.

    A program for a CPU computes it where all the rest is.

    Args:
      f: a function of pytrees; without it this is a decorator. A compute type in its place gives
        a context, or a decorator, whose operations are computed there.
      compute_type: "device_host" for the CPU of the device, "device", "tpu_sparsecore", or
        "gpu_stream:#" with the number of a stream.
      out_memory_spaces: a prefix tree of the memories that the results are left in.
      compiler_options: for XLA, by name.

    Raises:
      ValueError: there is no such compute type.
      TypeError: there is none, or there are no memories.

    >>> import pyjx as jax
    >>> from pyjx.experimental.compute_on import compute_on
    >>> on_host = compute_on(lambda x: x + 1, compute_type="device_host",
    ...                      out_memory_spaces=jax.memory.Space.Device)
    >>> float(jax.jit(on_host)(1.0))
    2.0
    """
    if isinstance(f, str):
        kind = {"device_host": "host"}.get(_check(f), f)
        return MetadataContext({"_xla_compute_type": kind})
    if compute_type is None or out_memory_spaces is None:
        raise TypeError("compute_on: compute_type and out_memory_spaces must be given")
    _check(compute_type)
    if f is None:
        return partial(compute_on, compute_type=compute_type, out_memory_spaces=out_memory_spaces,
                       compiler_options=compiler_options)
    options = None if compiler_options is None else json.dumps(
        dict(compiler_options), sort_keys=True)
    return staged_call(
        compute_on_p, f, per_result=partial(_memories, "out_memory_spaces", out_memory_spaces),
        compute_type=compute_type, compiler_options_json=options)


def _memories(name: str, spaces: Any, tree: Any) -> Params:
    return {name: tuple(broadcast_prefix(spaces, tree_unflatten(tree, [0] * tree.num_leaves)))}


def compute_on2(f: Callable[..., Any] | None = None, *, compute_type: str, out_memory_spaces: Any,
                compiler_options: Mapping[str, Any] | None = None) -> Any:
    """As `compute_on` of a function."""
    return compute_on(f, compute_type=compute_type, out_memory_spaces=out_memory_spaces,
                      compiler_options=compiler_options)
