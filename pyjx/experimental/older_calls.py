"""`pjit` and `shard_map` as they were called before `jax.jit` and `jax.shard_map`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyjx import configuration
from pyjx.core.frames import warn
from pyjx.core.meshes import AbstractMesh, Mesh
from pyjx.interning import missing
from pyjx.parallel import mapping
from pyjx.runtime.jit import JitSpec, jit, pjit_callable, spec_of
from pyjx.runtime.requests import Asked


def pjit(fun: Any, in_shardings: Any = missing, out_shardings: Any = missing,
         static_argnums: Any = None, static_argnames: Any = None, donate_argnums: Any = None,
         donate_argnames: Any = None, keep_unused: bool = False, device: Any = None,
         backend: str | None = None, inline: bool = False,
         compiler_options: dict[str, Any] | None = None) -> Any:
    """`jit`, which does all that it did, and more of the `with` statement of a mesh: in it the
    function runs on that mesh, `in_shardings` and `out_shardings` may be PartitionSpecs, and None
    among them means a copy on each device.

    >>> import warnings
    >>> from pyjx.experimental.pjit import pjit
    >>> warnings.simplefilter("ignore", DeprecationWarning)
    >>> pjit(lambda x: x + 1)(1.0)
    Array(2., dtype=float32, weak_type=True)
    """
    warn("jax.experimental.pjit.pjit has been deprecated. Please use `jax.jit` instead.",
         DeprecationWarning)
    ins, outs = [
        None if s is missing else Asked(s, what, "pjit", configuration.entered_mesh)
        for s, what in ((in_shardings, "in_shardings"), (out_shardings, "out_shardings"))]
    plain = jit(fun, in_shardings=ins, out_shardings=outs, static_argnums=static_argnums,
                static_argnames=static_argnames, donate_argnums=donate_argnums,
                donate_argnames=donate_argnames, keep_unused=keep_unused, device=device,
                backend=backend, inline=inline, compiler_options=compiler_options)
    spec = JitSpec(fun, spec_of(plain).options._replace(on_entered_mesh=True))
    return pjit_callable(spec, spec.miss, fun)


def shard_map(f: Callable[..., Any], mesh: Mesh | AbstractMesh, in_specs: Any, out_specs: Any,
              check_rep: bool = True) -> Callable[..., Any]:
    """`jax.shard_map`, whose `check_vma` is called `check_rep` here.

    >>> import warnings
    >>> import pyjx as jax
    >>> from pyjx.experimental.shard_map import shard_map
    >>> from pyjx.sharding import AxisType, PartitionSpec as P
    >>> warnings.simplefilter("ignore", DeprecationWarning)
    >>> mesh = jax.make_mesh((1,), ("x",), axis_types=(AxisType.Auto,))
    >>> shard_map(lambda x: x + 1, mesh, P("x"), P("x"))(jax.numpy.zeros(2)).tolist()
    [1.0, 1.0]
    """
    warn("jax.experimental.shard_map is deprecated in v0.8.0. Used jax.shard_map instead.",
         DeprecationWarning)
    return mapping.shard_map(  # type: ignore[no-any-return]
        f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=check_rep)
