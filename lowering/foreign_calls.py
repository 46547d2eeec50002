"""Calls of foreign functions."""

from __future__ import annotations

from typing import Any

from lowering.builder import Block, in_avals
from lowering.rules import rule
from pyjx.core.jaxpr import JaxprEqn


@rule("ffi_call")
def _ffi_call(b: Block, eqn: JaxprEqn, *operands: str) -> list[str]:
    params = eqn.params
    config: Any = params["legacy_backend_config"] or ""
    if params["custom_call_api_version"] >= 4:
        config = dict(params["attributes"])
    return b.custom_call(
        params["target_name"], operands, in_avals(eqn), [v.aval for v in eqn.outvars],
        family="lapack" if params["target_name"].startswith("lapack_") else "", config=config,
        has_side_effect=params["has_side_effect"],
        aliases={result: operand for operand, result in params["input_output_aliases"]},
        api_version=params["custom_call_api_version"],
        layouts=(params["input_layouts"], params["output_layouts"]))
