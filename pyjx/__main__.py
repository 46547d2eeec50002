"""`python -m pyjx COMMAND`: the commands of the package."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

# Each is a module with `main(arguments) -> exit status`, and what it does.
COMMANDS = {
    "doctor": ("pyjx.cli.doctor", "say what is installed, found and in use, and try it"),
    "emit-hlo": ("pyjx.cli.emit_hlo", "show what a function becomes, stage by stage"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; its exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given and given[0] in COMMANDS:
        module = importlib.import_module(COMMANDS[given[0]][0])
        return int(module.main(given[1:]) or 0)
    lines = ["usage: python -m pyjx COMMAND [ARGUMENTS]", "", "commands:"]
    lines += [f"  {name:10}{what}" for name, (_, what) in COMMANDS.items()]
    if given and given[0] in ("-h", "--help"):
        print("\n".join(lines))
        return 0
    if given:
        lines.append(f"\nthere is no command {given[0]!r}")
    print("\n".join(lines), file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
