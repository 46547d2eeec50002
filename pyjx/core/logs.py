"""Messages for the standard library's loggers, which cost nothing where nobody has loaded them."""

from __future__ import annotations

import sys

DEBUG, WARNING = 10, 30  # the levels of the standard library


def log(logger: str, level: int, message: str) -> None:
    """Log a message; one for debugging only where the program has loaded `logging`.

    >>> log("pyjx.example", DEBUG, "not seen")
    """
    if level >= WARNING or "logging" in sys.modules:
        import logging  # slow to load, and seldom wanted

        logging.getLogger(logger).log(level, "%s", message)
