# Written by `python -m pyjx.cli.stubs` from the table of pyjx.extend.backend.

from pyjx.extend.bindings import ifrt_proxy as ifrt_proxy
from pyjx.runtime.backends import default_device as get_default_device
from pyjx.runtime.jit import clear_caches as clear_in_memory_compilation_cache
from pyjx.compat.devices import backend_xla_version as backend_xla_version
from pyjx.compat.devices import backends as backends
from pyjx.compat.devices import clear_backends as clear_backends
from pyjx.compat.devices import get_backend as get_backend
from pyjx.compat.devices import get_compile_options as get_compile_options
from pyjx.compat.devices import register_backend_cache as register_backend_cache
from pyjx.compat.devices import register_backend_factory as register_backend_factory

__all__ = [
    "ifrt_proxy",
    "get_default_device",
    "clear_in_memory_compilation_cache",
    "backend_xla_version",
    "backends",
    "clear_backends",
    "get_backend",
    "get_compile_options",
    "register_backend_cache",
    "register_backend_factory",
]
