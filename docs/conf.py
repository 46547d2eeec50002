"""The documentation site: `tox -e docs`, or `sphinx-build -W docs docs/_build`."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE / "extensions")]

from pyjx.version import PYJX_VERSION  # noqa: E402

project = "pyjx"
author = "The pyjx authors"
copyright = author
version = release = PYJX_VERSION

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "api_pages",
    "example_pages",
    "viewer_page",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build"]
nitpicky = False
keep_warnings = True

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
copybutton_prompt_text = r">>> |\.\.\. ?|\$ "  # a bare one ends a compound statement
copybutton_prompt_is_regexp = True

autodoc_typehints = "none"  # the stubs have them; here they would hide the arguments
autodoc_member_order = "bysource"
napoleon_numpy_docstring = False
napoleon_use_rtype = False

html_theme = "furo"
html_title = f"pyjx {PYJX_VERSION}"
html_theme_options = {"source_directory": "docs/"}
html_copy_source = False
