"""What programs take of memory, by XLA's word, and the arrays that are alive at their peak."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

from pyjx import configuration, jaxlib_api
from pyjx.core.evaluation import read_in
from pyjx.core.frames import own_line, shown_path
from pyjx.core.jaxpr import Jaxpr, JaxprEqn
from pyjx.core.lifetimes import Liveness, Sizes
from pyjx.core.records import Record
from pyjx.core.value_texts import size_text

CURES = ("Smaller batches or shorter sequences, bfloat16, shardings over more devices and "
         "donated arguments (donate_argnums) need less.")


class Memory(Record):
    """Bytes of a compiled program, as XLA counts them.

    Attributes:
      argument, output, temp, alias, generated_code: of arguments, of results, of what lies in
        between, of results that lie in arguments, and of the code.
      peak: the most at a time, where XLA says so.
    """

    argument: int
    output: int
    temp: int
    alias: int
    generated_code: int
    peak: int | None = None

    @property
    def in_all(self) -> int:
        """What a `memory_budget` bounds: all but the code, and what lies in arguments once."""
        return self.argument + self.output + self.temp - self.alias

    def __str__(self) -> str:
        rows = [(name.replace("_", " "), value) for name, value in
                zip(self._fields, self, strict=True) if value is not None]
        rows.append(("in all", self.in_all))
        return "\n".join([f"{name:16} {value:16,} bytes" for name, value in rows])


def memory_of(loaded: Any) -> Memory | None:
    """The figures of a program that XLA has compiled; None where it does not tell."""
    try:
        stats = loaded.get_compiled_memory_stats()
    except RuntimeError:
        return None
    if stats is None:
        return None
    sizes = {name: int(getattr(stats, f"{name}_size_in_bytes")) for name in Memory._fields[:5]}
    on_cpu = getattr(getattr(loaded, "client", None), "platform", "") == "cpu"
    peak = 0 if on_cpu else getattr(stats, "peak_memory_in_bytes", 0)  # there without `temp`
    return Memory(**sizes, peak=int(peak) or None)


def memory_of_device(device: Any) -> int | None:
    """The bytes of memory that a device has; None where nobody knows."""
    if configuration.memory_limit.value is not None:
        return int(configuration.memory_limit.value)
    if device is None:
        return None
    if device.platform == "cpu":
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        return (device.memory_stats() or {}).get("bytes_limit")  # type: ignore[no-any-return]
    except (jaxlib_api.JaxRuntimeError, NotImplementedError, RuntimeError):
        return None  # a device that is only described


class LiveArray(Record):
    """An array that is in memory: at a program's peak, or as one of the process.

    Attributes:
      bytes: how many it takes.
      type: such as `f32[8,128]`.
      what: the argument's name, or the operation that makes it.
      place: the user's line that makes it; empty where there is none.
    """

    bytes: int
    type: str
    what: str
    place: str

    def __str__(self) -> str:
        return f"{size_text(self.bytes):>12}  {self.type:24} {self.what:20} {self.place}".rstrip()


def table_of(held: Sequence[LiveArray]) -> str:
    return "\n".join([f"  {h}" for h in held])


def largest(jaxpr: Jaxpr, live: Liveness, sizes: Sizes, most: int = 5) -> list[LiveArray]:
    """The largest arrays at a program's peak: its arguments and results, and what is alive then."""
    names, read = jaxpr.debug_info.arg_names or (), read_in(jaxpr)
    found = [LiveArray(sizes(v.aval), v.aval.str_short(short_dtypes=True),
                  names[i] if i < len(names) else f"argument {i}", "")
             for i, v in enumerate(jaxpr.invars) if v in read]
    made = {v: e for e in jaxpr.eqns for v in e.outvars}
    found += [_live_array(v, made[v], sizes) for v in dict.fromkeys(jaxpr.outvars) if v in made]
    found += list(_alive(live, sizes))
    return sorted(found, key=lambda h: -h.bytes)[:most]


def _alive(live: Liveness, sizes: Sizes) -> Iterator[LiveArray]:
    i = live.at_peak
    if not live.eqns:
        return
    for v in live.alive(i):
        yield _live_array(v, live.eqns[live.first[v]], sizes)
    inner = live.within(i)
    if inner is not None:
        yield from _alive(inner, sizes)


def _live_array(v: Any, eqn: JaxprEqn, sizes: Sizes) -> LiveArray:
    return LiveArray(sizes(v.aval), v.aval.str_short(short_dtypes=True), eqn.primitive.name,
                place_of(eqn))


def place_of(eqn: JaxprEqn) -> str:
    """The user's line that an equation comes from; empty where there is none."""
    return shown_path(own_line(eqn.source_info.traceback))
