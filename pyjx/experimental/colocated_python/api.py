"""What users of functions beside devices call."""

from __future__ import annotations

from pyjx.experimental.colocated_python.func import colocated_cpu_devices, colocated_python
from pyjx.experimental.colocated_python.obj import colocated_python_class
from pyjx.lazy import directory

__all__ = ["colocated_cpu_devices", "colocated_python", "colocated_python_class"]
__dir__ = directory(__name__, __all__)
