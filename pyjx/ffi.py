"""Foreign functions: compiled code, written against XLA's FFI, as operations."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from pyjx import jaxlib_api
from pyjx.core.avals import abstract_token
from pyjx.lax.foreign_calls import ffi_call
from pyjx.lazy import deferred, directory

__all__ = [
    "abstract_token", "build_ffi_lowering_function", "ffi_call", "ffi_lowering",
    "include_dir", "pycapsule", "register_ffi_target",
    "register_ffi_target_as_batch_partitionable", "register_ffi_type", "register_ffi_type_id",
]

# Their signatures are in `compat`, which is above this module, so it does not import them.
build_ffi_lowering_function: Callable[..., Any]
ffi_lowering: Callable[..., Any]

_rules = deferred("pyjx.compat.lowering_rules")  # they build MLIR operations, which few need

_PLATFORMS = {"gpu": "CUDA", "cuda": "CUDA", "rocm": "ROCM", "cpu": "cpu", "tpu": "tpu"}


def register_ffi_target(name: str, fn: Callable[..., Any], platform: str = "cpu",
                        api_version: int = 1, **kwargs: Any) -> None:
    """Make a foreign function known to XLA, so that `ffi_call` can call it.

    Args:
      name: what programs call it.
      fn: a capsule with the address of the handler (`pycapsule` makes one), or a dictionary of such
        capsules for the stages "instantiate", "prepare", "initialize" and "execute".
      platform: what it runs on.
      api_version: 1 for functions of XLA's FFI, 0 for older ones.
      kwargs: passed on to jaxlib.
    """
    jaxlib_api.register_custom_call(name, fn, _PLATFORMS.get(platform, platform), api_version,
                                    **kwargs)


def register_ffi_type(name: str, type_registration: Any, platform: str = "cpu") -> None:
    """Make a type known to XLA that foreign functions keep as their state.

    Args:
      name: of the type.
      type_registration: a capsule with the type's id, or what newer versions of jaxlib take: a
        dictionary of "type_id" and "type_info".
      platform: what the functions run on; types of the CPU's functions can be registered so.

    Raises:
      NotImplementedError: another platform, whose plugin must register its types itself.
    """
    if platform != "cpu":
        raise NotImplementedError(f"register_ffi_type: types for the platform {platform!r} are "
                                  "registered by its plugin; this function does so for 'cpu'.")
    jaxlib_api.register_custom_type(name, type_registration)


def register_ffi_type_id(name: str, obj: Any, platform: str = "cpu") -> None:
    """As `register_ffi_type`, for a capsule with the type's id alone."""
    register_ffi_type(name, obj, platform)


def register_ffi_target_as_batch_partitionable(name: str) -> None:
    """Let programs on several devices split the leading axes of a foreign function's operands."""
    jaxlib_api.register_batch_partitionable(name)


def include_dir() -> str:
    """The folder of the C++ headers of XLA's FFI.

    >>> import os
    >>> from pyjx import ffi
    >>> os.path.exists(os.path.join(ffi.include_dir(), "xla", "ffi", "api", "ffi.h"))
    True
    """
    return jaxlib_api.include_dir()


def pycapsule(funcptr: Any) -> Any:
    """A capsule with the address of a function of a library that `ctypes` has loaded.

    Args:
      funcptr: a function of a `ctypes` library.
    """
    new = ctypes.pythonapi.PyCapsule_New
    new.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    new.restype = ctypes.py_object
    return new(ctypes.cast(funcptr, ctypes.c_void_p), b"xla._CUSTOM_CALL_TARGET", None)


__dir__ = directory(
    __name__, __all__, ffi_lowering=lambda: _rules.ffi_lowering,
    build_ffi_lowering_function=lambda: _rules.build_ffi_lowering_function)
