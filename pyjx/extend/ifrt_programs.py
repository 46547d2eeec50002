"""Programs of runtimes that bring their own compiler."""

from __future__ import annotations

from typing import Any

from pyjx import jaxlib_api
from pyjx.lazy import directory

__all__ = ["ifrt_programs"]  # noqa: F822
__dir__ = directory(__name__, __all__)


def __getattr__(name: str) -> Any:
    if name == "ifrt_programs":
        return jaxlib_api.ifrt_programs()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
