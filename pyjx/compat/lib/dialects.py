"""`jax._src.lib.mlir.dialects`: the dialects of MLIR, of which StableHLO is `hlo` too."""

from __future__ import annotations

from typing import Any

from pyjx import jaxlib_api


def __getattr__(name: str) -> Any:
    return jaxlib_api.submodule(f"mlir.dialects.{'stablehlo' if name == 'hlo' else name}")
