"""What libraries import of JAX beyond its public names, over pyjx's own ideas.

Under the alias `jax._src` is this package. A module of JAX's internals that pyjx has in a public
place is that module (`MODULES`); the others are here. `jax.extend` and `jax.interpreters` are
tables of the names that these modules define.
"""

from __future__ import annotations

import importlib
from types import ModuleType

# Modules of `jax._src` that are modules of pyjx, by their names there.
MODULES = {
    "ad_checkpoint": "pyjx.ad_checkpoint",
    "api_util": "pyjx.api_util",
    "compiler": "pyjx.runtime.compile",
    "config": "pyjx.configuration",
    "custom_batching": "pyjx.custom_batching",
    "custom_derivatives": "pyjx.custom_derivatives",
    "debugging": "pyjx.debug",
    "dlpack": "pyjx.dlpack",
    "effects": "pyjx.core.effects",
    "ffi": "pyjx.ffi",
    "flatten_util": "pyjx.flatten_util",
    "image": "pyjx.image",
    "interpreters": "pyjx.interpreters",
    "lax": "pyjx.lax",
    "lax.control_flow": "pyjx.lax",
    "lax.lax": "pyjx.lax",
    "linear_util": "pyjx.extend.linear_util",
    "mesh": "pyjx.core.meshes",
    "monitoring": "pyjx.monitoring",
    "named_sharding": "pyjx.runtime.sharding",
    "nn": "pyjx.nn",
    "nn.functions": "pyjx.nn",
    "numpy": "pyjx.numpy",
    "numpy.lax_numpy": "pyjx.numpy",
    "numpy.util": "pyjx.numpy.promotion",
    "ops": "pyjx.ops",
    "partition_spec": "pyjx.core.specs",
    "profiler": "pyjx.profiler",
    "public_test_util": "pyjx.test_util",
    "random": "pyjx.random",
    "scipy": "pyjx.scipy",
    "sharding": "pyjx.sharding",
    "source_info_util": "pyjx.extend.source_info_util",
    "stages": "pyjx.stages",
    "test_util": "pyjx.test_util",
    "tree": "pyjx.tree",
    "version": "pyjx.version",
}


def module_of(name: str) -> str:
    """The module of pyjx that is `jax._src.<name>`.

    >>> module_of("stages"), module_of("numpy.linalg"), module_of("core")
    ('pyjx.stages', 'pyjx.numpy.linalg', 'pyjx.compat.core')
    >>> module_of("lax.control_flow.loops")
    'pyjx.lax.loops'
    """
    known, rest = name, ""
    while known and known not in MODULES:  # the longest beginning that is
        known, _, last = known.rpartition(".")
        rest = f".{last}{rest}"
    return MODULES.get(known, "pyjx.compat") + rest


def __getattr__(name: str) -> ModuleType:
    try:
        return importlib.import_module(module_of(name))
    except ModuleNotFoundError as error:
        if error.name != module_of(name):
            raise
        raise AttributeError(f"module 'jax._src' has no attribute {name!r} here: pyjx has the "
                             "internals of JAX that libraries use") from None
