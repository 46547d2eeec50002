"""The command `emit-hlo`: what a Python function becomes on its way to XLA.

A package of its own, so that `--help`, lists and errors of usage load nothing but the standard
library; `pyjx.cli.emit` does the work.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import sys
import time
from collections.abc import Sequence
from typing import NoReturn

INTERRUPTED = 130


def main(argv: Sequence[str] | None = None, *, owns_process: bool = False) -> int:
    """Run the command; the result is the exit status.

    In a process of its own, pyjx answers to the name `jax` in the user's program.
    """
    started = time.perf_counter()
    given = list(sys.argv[1:] if argv is None else argv)
    try:
        # With argparse, while a Ctrl-C is heeded already.
        arguments = importlib.import_module("emit_hlo.arguments")
        try:
            options = arguments.parse(given)
        except arguments.UsageError as error:
            sys.stderr.write(f"emit-hlo: {error}\n")
            return 2
        if isinstance(options, str) or options.listed or options.completion:
            return _print(importlib.import_module("emit_hlo.listing").text_for(options))
        if owns_process and not options.verbose:  # what XLA logs of devices that are not here
            os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
        try:
            run = importlib.import_module("pyjx.cli.emit.command").run
        except ValueError as error:  # of a variable of the environment
            sys.stderr.write(f"emit-hlo: {error}\n")
            return 2
        if owns_process:
            importlib.import_module("pyjx.jax_imports").answer_when_asked()
        return int(run(options, started))
    except KeyboardInterrupt:
        return INTERRUPTED


def _print(text: str) -> int:
    """Write to the standard output, whose reader may have gone."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except (OSError, ValueError, AttributeError):  # a broken pipe, a closed or a missing stdout
        silence_stdout()
    return 0


def silence_stdout() -> None:
    """Let what is left in the buffer go nowhere, so that it does not fail once more at the exit."""
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
    except (OSError, ValueError, AttributeError):
        sys.stdout = None


def command(argv: Sequence[str] | None = None) -> NoReturn:
    """The command as a process of its own, which ends with its status."""
    try:
        status = main(argv, owns_process=True)
    except KeyboardInterrupt:
        status = INTERRUPTED
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # all is said
    if status == INTERRUPTED:  # at once: libraries may be half loaded, and threads at work
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError, AttributeError):
                stream.flush()
        os._exit(status)
    sys.exit(status)
