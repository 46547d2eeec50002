"""Pages of the notebooks: the examples that are written in cells, as text with code."""

from __future__ import annotations

import configparser
import re
from pathlib import Path
from typing import Any

from made_pages import write
from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[2]
FOLDER = "notebooks"


def page(source: Path) -> str:
    """Markdown of an example: its text, and its code in blocks."""
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    repository = config["metadata"].get("url", "").removeprefix("https://github.com/")
    parts = re.split(r"^# %%(.*)$\n?", source.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    out = []
    for head, body in zip(parts[::2], parts[1::2], strict=True):
        if "[markdown]" in head:
            out.append("\n".join(re.sub(r"^# ?", "", s) for s in body.strip().split("\n")))
        elif body.strip():
            out.append(f"```python\n{body.strip()}\n```")
    link = "[Open it in Colab](https://colab.research.google.com/github/" \
        f"{repository}/blob/main/examples/notebooks/{source.stem}.ipynb)" if repository else \
        f"As a notebook: `examples/notebooks/{source.stem}.ipynb`, to upload to Colab or to open " \
        "in Jupyter."
    title, _, rest = out[0].partition("\n")
    return "\n\n".join([title, link, rest, *out[1:]]) + "\n"


def write_pages(app: Sphinx) -> None:
    wanted = {f"{p.stem}.md": page(p) for p in sorted((ROOT / "examples").glob("*.py"))
              if "\n# %% [markdown]" in p.read_text(encoding="utf-8")}
    write(Path(app.srcdir) / FOLDER, wanted, ".md")


def to_pages(text: str) -> str:
    """Links to notebooks, which work in a checkout, as links to the pages of the same examples.

    >>> to_pages("[tensors](../../examples/notebooks/tensors.ipynb)")
    '[tensors](../notebooks/tensors.md)'
    """
    return re.sub(r"\]\(((?:\.\./)*)\.\./examples/notebooks/(\w+)\.ipynb\)",
                  rf"](\1{FOLDER}/\2.md)", text)


def link_to_pages(_: Sphinx, __: str, source: list[str]) -> None:
    source[0] = to_pages(source[0])


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("builder-inited", write_pages)
    app.connect("source-read", link_to_pages)
    return {"parallel_read_safe": True}
