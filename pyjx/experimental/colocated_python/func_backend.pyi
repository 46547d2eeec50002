# Written by `python -m pyjx.cli.stubs` from the table of pyjx.experimental.colocated_python.func_backend.

from pyjx.experimental.colocated import SINGLETON_RESULT_STORE as SINGLETON_RESULT_STORE

__all__ = [
    "SINGLETON_RESULT_STORE",
]
