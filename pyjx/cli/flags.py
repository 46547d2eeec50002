"""Writes the page of the flags.

    python -m pyjx.cli.flags
"""

from __future__ import annotations

from pathlib import Path

import pyjx
from pyjx.states import states

PAGE = Path(pyjx.__file__).parent.parent / "docs" / "flags.md"

_HEAD = """\
# Flags

Every flag is set by `jax.config.update(name, value)`, by the environment variable of its name in
capitals, and most of them for a part of a program by a context, such as `jax.debug_nans(True)`.
Flags of JAX that mean nothing here are accepted, so that programs run, and say why.

| flag | values | default | what it does |
|---|---|---|---|
"""


def page() -> str:
    """The page as Markdown, made from the flags themselves."""
    lines = []
    for name, state in sorted(states.items()):
        kind = state.kind.__name__ if isinstance(state.kind, type) else \
            ", ".join([f"`{value}`" for value in state.kind])
        name = f"`{name}`"
        if state.environ != state.flag.upper():
            name += f" (`{state.environ}`)"
        lines.append(f"| {name} | {kind} | `{state.default!r}` | {state.help} |\n")
    return _HEAD + "".join(lines)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(PAGE)
