"""Errors of memory that ran out: what asked for it, and which arrays there are, by their lines.

With the flag `jax_memory_limit` a program is not run whose peak does not fit beside the arrays of
the process, nor is an array made that does not, on CPU too, and arrays are known by the line that
made them.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterable
from functools import partial
from typing import Any

from pyjx import configuration, jaxlib_api
from pyjx.core.avals import ShapedArray
from pyjx.core.frames import shown_path, user_line
from pyjx.core.jaxpr import ClosedJaxpr
from pyjx.core.lifetimes import Liveness, machine_of
from pyjx.core.passes.dce import dce
from pyjx.core.value_texts import size_text
from pyjx.runtime.budgets import CURES
from pyjx.runtime.cuts import flattened
from pyjx.runtime.memory import LiveArray, largest, memory_of, table_of

# Where arrays were made, as long as they live, by their ids.
_places: dict[int, tuple[weakref.ref[Any], str]] = {}


def note(arrays: Iterable[Any]) -> None:
    """Note the user's line as that which made some arrays."""
    place = shown_path(user_line(jaxlib_api.Traceback.get_traceback()))
    for x in arrays:
        _places[id(x)] = weakref.ref(x, partial(_forget, id(x))), place


def _forget(key: int, _: weakref.ref[Any]) -> None:
    _places.pop(key, None)


def live(device: Any) -> list[LiveArray]:
    """The arrays of the process that are on a device, the largest first; none where it is not here.
    """
    found = []
    for x in getattr(device.client, "live_arrays", list)():
        if not x.is_deleted() and device in x.devices():
            reference, place = _places.get(id(x), (None, ""))
            place = place if reference is not None and reference() is x else ""
            found.append(LiveArray(x.nbytes // len(x.devices()),
                                   x.aval.str_short(short_dtypes=True), "array", place))
    return sorted(found, key=lambda h: -h.bytes)


def check(executable: Any, closed: ClosedJaxpr, label: str) -> None:
    """Refuse to run a program that does not fit beside the arrays of the process.

    Raises:
      JaxRuntimeError: it needs more than `jax_memory_limit` leaves.
    """
    memory = memory_of(executable.loaded) if configuration.memory_limit.value else None
    if memory is None:
        return
    refusal = _refusal(label, memory.in_all - memory.argument, executable.device)
    if refusal is not None:
        raise completed(refusal, closed, label, executable.device)


def admit(aval: ShapedArray, sharding: Any) -> None:
    """Refuse an array of the host's that does not fit beside those of the process.

    Raises:
      JaxRuntimeError: it needs more than `jax_memory_limit` leaves.
    """
    device = min(sharding.device_set, key=lambda d: d.id)
    asked = math.prod(sharding.shard_shape(aval.shape)) * aval.dtype.itemsize
    refusal = _refusal(f"an array {aval.str_short(short_dtypes=True)}", asked, device)
    if refusal is not None:
        raise type(refusal)(f"{refusal}\n{_table(device)}{CURES}")


def _refusal(label: str, asked: int, device: Any) -> Exception | None:
    limit, there = configuration.memory_limit.value, sum([h.bytes for h in live(device)])
    return None if there + asked <= limit else jaxlib_api.JaxRuntimeError(
        f"RESOURCE_EXHAUSTED: Out of memory: {label} asks for {size_text(asked)} beside "
        f"{size_text(there)} of arrays, of {size_text(limit)} in all (jax_memory_limit).")


def _table(device: Any) -> str:
    arrays = live(device)[:5]
    return f"The largest arrays of the process on {device} are\n{table_of(arrays)}\n" * any(arrays)


def completed(error: Exception, closed: ClosedJaxpr, label: str, device: Any) -> Exception:
    """An error of memory with the largest arrays of the process and of a program. One with a cause
    is that of a callback, whose own program it tells of."""
    if error.__cause__ is not None:
        return error
    if "memory space vmem" in str(error):
        return type(error)(
            f"{error}\nThe blocks of a kernel, those that it fetches ahead and its scratch space "
            "do not fit in a TPU's VMEM. Take smaller blocks, or more of it by "
            "pltpu.CompilerParams(vmem_limit_bytes=...).")
    machine = machine_of(device.platform)
    flat = dce(flattened(closed)).jaxpr
    program = largest(flat, Liveness(flat, machine), machine.sizes)
    return type(error)(f"{error}\n{_table(device)}The largest arrays of {label} at its peak are\n"
                       f"{table_of(program)}\n{CURES} jit(..., memory_budget=...) computes values "
                       "of the forward pass again.")
