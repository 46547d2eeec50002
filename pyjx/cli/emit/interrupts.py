"""Work in C++ that a Ctrl-C ends at once."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from typing import Any

import emit_hlo
from pyjx.cli.emit.files import clean_up


def interruptible(work: Callable[[], Any]) -> Any:
    """The result of `work`, which a Ctrl-C ends together with the process.

    XLA compiles without returning to Python, so no handler of Python's would run in its thread;
    this one waits for another thread that does the work.
    """
    if threading.current_thread() is not threading.main_thread():
        return work()
    results: list[Any] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(0.2)
    except KeyboardInterrupt:
        leave(emit_hlo.INTERRUPTED)
    if errors:
        raise errors[0]
    return results[0]


def leave(status: int) -> None:
    """End the process without waiting for threads."""
    clean_up()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            continue
    os._exit(status)
