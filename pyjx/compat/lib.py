"""`jax._src.lib`: the modules of jaxlib, by the names that they have there."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

from pyjx import jaxlib_api


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
    if name == "jaxlib_extension_version":
        return jaxlib_api.submodule("xla_client")._version
    return jaxlib_api.submodule(name)
