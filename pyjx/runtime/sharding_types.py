"""The classes of shardings that users name. They are C++'s, and `runtime.sharding` gives them their
members, which type checkers cannot follow: the stub beside this file declares them.
"""

from __future__ import annotations

from pyjx.runtime.sharding import NamedSharding, Sharding, SingleDeviceSharding

__all__ = ["NamedSharding", "Sharding", "SingleDeviceSharding"]
