"""The clients of the platforms, as libraries ask for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pyjx import jaxlib_api
from pyjx.runtime import backends as runtime_backends
from pyjx.runtime import jit


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


def register_backend_cache(cache: Any, for_what: str) -> Any:
    """A cache that goes with its client, which clients here outlive."""
    return cache


_backends = Clients()
CompileOptions = jaxlib_api.CompileOptions
