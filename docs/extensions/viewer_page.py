"""The example page of the viewer, from the program in its documentation."""

from __future__ import annotations

import importlib.util
import re
import tempfile
from pathlib import Path

from sphinx.application import Sphinx


def write_page(app: Sphinx, error: Exception | None) -> None:
    """Write what the program's `page()` gives."""
    if error is not None or app.builder.format != "html":
        return
    text = (Path(app.srcdir) / "viewer.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n(# model\.py\n.*?)^```$", text, re.DOTALL | re.MULTILINE)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.py"
        path.write_text(code, encoding="utf-8")
        spec = importlib.util.spec_from_file_location("model", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        page = module.page()
    (Path(app.outdir) / "viewer-example.html").write_text(page, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("build-finished", write_page)
    return {"parallel_read_safe": True}
