"""`python -m pyjx COMMAND`: the commands of the package; `python -m pyjx FILE` runs a program."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from importlib import metadata

from pyjx.lazy import deferred
from pyjx.version import PYJX_VERSION

emit_hlo = deferred("emit_hlo")
programs = deferred("pyjx.cli.programs")

# Each is a function `arguments -> exit status` of a module, and what it does.
COMMANDS = {
    "doctor": ("pyjx.cli.doctor:main", "say what is installed, found and in use, and try it"),
    "explain": ("pyjx.cli.help_texts:main", "say what an error or a flag is, and what to do"),
    "report": ("pyjx.cli.report:main", "run a program, and tell where its time went"),
    "why": ("pyjx.cli.why:main", "run a program, and say which operation made its first NaN"),
    "emit-hlo": ("emit_hlo:command", "show what a function becomes, stage by stage"),
    "install-alias": ("pyjx.cli.alias_files:install",
                      "let `import jax` give pyjx wherever PYJX_AS_JAX=1 is set"),
    "uninstall-alias": ("pyjx.cli.alias_files:uninstall", "undo install-alias"),
}
PROGRAMS = {
    "FILE": "run a program that imports jax",
    "-m MODULE": "run a module in the same way",
    "-c CODE": "run code in the same way",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command or a program; its exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given and given[0] not in COMMANDS and programs.is_program(given):
        return int(programs.main(given))
    try:
        status = _command(given)
        if not getattr(sys.stdout, "closed", True):  # by the program that a report is of
            print(end="", flush=True)
    except BrokenPipeError:  # `python -m pyjx doctor | head` is as it should be
        emit_hlo.silence_stdout()
        return 0
    return status


def _command(given: list[str]) -> int:
    if given and given[0] in COMMANDS:
        module, _, function = COMMANDS[given[0]][0].partition(":")
        return int(getattr(importlib.import_module(module), function)(given[1:]) or 0)
    if given in (["--version"], ["-V"]):
        print(f"pyjx {PYJX_VERSION}, jaxlib {metadata.version('jaxlib')}, "
              f"Python {sys.version.split()[0]}")
        return 0
    lines = ["usage: python -m pyjx COMMAND|FILE|-m MODULE|-c CODE [ARGUMENTS]", "", "commands:"]
    lines += [f"  {name:16}{what}" for name, (_, what) in COMMANDS.items()]
    lines += ["programs, which find pyjx when they import jax:"]
    lines += [f"  {name:16}{what}" for name, what in PROGRAMS.items()]
    lines += ["options:", "  -V, --version   versions of pyjx, jaxlib and Python"]
    if given and given[0] in ("-h", "--help"):
        print("\n".join(lines))
        return 0
    if given:
        close = get_close_matches(given[0], COMMANDS)
        lines = [f"python -m pyjx: there is no command {given[0]!r}, and no file of that name. "
                 + (f"Did you mean {' or '.join(close)}?" if close else
                    "`python -m pyjx --help` lists the commands.")]
    print("\n".join(lines), file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
