# Written by `python -m pyjx.cli.stubs` from the table of pyjx.experimental.colocated_python.

from pyjx.experimental.colocated_python import api as api
from pyjx.experimental.colocated_python import func as func
from pyjx.experimental.colocated_python import func_backend as func_backend
from pyjx.experimental.colocated_python import obj_backend as obj_backend
from pyjx.experimental.colocated_python import obj as obj
from pyjx.experimental.colocated_python import serialization as serialization
from pyjx.experimental.colocated import colocated_cpu_devices as colocated_cpu_devices
from pyjx.experimental.colocated import colocated_python as colocated_python
from pyjx.experimental.colocated import colocated_python_class as colocated_python_class

__all__ = [
    "api",
    "func",
    "func_backend",
    "obj_backend",
    "obj",
    "serialization",
    "colocated_cpu_devices",
    "colocated_python",
    "colocated_python_class",
]
