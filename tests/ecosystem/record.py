"""`PYJX_ORACLE_PYTHON=python-with-jax python -m tests.ecosystem.record`: what jax does."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from tests.ecosystem.test_imports import FAIL_WITH_JAX, WALK
from tests.ecosystem.test_programs import HERE, PROGRAMS, run


def write(name: str, found: dict[str, Any]) -> None:
    text = json.dumps(found, indent=1, sort_keys=True)
    (HERE / name).write_text(text + "\n", encoding="utf-8")


def main() -> None:
    """Run every program with the Python that has jax, and write what they print; and import every
    library, and write which of its modules fail."""
    python = os.environ["PYJX_ORACLE_PYTHON"]
    figures = {}
    for program in PROGRAMS:
        try:
            figures[program.stem.removeprefix("use_")] = run(program, python)
        except AssertionError as error:
            print(f"{program.stem}: {error}", file=sys.stderr)
    write("figures.json", figures)
    write("imports.json", {library: sorted(run(WALK, python, arguments=(library,)))
                           for library in FAIL_WITH_JAX})


if __name__ == "__main__":
    main()
