"""`python -m pyjx explain NAME`: what an error or a flag is, and what to do.

    python -m pyjx.cli.help_texts  # writes the page of the flags
"""

from __future__ import annotations

import builtins
import inspect
import re
import sys
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path

import numpy as np

import pyjx
from pyjx import errors
from pyjx.states import State, states

PAGE = Path(pyjx.__file__).parent.parent / "docs" / "flags.md"

_HEAD = """\
# Flags

Every flag is set by `jax.config.update(name, value)`, and from the start by an environment
variable: its name in capitals, or what stands behind it here. Those that are a context, too, are
set by it for a part of a program and in one thread, as in `with jax.debug_nans(True):`. For a bool,
the words 1, true, yes and on say True, and 0, false, no and off False. Flags of JAX that mean
nothing here are accepted, so that programs run, and say why.

| flag | values | default | what it does |
|---|---|---|---|
"""


def _values(state: State) -> str:
    return state.kind.__name__ if isinstance(state.kind, type) else \
        ", ".join([f"`{value}`" for value in state.kind])


def page() -> str:
    """The page of the flags as Markdown, made from the flags themselves."""
    lines = []
    for name, state in sorted(states.items()):
        shown = f"`{name}`"
        if state.environ != state.flag.upper():
            shown += f" (`{state.environ}`)"
        context = name.removeprefix("jax_")
        if getattr(pyjx, context, None) is state:
            shown += f", context `jax.{context}`"
        lines.append(f"| {shown} | {_values(state)} | `{state.default!r}` | {state.help} |\n")
    return _HEAD + "".join(lines)


_CLASS = re.compile(r'^class ([A-Z]\w*)\([^\n]*(?:Error|Exception|Warning)\):\n    """(.*?)"""',
                    re.MULTILINE | re.DOTALL)


def _explanations() -> dict[str, str]:
    """What there is to say, by name."""
    found = {name: inspect.getdoc(getattr(errors, name)) or ""
             for name in errors.__all__ if name[0].isupper()}
    folder = Path(pyjx.__file__).parent
    for path in sorted({*folder.rglob("*.py")} - {*folder.glob("cli/**/*")}):
        for name, text in _CLASS.findall(path.read_text(encoding="utf-8")):
            found.setdefault(name, inspect.cleandoc(text))
    for name, state in states.items():
        found[name] = (f"{state.help}\n\nvalues: {_values(state).replace('`', '')}; default "
                       f"{state.default!r}, now {state.value!r}; environment variable "
                       f"{state.environ}")
    found["FloatingPointError"] = (
        "An operation gave a NaN, or an infinity, and `jax_debug_nans` or `jax_debug_infs` is set."
        "\n\nWays out: the message names the operation, its line and its operands: keep these "
        "where it is defined, by `jnp.where` on the operands rather than on the result. `python -m "
        "pyjx why FILE` finds it without the flags, and `jax.inspect.find(f, x)` for a function: "
        "see docs/wrong.md.")
    return found


def _of_python(name: str) -> str:
    """What there is to say of an error of Python's own, or of NumPy's; empty if there is none."""
    kind = getattr(builtins, name, getattr(np.exceptions, name, None))
    if not (isinstance(kind, type) and issubclass(kind, Exception)) or issubclass(kind, Warning):
        return ""
    owner = "NumPy" if kind.__module__ == np.exceptions.__name__ else "Python"
    return (f"An error of {owner}'s own.\n\nWays out: its message says what is wrong and what to "
            "do. JAX_TRACEBACK_FILTERING=off brings back the frames of the library.")


def _elsewhere(name: str, known: Iterable[str]) -> str:
    """Where else a name is explained, or which other ones are near to it."""
    for module in (pyjx, pyjx.numpy, pyjx.lax, pyjx.random, pyjx.nn, pyjx.experimental):
        if callable(getattr(module, name, None)):
            return f"It is explained by help({module.__name__.replace('pyjx', 'jax', 1)}.{name})."
    close = _close(name, known) or _holding(name, known)
    return f"Did you mean {' or '.join(close)}?" if close else (
        "`python -m pyjx explain` lists them.")


def _close(name: str, known: Iterable[str]) -> list[str]:
    """The names that are near to this one without the word that errors end with."""
    ends = re.compile("(error|exception|warning)$", re.IGNORECASE)
    stems = {ends.sub("", other): other for other in known}
    return [stems[stem] for stem in get_close_matches(ends.sub("", name), stems)]


def _holding(name: str, known: Iterable[str]) -> list[str]:
    """The names that hold this one, or one that is near to it, whatever is written large."""
    plain = {re.sub(r"\W|_", "", other).lower(): other for other in known}
    wanted = re.sub(r"\W|_", "", name).lower()
    found = [other for short, other in plain.items() if wanted in short]
    return found[:5] or [plain[short] for short in _close(wanted, plain)]


def main(arguments: Sequence[str]) -> int:
    """Print what is said of a name, or which names there are."""
    known = _explanations()
    if list(arguments) in ([], ["-h"], ["--help"]):
        print("usage: python -m pyjx explain NAME\n\nNAME is an error or a flag:")
        for name, text in known.items():
            print(f"  {name:52}{text.splitlines()[0]}")
        return 0
    if len(arguments) > 1:
        print(f"python -m pyjx explain: expected one name, got {' '.join(arguments)}.",
              file=sys.stderr)
        return 2
    name = arguments[0].rpartition(".")[2]
    for flag, state in states.items():
        if name in (state.environ, flag.removeprefix("jax_")) and name not in known:
            name = flag
    said = known.get(name) or _of_python(name)
    if said:
        print(f"{name}\n\n{said}")
        return 0
    print(f"python -m pyjx explain: there is no error or flag {name!r}. {_elsewhere(name, known)}",
          file=sys.stderr)
    return 2


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(PAGE)
