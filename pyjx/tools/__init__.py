"""Tools beside the library: what notebooks call."""

from __future__ import annotations

from pyjx.lazy import attach

FAMILIES: dict[str, str] = {}
SUBMODULES = "colab_tpu jax_to_ir pgo_nsys_converter"

__getattr__, __dir__, __all__ = attach(__name__, FAMILIES, SUBMODULES)
