"""The clients of the platforms, as libraries ask for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from pyjx import jaxlib_api
from pyjx.runtime import backends as runtime_backends
from pyjx.runtime import jit
from pyjx.runtime.compile import compile_options

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
