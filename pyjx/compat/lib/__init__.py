"""`jax._src.lib`: the modules of jaxlib, by the names that they have there."""

from __future__ import annotations

from typing import Any

from pyjx import jaxlib_api

__all__ = ["cuda_versions", "version", "version_str"]

version_str: str = jaxlib_api.JAXLIB_RELEASE
version: tuple[int, ...] = jaxlib_api.JAXLIB_VERSION

# What CUDA's wheels say of their versions. They are another package, which nothing here asks.
cuda_versions = None

_PARTS_OF_JAX = ("ffi", "guard_lib", "ifrt_programs", "jax_jit", "pytree")
_OTHER_NAMES = {"hlo": "_hlo"}
_NUMBERS = {"ifrt_version": "_ifrt_version", "jaxlib_extension_version": "_version"}


def __getattr__(name: str) -> Any:
    if name in _NUMBERS:
        return getattr(jaxlib_api.submodule("xla_client"), _NUMBERS[name])
    if name in _PARTS_OF_JAX:
        return getattr(jaxlib_api.submodule("_jax"), name)
    return jaxlib_api.submodule(_OTHER_NAMES.get(name, name))
