"""Writes the notebooks from the examples that are written in cells.

    python examples/make_notebooks.py

makes `notebooks/NAME.ipynb` of each `NAME.py` here that has cells (`# %%`), by jupytext. A notebook
has two things that its source has not: a first cell that installs pyjx where it is missing, from
the checkout around it or what the user names, and says where the notebook runs and, where setup.cfg
names the repository (`url`), a badge that opens it in Colab from there. Without one it is uploaded
to Colab.
"""

import configparser
import json
import re
import sys
from pathlib import Path

import jupytext

HERE = Path(__file__).resolve().parent
NOTEBOOKS = HERE / "notebooks"

FIRST_CELL = '''\
# Finds pyjx, or installs it beside what this runtime has: its jaxlib, NumPy and libtpu stay.
SOURCE = ""  # the folder, archive or git address of pyjx, if this notebook is in no checkout of it

import importlib.util
import subprocess
import sys
from importlib.metadata import distributions
from pathlib import Path

if importlib.util.find_spec("pyjx") is None:
    kept = {"jaxlib", "libtpu", "ml_dtypes", "numpy", "opt_einsum", "scipy"}
    here = {d.name.replace("-", "_"): d.version for d in distributions() if d.name}
    around = [str(p) for p in Path.cwd().parents if (p / "pyjx" / "__init__.py").is_file()]
    source = SOURCE or [*around, "pyjx-xla"][0]
    done = subprocess.run([sys.executable, "-m", "pip", "install", "-q", source,
                           *(f"{name}=={here[name]}" for name in sorted(kept & here.keys()))])
    if done.returncode:
        raise SystemExit(f"pip cannot install pyjx from {source!r}. Upload a checkout of it, such "
                         "as pyjx.zip, and write SOURCE = 'pyjx.zip' in this cell.")

from pyjx.tools.colab_tpu import setup_tpu

setup_tpu()'''


def repository() -> str:
    """`owner/name` of the repository on GitHub, if setup.cfg says it."""
    config = configparser.ConfigParser()
    config.read(HERE.parent / "setup.cfg")
    return config["metadata"].get("url", "").removeprefix("https://github.com/")


def badge(name: str, repository: str) -> str:
    """A link to Colab, which reads notebooks from GitHub."""
    return ("[![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)]"
            f"(https://colab.research.google.com/github/{repository}/blob/main/"
            f"examples/notebooks/{name}.ipynb)")


def sources() -> list[Path]:
    """The examples that are written in cells."""
    return [p for p in sorted(HERE.glob("*.py"))
            if re.search(r"^# %% \[markdown\]", p.read_text(encoding="utf-8"), re.MULTILINE)]


def notebook(source: Path, repository: str) -> str:
    """The text of the notebook made of an example."""
    made = jupytext.read(source, fmt="py:percent")
    title = made.cells[0]
    if repository:
        heading, _, rest = title["source"].partition("\n")
        title["source"] = f"{heading}\n\n{badge(source.stem, repository)}\n{rest}"
    cells = [title, {"cell_type": "code", "source": FIRST_CELL, "metadata": {}}, *made.cells[1:]]
    return json.dumps({
        "cells": [written(cell, number) for number, cell in enumerate(cells)],
        "metadata": {
            "accelerator": "TPU",
            "colab": {"name": f"{source.stem}.ipynb", "provenance": []},
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }, indent=1, ensure_ascii=False) + "\n"


def written(cell: dict, number: int) -> dict:
    """A cell as it is stored: without results, and with a name that does not change."""
    tags = cell["metadata"].get("tags")
    stored = {"cell_type": cell["cell_type"], "id": f"cell-{number}",
              "metadata": {"tags": tags} if tags else {},
              "source": cell["source"].splitlines(keepends=True)}
    if cell["cell_type"] == "code":
        stored |= {"execution_count": None, "outputs": []}
    return stored


def main() -> None:
    NOTEBOOKS.mkdir(exist_ok=True)
    where = repository()
    wanted = {NOTEBOOKS / f"{source.stem}.ipynb": notebook(source, where) for source in sources()}
    for path, text in wanted.items():
        path.write_text(text, encoding="utf-8")
    for path in set(NOTEBOOKS.glob("*.ipynb")) - set(wanted):
        path.unlink()
    print(f"{len(wanted)} notebooks in {NOTEBOOKS}", file=sys.stderr)


if __name__ == "__main__":
    main()
