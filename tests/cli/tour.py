"""Runs the commands of docs/emit-hlo.md: `python -m tests.cli.tour` writes their output anew.

A block ```` ```console ```` holds commands, each behind a `$`, and what they print. In one marked
`console varies` the output depends on the version of XLA or on the machine. A block of Python that
begins with `# NAME.py` is a file.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import sys
import tempfile
from pathlib import Path

import emit_hlo
from pyjx.core import frames

PAGE = Path(__file__).parents[2] / "docs" / "emit-hlo.md"
BLOCKS = re.compile(r"^```(python|console(?: varies)?)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def commands(block: str) -> list[str]:
    """The command lines of a block."""
    return re.findall(r"^\$ (.*)$", block, re.MULTILINE)


def run(command: str) -> str:
    """What a command prints, its messages last, and its exit status where it is not 0."""
    program, *arguments = shlex.split(command)
    if program == "cat":
        return Path(arguments[0]).read_text(encoding="utf-8")
    assert program == "emit-hlo", command
    out, err, path = io.StringIO(), io.StringIO(), list(sys.path)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = emit_hlo.main(arguments)
    finally:
        sys.path[:] = path
        for name in [n for n, m in sys.modules.items()
                     if (getattr(m, "__file__", None) or "").startswith(os.getcwd())]:
            del sys.modules[name]
    text = out.getvalue() + err.getvalue()
    return text + (f"(exit status {status})\n" if status else "")


def made(page: str) -> str:
    """The page with the output that its commands have now."""

    def block(match: re.Match[str]) -> str:
        kind, text = match[1], match[2]
        if kind == "python":
            name = re.match(r"# (\w+\.py)\n", text)
            if name is not None:
                Path(name[1]).write_text(text, encoding="utf-8")
            return match[0]
        shown = "\n".join([f"$ {c}\n{run(c)}" for c in commands(text)])
        return f"```{kind}\n{shown}```"

    return BLOCKS.sub(block, page)


def varying(page: str) -> str:
    """A page without the output that varies."""
    return re.sub(r"^(```console varies\n)(.*?)^```$", lambda m: m[1] + "\n".join(commands(m[2])),
                  page, flags=re.DOTALL | re.MULTILINE)


if __name__ == "__main__":
    frames.register_exclusion(__file__)
    text = PAGE.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        new = made(text)
    PAGE.write_text(new.replace(f"{folder}/", ""), encoding="utf-8")
