"""Foreign functions of jaxlib and of its plugins, made known to XLA before a program calls them."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder

from pyjx import jaxlib_api
from pyjx.lazy import deferred
from pyjx.runtime import backends

scipy = deferred("scipy")  # which brings LAPACK

_registered: set[str] = set()  # platforms, and families of the CPU's, that XLA knows
# By what their names begin with.
_CPU_FAMILIES = {"lapack": ("lapack_", "tridiagonal_solve"), "sparse": ("cpu_csr_sparse_dense",)}
_CUDA_FAMILIES = ("_blas", "_hybrid", "_linalg", "_prng", "_rnn", "_solver", "_sparse", "_triton")


def families_in(program: str | bytes) -> Collection[str]:
    """The families of foreign functions that a text calls."""
    if isinstance(program, str):
        if "custom_call" not in program:
            return ()
        program = program.encode()
    found = tuple([family for family, names in _CPU_FAMILIES.items()
                   if any([name.encode() in program for name in names])])
    return found or ("unknown",)


def register_targets(families: Collection[str], platform: str) -> None:
    """Make foreign functions of jaxlib known to XLA, before a program that calls them is
    compiled."""
    if not families or platform in _registered:
        return
    if platform == "cpu":
        for family in families:
            if family in _CPU_FAMILIES and family not in _registered:
                _register_on_cpu(family)
    elif platform in ("cuda", "gpu"):
        _register_cuda()


def _register_on_cpu(family: str) -> None:
    is_lapack = family == "lapack"
    if is_lapack:
        with _modules_of_lapack():
            targets = jaxlib_api.lapack_targets()
    else:
        targets = jaxlib_api.sparse_targets()
    for name, handler in targets.items():
        jaxlib_api.register_custom_call(name, handler, "cpu", 1 if name.endswith("_ffi") else 0)
        if is_lapack:
            jaxlib_api.register_batch_partitionable(name)
    _registered.add(family)


@contextmanager
def _modules_of_lapack() -> Iterator[None]:
    """Within this, the two modules of SciPy that jaxlib imports by name are there without their
    package: all of it takes 0.1 s to load. Nothing is done where the package is loaded already, and
    afterwards imports of it and of the two modules do what they always do."""
    found: list[ModuleSpec] = []
    if "scipy.linalg" not in sys.modules:
        folder = os.path.join(os.path.dirname(scipy.version.__file__), "linalg")
        names = ["scipy.linalg.cython_blas", "scipy.linalg.cython_lapack"]
        found = [spec for name in names if (spec := PathFinder.find_spec(name, [folder]))]
    try:
        for spec in found:
            sys.modules[spec.name] = module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)  # type: ignore[union-attr]
        yield
    finally:
        for spec in found:
            sys.modules.pop(spec.name, None)


_CUDA_PACKAGES = ("jax_cuda13_plugin", "jax_cuda12_plugin")


def lacking_functions(text: str) -> str:
    """What to do about a foreign function that XLA does not know: its plugin for GPUs lacks many
    where the package with them is not there."""
    found = re.search(r"(?:registered for|custom call to) (\S+) (?:on a|for) platform (\w+)", text)
    if found is None:
        return ""
    if found[2] != "CUDA" or any(map(importlib.util.find_spec, _CUDA_PACKAGES)):
        return f". Register it first: jax.ffi.register_ffi_target({found[1]!r}, ...)"
    number = 12 if "cuda12" in (backends.plugin_library("cuda") or "") else 13
    name = f"jax-cuda{number}-plugin"
    return (f"\nThe package {name} has it, which is not installed: pip install "
            f"{name}=={jaxlib_api.JAXLIB_RELEASE}")


def _register_cuda() -> None:
    """Give XLA's plugin the functions of the extension modules beside it, which import no jax."""
    api = backends.load_plugin("cuda")
    for package in _CUDA_PACKAGES:
        try:
            plugin = importlib.import_module(f"{package}.cuda_plugin_extension")
        except ImportError:
            continue
        if hasattr(plugin, "ffi_handlers"):
            handlers = plugin.ffi_handlers()
            for name, kind in plugin.ffi_types().items():
                plugin.register_custom_type(api, name, kind)
        else:  # those of jaxlib 0.7
            handlers = plugin.ffi_registrations()
        for name, handler in handlers.items():
            plugin.register_custom_call_target(api, name, handler, "CUDA", 1, 0)
        for family in _CUDA_FAMILIES:
            try:
                module = importlib.import_module(f"{package}.{family}")
            except ImportError:
                continue
            if hasattr(module, "initialize"):  # loads SciPy, for LAPACK on the host
                module.initialize()
            for name, handler in getattr(module, "registrations", dict)().items():
                typed = (name.endswith("_ffi") or isinstance(handler, dict)
                         or family in ("_hybrid", "_linalg"))
                plugin.register_custom_call_target(api, name, handler, "CUDA", int(typed), 0)
        break
    _registered.update(("cuda", "gpu"))
