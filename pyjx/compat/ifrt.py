"""Clients of devices that other processes have."""

from __future__ import annotations

from typing import Any

from pyjx import jaxlib_api


def __getattr__(name: str) -> Any:
    if name == "ifrt_proxy":
        return jaxlib_api.submodule("_ifrt_proxy")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
