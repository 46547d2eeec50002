"""Colours for terminals, by rich where it is installed."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

_PATTERNS = {
    "comment": r"^\s*(//|;|#).*$",
    "string": r"\"[^\"\n]*\"",
    "value": r"%[\w.$-]+(#\d+)?",
    "type": r"\b(tensor<[^>\n]*>?>|(f|bf|i|u|c|s|pred)\d*\[[\d,A-Za-z*+-]*\](\{[\d,]*\})?)",
    "operation": r"\b(stablehlo|chlo|sdy|func)\.\w+|(?<= = )[a-z_]\w*(?=[ \[(])",
    "symbol": r"@[\w.$]+",
    "added": r"^\+.*$",
    "removed": r"^-.*$",
}
_STYLES = {"comment": "dim", "string": "green", "value": "cyan", "type": "yellow",
           "operation": "bold blue", "symbol": "magenta", "added": "green", "removed": "red"}


def wanted(color: str, stream: Any) -> bool:
    """Whether text for a stream is coloured."""
    if color != "auto":
        return color == "always"
    try:
        return stream.isatty() and "NO_COLOR" not in os.environ and os.environ.get(
            "TERM") != "dumb"
    except (ValueError, AttributeError):
        return False


def colored(text: str, kinds: tuple[str, ...]) -> str:
    """The text with the colours of a terminal; as it is where rich is not installed."""
    try:
        rich_text = importlib.import_module("rich.text")
        console = importlib.import_module("rich.console")
    except ImportError:
        return text
    made = rich_text.Text(text)
    for kind in kinds:
        made.highlight_regex(f"(?m){_PATTERNS[kind]}", _STYLES[kind])
    terminal = console.Console(force_terminal=True, color_system="standard", highlight=False,
                               soft_wrap=True, file=sys.stdout)
    with terminal.capture() as capture:
        terminal.print(made, end="")
    return str(capture.get())


PROGRAM = ("operation", "type", "value", "symbol", "string", "comment")
DIFF = ("removed", "added")
