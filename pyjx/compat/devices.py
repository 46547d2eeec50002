"""Clients of platforms, arrays of several devices, and the mesh of this thread, as libraries look
at them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from pyjx import configuration, jaxlib_api
from pyjx.compat.given_members import give
from pyjx.core.avals import AbstractValue, ShapedArray
from pyjx.core.explicit import abstract_sharding
from pyjx.core.layouts import ShardingLike
from pyjx.core.meshes import empty_mesh
from pyjx.runtime import backends as runtime_backends
from pyjx.runtime import jit, stages
from pyjx.runtime.compile import compile_options
from pyjx.runtime.sharding import NamedSharding
from pyjx.tree_util import tree_leaves, tree_unflatten

# -- clients ---------------------------------------------------------------------------------------

T = TypeVar("T")


class Clients(Mapping[str, Any]):
    """The clients that have started, by platform."""

    def __getitem__(self, platform: str) -> Any:
        return runtime_backends.started()[platform]

    def __iter__(self) -> Iterator[str]:
        return iter(runtime_backends.started())

    def __len__(self) -> int:
        return len(runtime_backends.started())


def backends() -> dict[str, Any]:
    """The clients by platform, started if none has been."""
    runtime_backends.get_backend()
    return runtime_backends.started()


def backend_xla_version(platform: str | None = None) -> int | None:
    """The version of XLA that the default client has, where it says so."""
    version = getattr(runtime_backends.get_backend(platform), "xla_version", None)
    return version if isinstance(version, int) else None


def get_backend(platform: str | Any | None = None) -> Any:
    """The client of a platform, by default of the preferred one."""
    return runtime_backends.get_backend(platform)


def clear_backends(_crash: bool = False) -> None:
    """Forget all compiled programs; clients cannot be stopped, nor crash."""
    jit.clear_caches()


def register_backend_cache(cache: T, for_what: str) -> T:
    """A cache that goes with its client, which clients here outlive."""
    return cache


def get_compile_options(num_replicas: int, num_partitions: int,
                        device_assignment: Sequence[Any] | np.ndarray[Any, Any] | None = None,
                        env_options_overrides: dict[str, Any] | None = None,
                        fdo_profile: bytes | None = None, detailed_logging: bool = True,
                        backend: Any = None) -> Any:
    """XLA's options for the flags in force, for a library that compiles programs itself.

    Args:
      device_assignment: the devices, in an array of replicas and partitions.
      env_options_overrides: flags of XLA by name.
      fdo_profile: a profile that XLA is to optimize for.
    """
    devices = backend or runtime_backends.get_backend()
    chosen = devices.local_devices()[:num_replicas * num_partitions] if (
        device_assignment is None) else list(np.asarray(device_assignment).flat)
    kept = compile_options(tuple(chosen), num_replicas, num_partitions, env_options_overrides)
    options = jaxlib_api.CompileOptions.ParseFromString(kept.SerializeAsString())
    if fdo_profile is not None:
        options.executable_build_options.fdo_profile = fdo_profile
    return options


def register_backend_factory(name: str, factory: Callable[[], Any], *, priority: int = 0,
                             fail_quietly: bool = True, experimental: bool = False,
                             make_topology: object = None, c_api: object = None) -> None:
    """Let `factory()` make the client of a platform that pyjx does not know.

    Args:
      name: of the platform, for `jax.devices(name)` and the flag `jax_platforms`.
      priority: above 0 the platform is the default if it can be started.
      fail_quietly: whether an error of `factory` is kept for when the platform is asked for.
      experimental, make_topology, c_api: accepted.
    """
    runtime_backends.add_factory(name, factory, priority, fail_quietly)


_backends = Clients()
CompileOptions = jaxlib_api.CompileOptions


def backends_are_initialized() -> bool:
    """Whether a client has started."""
    return bool(_backends)


# -- devices ---------------------------------------------------------------------------------------


class ResourceEnv:
    """What the mesh context manager has set."""

    @property
    def physical_mesh(self) -> Any:
        """The mesh that this thread has entered, or an empty one."""
        mesh = configuration.entered_mesh.value
        return empty_mesh() if mesh is None else mesh


class ThreadResources:
    """The resources of this thread."""

    env = ResourceEnv()


thread_resources = ThreadResources()


def global_aval_to_result_handler(aval: AbstractValue, out_sharding: ShardingLike, committed: bool
                                  ) -> Callable[..., Any]:
    """What makes an array of the buffers that a program gives."""
    return global_result_handlers[type(aval)](aval, out_sharding, committed)


def global_avals_to_results_handler(global_out_avals: Sequence[Any], shardings: Sequence[Any],
                                    committed: bool) -> list[Callable[..., Any]]:
    """As `global_aval_to_result_handler`, for each result of a program."""
    return [global_aval_to_result_handler(a, s, committed)
            for a, s in zip(global_out_avals, shardings, strict=True)]


global_result_handlers: dict[type, Callable[..., Any]] = {
    ShapedArray: jaxlib_api.result_handler,
}


def create_compile_options(computation: object, tuple_args: bool,
                           allow_prop_to_inputs: Sequence[bool],
                           allow_prop_to_outputs: Sequence[bool], backend: object, np_dev: Any,
                           compiler_options: dict[str, Any] | None) -> Any:
    """XLA's options for a program on an array of devices, under the flags in force."""
    devices = tuple(np.asarray(np_dev).flat)
    return compile_options(devices, 1, len(devices), compiler_options, tuple(allow_prop_to_inputs),
                           tuple(allow_prop_to_outputs))


class MeshComputation:
    """A lowered program, as libraries look into one: what `jax.stages.Lowered` is."""

    def __init__(self, lowered: stages.Lowered) -> None:
        self._lowered = lowered

    @property
    def compile_args(self) -> dict[str, Any]:
        """What it is compiled with."""
        return {"global_in_avals": self._lowered.in_avals, "donated": self._lowered.donate_argnums}

    @property
    def const_args(self) -> list[Any]:
        """The constants that are arguments of the program."""
        return list(self._lowered._program.const_args)

    def stablehlo(self) -> Any:
        """The MLIR module."""
        return self._lowered.compiler_ir("stablehlo")

    def hlo(self) -> Any:
        """The program as XLA's."""
        return self._lowered.compiler_ir("hlo")

    def compile(self, compiler_options: dict[str, Any] | None = None, *,
                device_assignment: Any = None) -> MeshExecutable:
        return MeshExecutable(self._lowered.compile(
            compiler_options, device_assignment=device_assignment))


class MeshExecutable:
    """A compiled program, as libraries look into one: what `jax.stages.Compiled` is, on leaves."""

    def __init__(self, compiled: stages.Compiled) -> None:
        self._compiled = compiled

    @property
    def in_avals(self) -> list[Any]:
        """The types of the arguments."""
        return list(self._compiled._executable.in_avals)

    @property
    def out_avals(self) -> list[Any]:
        """The types of the results."""
        return list(self._compiled._executable.logical_out_avals)

    @property
    def xla_executable(self) -> Any:
        """The program as jaxlib holds it."""
        return self._compiled.runtime_executable()

    def xla_extension_executable(self) -> Any:
        return self.xla_executable

    runtime_executable = xla_extension_executable

    def call(self, *args: Any) -> list[Any]:
        """Call the program with leaves: the leaves of its result."""
        compiled = self._compiled
        given, kwargs = tree_unflatten(compiled.in_tree, args)
        return tree_leaves(compiled(*given, **kwargs))

    def build_unsafe_call(self) -> Callable[..., list[Any]]:
        return self.call

    unsafe_call = property(build_unsafe_call)

    def create_cpp_call(self, params: object) -> None:
        """None: there is no callable of C++ for a program of leaves."""
        return

    def shard_const_args(self, const_args: Sequence[Any]) -> list[Any]:
        """The constants, which lie where the program wants them already."""
        return list(const_args)


give(MeshComputation, **{
    name: lambda self, *args, name=name, **options: getattr(self._lowered, name)(*args, **options)
    for name in ("as_text", "compiler_ir", "cost_analysis")})
give(MeshExecutable, **{
    name: lambda self, name=name: getattr(self._compiled, name)()
    for name in ("as_text", "cost_analysis", "memory_analysis")}, **{
    name: lambda self, name=name: tree_leaves(getattr(self._compiled, name))
    for name in ("input_shardings", "output_shardings", "input_formats", "output_formats")})


def canonicalize_sharding(sharding: ShardingLike, api_name: str, check_mesh_consistency: bool = True
                          ) -> NamedSharding | None:
    """The sharding over an abstract mesh; None for None, and for one that names no mesh.

    Args:
      sharding: a NamedSharding, a PartitionSpec along the mesh that is set, or None.
      api_name: whose argument errors say it is.
      check_mesh_consistency: no meaning here: the mesh is checked where the sharding is used.

    Raises:
      ValueError: no mesh is set, or it names an axis that is not Explicit.
      TypeError: it is neither.
    """
    return None if sharding is None else abstract_sharding(sharding, api_name)
