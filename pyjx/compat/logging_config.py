"""`jax._src.logging_config`: which messages are shown, by the flags that say so."""

from __future__ import annotations

from pyjx.configuration import config

__all__ = ["update_debug_log_modules", "update_logging_level_global"]


def update_logging_level_global(logging_level: str | None) -> None:
    """The level of all loggers: the flag `jax_logging_level`."""
    config.update("jax_logging_level", logging_level)


def update_debug_log_modules(module_names_str: str | None) -> None:
    """The modules whose messages for debugging are shown: the flag `jax_debug_log_modules`."""
    config.update("jax_debug_log_modules", module_names_str or "")
