"""Errors of memory that ran out: what asked for it, and which arrays there are, by their lines.

With the flag `jax_memory_limit` a program is not run whose peak does not fit beside the arrays of
the process, nor is an array made of values of the host that does not, on CPU too; and arrays are
known by the line that made them.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from pyjx import configuration, jaxlib_api
from pyjx.core.avals import ShapedArray
from pyjx.core.frames import own_line, shown_path
from pyjx.core.jaxpr import ClosedJaxpr
from pyjx.core.lifetimes import Liveness, machine_of
from pyjx.core.passes.dce import dce
from pyjx.core.value_texts import size_text
from pyjx.runtime.cuts import flattened
from pyjx.runtime.memory import CURES, LiveArray, largest, memory_of, table_of

# Where arrays were made, as long as they live, by their ids.
_places: dict[int, tuple[weakref.ref[Any], str]] = {}


def note(arrays: Iterable[Any]) -> None:
    """Note the user's line as that which made some arrays."""
    place = shown_path(own_line(jaxlib_api.Traceback.get_traceback()))
    for x in arrays:
        _places[id(x)] = weakref.ref(x, partial(_forget, id(x))), place


def _forget(key: int, _: weakref.ref[Any]) -> None:
    _places.pop(key, None)


def _live(device: Any) -> Iterator[tuple[Any, int]]:
    """The arrays of the process that are on a device, and the bytes of each there; none where it is
    not here."""
    for x in getattr(device.client, "live_arrays", list)():
        if not x.is_deleted() and device in x.devices():
            yield x, _bytes_on_each(x)


def _bytes_on_each(x: Any) -> int:
    return int(x.nbytes) // len(x.devices())


def admit(aval: ShapedArray, sharding: Any, devices: Sequence[Any]) -> None:
    """Refuse an array of values of the host that does not fit beside those of the process.

    Raises:
      JaxRuntimeError: it needs more than `jax_memory_limit` leaves on one of the devices.
    """
    asked = math.prod(sharding.shard_shape(aval.shape)) * aval.dtype.itemsize
    for device in devices:
        if said := _beyond(f"an array {aval.str_short(short_dtypes=True)}", asked, device):
            raise jaxlib_api.JaxRuntimeError(f"{said}\n{_table(device)}{CURES}")


def check(executable: Any, closed: ClosedJaxpr, label: str, leaves: Sequence[Any]) -> None:
    """Refuse to run a program that does not fit beside the arrays of the process, of which some are
    among its arguments.

    Raises:
      JaxRuntimeError: it needs more than `jax_memory_limit` leaves on one of its devices.
    """
    memory = memory_of(executable.loaded)
    if memory is None:
        return
    there = sum([_bytes_on_each(x) for x in leaves if isinstance(x, jaxlib_api.ArrayImpl)])
    asked = memory.in_all - min(memory.argument, there)
    for device in executable.placement.devices:
        if said := _beyond(label, asked, device):
            raise completed(jaxlib_api.JaxRuntimeError(said), closed, label, device)


def _beyond(label: str, asked: int, device: Any) -> str:
    """What is said of what asks for more bytes than `jax_memory_limit` leaves; else nothing."""
    limit, there = configuration.memory_limit.value, sum([n for _, n in _live(device)])
    return "" if there + asked <= limit else (
        f"RESOURCE_EXHAUSTED: Out of memory: {label} asks for {size_text(asked)} beside "
        f"{size_text(there)} of arrays, of {size_text(limit)} in all (jax_memory_limit).")


def _table(device: Any) -> str:
    """The largest arrays of the process."""
    found = []
    for x, n in sorted(_live(device), key=lambda held: -held[1])[:5]:
        reference, place = _places.get(id(x), (None, ""))
        place = place if reference is not None and reference() is x else ""
        found.append(LiveArray(n, x.aval.str_short(short_dtypes=True), "array", place))
    if not found:
        return ""
    return f"The largest arrays of the process on {device} are\n{table_of(found)}\n"


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
