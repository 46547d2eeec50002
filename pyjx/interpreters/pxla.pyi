# Written by `python -m pyjx.cli.stubs` from the table of pyjx.interpreters.pxla.

from pyjx.compat.devices import MeshComputation as MeshComputation
from pyjx.compat.devices import MeshExecutable as MeshExecutable
from pyjx.compat.devices import create_compile_options as create_compile_options
from pyjx.compat.devices import global_aval_to_result_handler as global_aval_to_result_handler
from pyjx.compat.devices import global_avals_to_results_handler as global_avals_to_results_handler
from pyjx.compat.devices import global_result_handlers as global_result_handlers
from pyjx.compat.devices import thread_resources as thread_resources
from pyjx.core.meshes import Mesh as Mesh

__all__ = [
    "MeshComputation",
    "MeshExecutable",
    "create_compile_options",
    "global_aval_to_result_handler",
    "global_avals_to_results_handler",
    "global_result_handlers",
    "thread_resources",
    "Mesh",
]
