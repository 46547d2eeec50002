# Written by `python -m pyjx.cli.stubs` from the table of pyjx.extend.lowering.

from pyjx.compat.mlir_values import LoweringRuleContext as LoweringRuleContext
from pyjx.extend.bindings import JaxIrContext as JaxIrContext
from pyjx.extend.bindings import upstream_dialects as upstream_dialects

__all__ = [
    "LoweringRuleContext",
    "JaxIrContext",
    "upstream_dialects",
]
