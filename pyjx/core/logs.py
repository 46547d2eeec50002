"""Messages for the standard library's loggers, which cost nothing where nobody has loaded them."""

from __future__ import annotations

import sys
from typing import Any

from pyjx.lazy import deferred

logging = deferred("logging")  # slow to load, and seldom wanted

DEBUG, WARNING, ERROR = 10, 30, 40  # the levels of the standard library


def log(logger: str, level: int, message: str, error: BaseException | None = None) -> None:
    """Log a message; one for debugging only where the program has loaded `logging`. With an `error`
    its traceback is shown, too.

    >>> log("pyjx.example", DEBUG, "not seen")
    """
    if level >= WARNING or "logging" in sys.modules:
        _logger(logger).log(level, "%s", message, exc_info=error)


def debugs(logger: str) -> bool:
    """Whether anybody could see a message for debugging.

    >>> debugs("pyjx.example")
    False
    """
    return "logging" in sys.modules and _logger(logger).isEnabledFor(DEBUG)


def heard(logger: str) -> bool:
    """Whether the program handles messages; if not, Python prints those that tell of errors.

    >>> import logging
    >>> logging.getLogger("pyjx.example").addHandler(logging.NullHandler())
    >>> heard("pyjx.example")
    True
    """
    return "logging" in sys.modules and bool(_logger(logger).hasHandlers())


def _logger(name: str) -> Any:
    return logging.getLogger(name)
