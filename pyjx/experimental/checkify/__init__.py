"""Checks of values inside programs, as errors that functions return."""

from __future__ import annotations

from pyjx.lazy import attach

FAMILIES: dict[str, str] = {
    "pyjx.experimental.checkify.transformation": "checkify",
    "pyjx.experimental.checkify.checks": (
        "DivisionByZeroError Error ErrorCategory FailedCheckError JaxException JaxRuntimeError "
        "NaNError OOBError all_checks automatic_checks check check_error debug_check div_checks "
        "float_checks index_checks init_error nan_checks user_checks"),
}

__getattr__, __dir__, __all__ = attach(__name__, FAMILIES)
