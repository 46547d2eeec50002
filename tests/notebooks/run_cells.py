"""Runs the cells of an example and prints, as JSON, what each code cell printed.

    python run_cells.py SOURCE [jax]

With `jax` the same text runs on that library: `pyjx` is replaced, and cells with the tag
`pyjx`, which are about pyjx alone, are left out. Those with the tag `varies` run; what they print
differs from run to run. Pictures are drawn where nobody looks.
"""

import contextlib
import importlib.util
import io
import json
import os
import re
import sys
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

NOT_COMPARED = ("pyjx", "varies")


def cells(source: str) -> list[tuple[str, str]]:
    """The code cells: what stands on the line that begins each, and its code."""
    parts = re.split(r"^# %%(.*)$\n?", source, flags=re.MULTILINE)[1:]
    return [(head, code) for head, code in zip(parts[::2], parts[1::2], strict=True)
            if "[markdown]" not in head]


def is_compared(head: str) -> bool:
    return not any(f'"{tag}"' in head for tag in NOT_COMPARED)


def main() -> None:
    path, other = Path(sys.argv[1]), sys.argv[2:] == ["jax"]
    os.environ["MPLBACKEND"] = "Agg"
    if importlib.util.find_spec("matplotlib") is None:
        for name in ("matplotlib", "matplotlib.pyplot"):
            sys.modules[name] = MagicMock()
    source = path.read_text(encoding="utf-8")
    namespace: dict[str, Any] = {"__name__": "__main__", "__file__": str(path)}
    printed = []
    for head, code in cells(source):
        if other:
            if '"pyjx"' in head:
                continue
            code = re.sub(r"\bimport pyjx as jax\b", "import jax", code)
            code = re.sub(r"\bpyjx\b", "jax", code)
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(compile(code, str(path), "exec"), namespace)
        if is_compared(head):
            printed.append(output.getvalue())
    json.dump(printed, sys.stdout)


if __name__ == "__main__":
    main()
