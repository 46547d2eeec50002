"""What libraries import of JAX beyond its public names, over pyjx's own ideas.

Under the alias `jax._src` is this package. A module of JAX's internals that pyjx has in a public
place is that module (`MODULES`); the others are here. `jax.extend` and `jax.interpreters` are
tables of the names that these modules define.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

# Files of JAX's packages whose names the package has here.
_FILES = {
    "lax": "ann convolution fft other slicing special utils windowed_reductions",
    "lax.control_flow": "common conditionals loops solves",
    "numpy": "array_constructors array_creation einsum indexing lax_numpy polynomial reductions "
             "setops sorting tensor_contractions ufunc_api ufuncs window_functions",
}

# Modules of `jax._src` that are modules of pyjx, by their names there.
MODULES = {
    **{f"{package}.{name}": f"pyjx.{package.partition('.')[0]}"
       for package, names in _FILES.items() for name in names.split()},
    "api_util": "pyjx.api_util",
    "buffer_callback": "pyjx.experimental.buffer_callback",
    "callback": "pyjx.lax.callbacks",
    "custom_batching": "pyjx.custom_batching",
    "custom_derivatives": "pyjx.custom_derivatives",
    "custom_partitioning": "pyjx.experimental.custom_partitioning",
    "debugger": "pyjx.debug.debugger",
    "compute_on": "pyjx.experimental.compute_on",
    "environment_info": "pyjx.runtime.environment",
    "errors": "pyjx.errors",
    "export": "pyjx.export",
    "export._export": "pyjx.compat.exporting",
    "export.shape_poly": "pyjx.compat.symbolic_shapes",
    "extend": "pyjx.extend",
    "ffi": "pyjx.ffi",
    "flatten_util": "pyjx.flatten_util",
    "hijax": "pyjx.experimental.hijax",
    "image": "pyjx.image",
    "image.scale": "pyjx.image",
    "interpreters": "pyjx.interpreters",
    "lax.control_flow": "pyjx.compat.lax.control_flow",
    "lax.lax": "pyjx.compat.lax.lax",
    "lax.linalg": "pyjx.compat.lax.linalg",
    "lib.mlir": "pyjx.extend.mlir",
    "lib.mlir.dialects": "pyjx.compat.lib.dialects",
    "linear_util": "pyjx.extend.linear_util",
    "mesh_utils": "pyjx.experimental.mesh_utils",
    "named_sharding": "pyjx.runtime.sharding",
    "nn": "pyjx.nn",
    "nn.functions": "pyjx.nn",
    "numpy.fft": "pyjx.numpy.fft",
    "numpy.array_methods": "pyjx.compat.numpy.array_methods",
    "numpy.index_tricks": "pyjx.numpy.grids",
    "numpy.linalg": "pyjx.compat.numpy.linalg",
    "numpy.scalar_types": "pyjx.numpy.scalar_types",
    "numpy.util": "pyjx.compat.numpy.util",
    "numpy.vectorize": "pyjx.compat.numpy.vectorize",
    "ops": "pyjx.ops",
    "ops.scatter": "pyjx.ops",
    "ops.special": "pyjx.scipy.special",
    "partition_spec": "pyjx.core.specs",
    "pmap": "pyjx.parallel.pmapping",
    "profiler": "pyjx.profiler",
    "public_test_util": "pyjx.test_util",
    "random": "pyjx.random",
    "random.core": "pyjx.compat.random_core",
    "random.prng": "pyjx.compat.prng",
    "random.threefry2x32": "pyjx.compat.prng",
    "ref": "pyjx.ref",
    "scipy": "pyjx.scipy",
    "scipy.optimize.bfgs": "pyjx.compat.minimization",
    "scipy.optimize.line_search": "pyjx.compat.minimization",
    "scipy.optimize.minimize": "pyjx.scipy.optimize.quasi_newton",
    "scipy.stats.kde": "pyjx.scipy.stats.kernel_density",
    "stages": "pyjx.stages",
    "third_party": "pyjx",
    "third_party.scipy.betaln": "pyjx.scipy.special",
    "tree": "pyjx.tree",
    "version": "pyjx.version",
    "xla_metadata": "pyjx.experimental.xla_metadata",
}


def module_of(name: str) -> str:
    """The module of pyjx that is `jax._src.<name>`.

    >>> module_of("stages"), module_of("numpy.fft"), module_of("core")
    ('pyjx.stages', 'pyjx.numpy.fft', 'pyjx.compat.core')
    >>> module_of("lax.control_flow.loops"), module_of("nn"), module_of("nn.initializers")
    ('pyjx.lax', 'pyjx.compat.nn', 'pyjx.nn.initializers')
    """
    return f"pyjx.compat.{name}" if name in _packages else _listed(name)


def _listed(name: str) -> str:
    """The module that the table says: that of the longest beginning that is in it, and the rest."""
    known, rest = name, ""
    while known and known not in MODULES:
        known, _, last = known.rpartition(".")
        rest = f".{last}{rest}"
    return MODULES.get(known, "pyjx.compat") + rest


def names_of(package: str, names: str) -> Callable[[str], Any]:
    """The `__getattr__` of a package of `jax._src`: modules of the table, else a module's names.

    >>> import pyjx.numpy
    >>> find = names_of("numpy", "pyjx.numpy")
    >>> find("fft").__name__, find("sin") is pyjx.numpy.sin
    ('pyjx.numpy.fft', True)
    """
    def find(name: str) -> Any:
        if name.startswith("__") and name != "__all__":  # whoever walks over all modules asks
            raise AttributeError(f"module 'jax._src.{package}' has no attribute {name!r}")
        below = f"{package}.{name}"
        if below in MODULES or below in _packages:
            return importlib.import_module(module_of(below))
        return getattr(importlib.import_module(names), name)

    return find


def _above() -> Iterator[str]:
    """The packages that modules of the table are in, and that have no file here."""
    for name in MODULES:
        parts = name.split(".")
        for n in range(1, len(parts)):
            package = ".".join(parts[:n])
            if not _listed(package).startswith("pyjx.compat."):
                yield package


def _package(name: str) -> ModuleType:
    """A package of `jax._src` with the names of one of pyjx, and the modules of the table below.

    It is a module of its own, because importing a module sets an attribute of the package that it
    is in: `jax._src.nn.functions` is none of `jax.nn`.

    >>> from pyjx.compat import nn
    >>> nn.functions.relu is nn.relu
    True
    """
    module = ModuleType(f"pyjx.compat.{name}", f"`jax._src.{name}`.")
    module.__spec__ = ModuleSpec(module.__name__, None, is_package=True)
    module.__path__ = []
    module.__getattr__ = names_of(name, _listed(name))  # type: ignore[method-assign]
    return module


_packages = {name: _package(name) for name in _above()}
sys.modules.update({module.__name__: module for module in _packages.values()})


def __getattr__(name: str) -> ModuleType:
    try:
        return importlib.import_module(module_of(name))
    except ModuleNotFoundError as error:
        if error.name != module_of(name):
            raise
        raise AttributeError(f"module 'jax._src' has no attribute {name!r} here: pyjx has the "
                             "internals of JAX that libraries use") from None
