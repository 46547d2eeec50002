"""`jax._src.public_test_util`: checks of derivatives and of values."""

from __future__ import annotations

import importlib
from typing import Any

import pyjx.test_util
from pyjx.core.dtypes import is_python_scalar

__all__ = ["inner_prod", "is_python_scalar"]

inner_prod = pyjx.test_util.inner_product


def __getattr__(name: str) -> Any:
    if name in ("default_tolerance", "tolerance"):  # not before it is used: it needs absl-py
        return getattr(importlib.import_module("pyjx.compat.test_util"), name)
    return getattr(pyjx.test_util, name)
