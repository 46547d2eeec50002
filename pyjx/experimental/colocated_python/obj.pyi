# Written by `python -m pyjx.cli.stubs` from the table of pyjx.experimental.colocated_python.obj.

from pyjx.experimental.colocated import colocated_python_class as colocated_python_class

__all__ = [
    "colocated_python_class",
]
