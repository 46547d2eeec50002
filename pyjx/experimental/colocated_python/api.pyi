# Written by `python -m pyjx.cli.stubs` from the table of pyjx.experimental.colocated_python.api.

from pyjx.experimental.colocated import colocated_cpu_devices as colocated_cpu_devices
from pyjx.experimental.colocated import colocated_python as colocated_python
from pyjx.experimental.colocated import colocated_python_class as colocated_python_class

__all__ = [
    "colocated_cpu_devices",
    "colocated_python",
    "colocated_python_class",
]
