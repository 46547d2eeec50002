"""The reports that few programs ask for: they load together, when the first of them is wanted."""

from __future__ import annotations

from pyjx.runtime.costs import Costs
from pyjx.runtime.explain import explain_function, report_miss

__all__ = ["Costs", "explain_function", "report_miss"]
