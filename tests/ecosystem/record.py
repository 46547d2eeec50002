"""`PYJX_ORACLE_PYTHON=python-with-jax python -m tests.ecosystem.record`: the figures of jax."""

from __future__ import annotations

import json
import os
import sys

from tests.ecosystem.test_programs import HERE, PROGRAMS, run


def main() -> None:
    """Run every program with the Python that has jax, and write what they print."""
    python = os.environ["PYJX_ORACLE_PYTHON"]
    figures = {}
    for program in PROGRAMS:
        try:
            figures[program.stem.removeprefix("use_")] = run(program, python)
        except AssertionError as error:
            print(f"{program.stem}: {error}", file=sys.stderr)
    text = json.dumps(figures, indent=1, sort_keys=True)
    (HERE / "figures.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
