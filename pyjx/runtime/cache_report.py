"""What the caches of the process hold, in one report."""

from __future__ import annotations

from pyjx import configuration
from pyjx.core import bounded
from pyjx.core.records import Record
from pyjx.runtime import cache, loaded, probation


class Cache(Record):
    """One cache: how much it holds, and what bounds it.

    Attributes:
      name: what it holds.
      entries: how many.
      bytes: how much memory or disk, about; None where only the number is known.
      bound: what it is bounded by, such as `4.0 GiB (jax_pyjx_programs_max_bytes)`.
      place: the folder of a cache on disk.
    """

    name: str
    entries: int
    bytes: int | None
    bound: str
    place: str = ""

    def __str__(self) -> str:
        size = "" if self.bytes is None else f", {size_text(self.bytes)}"
        place = f" in {self.place}" if self.place else ""
        return f"cache of {self.name}{place}: {self.entries}{size}; at most {self.bound}"


def size_text(n: int) -> str:
    """`1.5 MiB`."""
    for unit in ("bytes", "KiB", "MiB"):
        if n < 1024:
            return f"{n} {unit}" if unit == "bytes" else f"{n:.1f} {unit}"
        n = n / 1024  # type: ignore[assignment]
    return f"{n:.1f} GiB"


def caches() -> tuple[Cache, ...]:
    """The caches of the process, and the one on disk."""
    entries, capacity = bounded.sizes()
    limit = configuration.programs_max_bytes.value
    found = [
        Cache("compiled programs", loaded.count(), loaded.total(),
              "any number" if limit < 0
              else f"{size_text(limit)} (jax_pyjx_programs_max_bytes)"),
        Cache("operations outside of jit", probation.count(), None,
              f"{2 * probation.CAPACITY} programs"),
        Cache("traces and the like", entries, None, f"{capacity} entries"),
    ]
    folder = cache.folder()
    if folder is not None:
        n, size = cache.contents(folder)
        found.append(Cache("programs on disk", n, size,
                           f"{size_text(cache.maximum_bytes())} (jax_pyjx_cache_max_bytes)",
                           folder))
    return tuple(found)
