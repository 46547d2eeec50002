# Written by `python -m pyjx.cli.stubs` from the table of pyjx.experimental.colocated_python.obj_backend.

from pyjx.experimental.colocated import SINGLETON_OBJECT_STORE as SINGLETON_OBJECT_STORE

__all__ = [
    "SINGLETON_OBJECT_STORE",
]
