"""`jax._src.source_info_util`: where operations come from, and what names they have."""

from __future__ import annotations

from typing import Any

import pyjx.extend.source_info_util


def __getattr__(name: str) -> Any:
    return getattr(pyjx.extend.source_info_util, name)
