"""`jax._src.lib`: the modules of jaxlib, by the names that they have there."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

from pyjx import jaxlib_api

__all__ = ["version", "version_str"]

version_str: str = jaxlib_api.JAXLIB_RELEASE
version: tuple[int, ...] = jaxlib_api.JAXLIB_VERSION

_PARTS_OF_JAX = ("ffi", "guard_lib", "ifrt_programs", "jax_jit", "pytree")
_OTHER_NAMES = {"hlo": "_hlo"}
_NUMBERS = {"ifrt_version": "_ifrt_version", "jaxlib_extension_version": "_version"}


def _cuda_versions() -> ModuleType | None:
    """What tells the versions of CUDA's libraries: a part of XLA's plugin, where it is installed.

    It loads the libraries, so it is imported for those who ask.
    """
    for package in ("jax_cuda13_plugin", "jax_cuda12_plugin"):
        try:
            return importlib.import_module(f"{package}._versions")
        except ImportError:  # also where there are no libraries that it could load
            continue
    return None


def __getattr__(name: str) -> Any:
    if name == "cuda_versions":
        return _cuda_versions()
    if name in _NUMBERS:
        return getattr(jaxlib_api.submodule("xla_client"), _NUMBERS[name])
    if name in _PARTS_OF_JAX:
        return getattr(jaxlib_api.submodule("_jax"), name)
    return jaxlib_api.submodule(_OTHER_NAMES.get(name, name))
