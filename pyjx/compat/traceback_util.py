"""`jax._src.traceback_util`: which frames users see."""

from __future__ import annotations

from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

from pyjx.core import frames, tracebacks
from pyjx.core.frames import register_exclusion
from pyjx.core.tracebacks import UnfilteredStackTrace

__all__ = ["UnfilteredStackTrace", "api_boundary", "include_frame", "register_exclusion"]

_F = TypeVar("_F", bound=Callable[..., Any])

_exclude_paths = frames.excluded


def api_boundary(fun: _F, **options: Any) -> _F:
    """Let exceptions that leave a function show the user's frames only."""
    return tracebacks.api_boundary(fun)


def include_frame(frame: FrameType) -> bool:
    """Whether a frame is the user's."""
    return not frames.is_internal(frame.f_code.co_filename)
