"""`jax._src.source_info_util`: where operations come from, and what names they have."""

from __future__ import annotations

from typing import Any

import pyjx.extend.source_info_util
from pyjx.core.frames import Frame, is_internal, user_frame, user_frames
from pyjx.core.frames import frame_at as raw_frame_to_frame
from pyjx.core.name_stack import Scope, Transform

__all__ = ["Frame", "Scope", "Transform", "is_user_filename", "raw_frame_to_frame", "user_frame",
           "user_frames"]


def is_user_filename(filename: str) -> bool:
    """Whether code in a file is the user's."""
    return not is_internal(filename)


def __getattr__(name: str) -> Any:
    return getattr(pyjx.extend.source_info_util, name)
