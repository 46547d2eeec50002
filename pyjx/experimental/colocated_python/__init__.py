"""Python functions on the hosts of devices that another process controls.

Every process of pyjx controls the devices of its own host, so a function that is wanted beside them
is one that is called.
"""

from __future__ import annotations

from pyjx.lazy import attach

FAMILIES: dict[str, str] = {
    "pyjx.experimental.colocated_python.func":
        "colocated_cpu_devices colocated_python",
    "pyjx.experimental.colocated_python.obj":
        "colocated_python_class",
}

SUBMODULES = "api func obj serialization"

__getattr__, __dir__, __all__ = attach(__name__, FAMILIES, SUBMODULES)
