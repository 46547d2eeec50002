"""What libraries import of JAX beyond its public names, over pyjx's own ideas.

Under the alias `jax._src` is this package. A module of JAX's internals that pyjx has in a public
place is that module (`MODULES`); the others are here. `jax.extend` and `jax.interpreters` are
tables of the names that these modules define.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from types import ModuleType
from typing import Any

# Files of JAX's packages whose names the package has here.
_FILES = {
    "lax": "ann convolution fft other parallel slicing special utils windowed_reductions",
    "lax.control_flow": "common conditionals loops solves",
    "numpy": "array_constructors array_creation array_methods einsum index_tricks indexing "
             "lax_numpy polynomial reductions setops sorting tensor_contractions ufunc_api ufuncs "
             "vectorize window_functions",
}

# Modules of `jax._src` that are modules of pyjx, by their names there.
MODULES = {
    **{f"{package}.{name}": f"pyjx.{package.partition('.')[0]}"
       for package, names in _FILES.items() for name in names.split()},
    "ad_checkpoint": "pyjx.ad_checkpoint",
    "api_util": "pyjx.api_util",
    "buffer_callback": "pyjx.experimental.buffer_callback",
    "callback": "pyjx.lax.callbacks",
    "compilation_cache": "pyjx.experimental.compilation_cache.compilation_cache",
    "compiler": "pyjx.runtime.compile",
    "config": "pyjx.configuration",
    "custom_batching": "pyjx.custom_batching",
    "custom_derivatives": "pyjx.custom_derivatives",
    "custom_partitioning": "pyjx.experimental.custom_partitioning",
    "debugging": "pyjx.debug",
    "dlpack": "pyjx.dlpack",
    "effects": "pyjx.core.effects",
    "environment_info": "pyjx.runtime.environment",
    "errors": "pyjx.errors",
    "export": "pyjx.export",
    "ffi": "pyjx.ffi",
    "flatten_util": "pyjx.flatten_util",
    "hijax": "pyjx.experimental.hijax",
    "image": "pyjx.image",
    "image.scale": "pyjx.image",
    "interpreters": "pyjx.interpreters",
    "layout": "pyjx.experimental.layout",
    "lax.control_flow": "pyjx.compat.lax.control_flow",
    "lax.lax": "pyjx.compat.lax.lax",
    "lax.linalg": "pyjx.compat.lax.linalg",
    "lib": "pyjx.lib",
    "linear_util": "pyjx.extend.linear_util",
    "mesh": "pyjx.core.meshes",
    "mesh_utils": "pyjx.experimental.mesh_utils",
    "monitoring": "pyjx.monitoring",
    "named_sharding": "pyjx.runtime.sharding",
    "nn": "pyjx.nn",
    "nn.functions": "pyjx.nn",
    "numpy.fft": "pyjx.numpy.fft",
    "numpy.linalg": "pyjx.compat.numpy.linalg",
    "numpy.scalar_types": "pyjx.numpy.scalar_types",
    "numpy.util": "pyjx.compat.numpy.util",
    "ops": "pyjx.ops",
    "ops.scatter": "pyjx.ops",
    "ops.special": "pyjx.scipy.special",
    "partition_spec": "pyjx.core.specs",
    "profiler": "pyjx.profiler",
    "random": "pyjx.random",
    "ref": "pyjx.ref",
    "scipy": "pyjx.scipy",
    "scipy.stats.kde": "pyjx.scipy.stats.kernel_density",
    "shard_map": "pyjx.experimental.shard_map",
    "sharding": "pyjx.sharding",
    "source_info_util": "pyjx.extend.source_info_util",
    "stages": "pyjx.stages",
    "test_loader": "pyjx.compat.test_util.loading",
    "test_warning_util": "pyjx.compat.test_util.warning_contexts",
    "third_party": "pyjx",
    "tree": "pyjx.tree",
    "version": "pyjx.version",
    "xla_metadata": "pyjx.experimental.xla_metadata",
}


def module_of(name: str) -> str:
    """The module of pyjx that is `jax._src.<name>`.

    >>> module_of("stages"), module_of("numpy.fft"), module_of("core")
    ('pyjx.stages', 'pyjx.numpy.fft', 'pyjx.compat.core')
    >>> module_of("lax.control_flow.loops"), module_of("numpy.einsum")
    ('pyjx.lax', 'pyjx.numpy')
    """
    known, rest = name, ""
    while known and known not in MODULES:  # the longest beginning that is
        known, _, last = known.rpartition(".")
        rest = f".{last}{rest}"
    return MODULES.get(known, "pyjx.compat") + rest


def names_of(package: str, names: ModuleType) -> Callable[[str], Any]:
    """The `__getattr__` of a package of `jax._src`: modules of the table, else others' names.

    >>> import pyjx.numpy
    >>> find = names_of("numpy", pyjx.numpy)
    >>> find("fft").__name__, find("sin") is pyjx.numpy.sin
    ('pyjx.numpy.fft', True)
    """
    def find(name: str) -> Any:
        module = MODULES.get(f"{package}.{name}")
        return importlib.import_module(module) if module else getattr(names, name)

    return find


def __getattr__(name: str) -> ModuleType:
    try:
        return importlib.import_module(module_of(name))
    except ModuleNotFoundError as error:
        if error.name != module_of(name):
            raise
        raise AttributeError(f"module 'jax._src' has no attribute {name!r} here: pyjx has the "
                             "internals of JAX that libraries use") from None
