"""Versions of StableHLO."""

from __future__ import annotations

from pyjx import jaxlib_api


def stablehlo_versions() -> tuple[str, str]:
    """The oldest and the newest version of StableHLO that this jaxlib writes programs for.

    >>> from pyjx import inspect
    >>> inspect.stablehlo_versions()[0]
    '0.9.0'
    """
    stablehlo = jaxlib_api.mlir_bindings().stablehlo
    return stablehlo.get_minimum_version(), stablehlo.get_current_version()
