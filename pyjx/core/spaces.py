"""The memories that types speak of."""

from __future__ import annotations

import enum


class Space(enum.Enum):
    """A memory: that of the device, that of its host, or either."""

    Device = enum.auto()
    Host = enum.auto()
    Any = enum.auto()

    def __repr__(self) -> str:
        return f"MemorySpace.{self.name}"

    __str__ = __repr__

    @property
    def memory_kind(self) -> str | None:
        """What devices call it; None where any will do."""
        return MEMORY_KINDS.get(self)


MEMORY_KINDS = {Space.Host: "pinned_host", Space.Device: "device"}
