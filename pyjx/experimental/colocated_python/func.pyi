# Written by `python -m pyjx.cli.stubs` from the table of pyjx.experimental.colocated_python.func.

from pyjx.experimental.colocated import colocated_cpu_devices as colocated_cpu_devices
from pyjx.experimental.colocated import colocated_python as colocated_python

__all__ = [
    "colocated_cpu_devices",
    "colocated_python",
]
