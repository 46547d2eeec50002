"""`python -m pyjx why`: run a program, and say which operation made its first NaN."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from pyjx import configuration
from pyjx.cli import programs
from pyjx.runtime import flag_checks


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; its exit status is that of the program, which an error ends where there is one.
    """
    parser = programs.Parser(
        prog="python -m pyjx why",
        description="Run a program as `python -m pyjx` does, up to the first result of a compiled "
                    "program that has a NaN, and say which operation made it, and where.")
    parser.add_argument("--inf", action="store_true",
                        help="look for infinities, also those that a NaN comes of")
    options, program = programs.parted(parser, arguments)
    flag = configuration.debug_infs if options.inf else configuration.debug_nans
    flag.update(True)
    flag_checks.behind_nans.set_global(options.inf)
    first: list[str] = []  # what is said of the first error

    def hear(error: FloatingPointError) -> None:
        first[:] = first or [str(error), *getattr(error, "__notes__", ())]

    flag_checks.listeners.append(hear)
    try:
        status = programs.main(program)
    except SystemExit:
        if first:
            _tell("the program went on after this error:", *first)
        raise
    if first:
        _tell("the program went on after this error:", *first)
    else:
        _tell("no inf was found in a result of a compiled program, nor behind the nan of one."
              if options.inf else "no result of a compiled program had a nan.")
    return status


def _tell(*lines: str) -> None:
    print("python -m pyjx why:", "\n".join(lines), file=sys.stderr)
