"""Transfers of arrays between processes that form no group, by jaxlib's transfer server."""

from __future__ import annotations

from typing import Any

from pyjx import jaxlib_api
from pyjx.lazy import directory

__all__ = ["TransferConnection", "TransferServer", "start_transfer_server"]  # noqa: F822
__dir__ = directory(__name__, __all__)


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(jaxlib_api.submodule("_jax"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
