"""The page in a notebook."""

from __future__ import annotations

import html
import os
from collections.abc import Callable
from typing import Any

from pyjx import configuration
from pyjx.runtime.jit import jit
from pyjx.viewer.document import page


class View:
    """A page, shown in a frame by notebooks.

    Attributes:
      html: the page, as `pyjx.viewer.page` gives it.
      height: of the frame, in pixels.
    """

    __slots__ = ("height", "html")

    def __init__(self, page_html: str, height: int) -> None:
        self.html = page_html
        self.height = height

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.html)

    def _repr_html_(self) -> str:
        return (f'<iframe srcdoc="{html.escape(self.html)}" width="100%" height="{self.height}" '
                'style="border:0" title="Program" sandbox="allow-scripts"></iframe>')

    def __repr__(self) -> str:
        return f"View({len(self.html):,} characters of HTML; save(path) writes them)"


def show(fun: Callable[..., Any], *args: Any, optimised: bool = True, height: int = 720,
         **kwargs: Any) -> View:
    """The forms that a function takes for some arguments, for a notebook to show.

    Args:
      fun: a function, jitted or not.
      *args: its arguments; `jax.ShapeDtypeStruct` will do.
      optimised: whether to compile it, for the optimised HLO. That may take long.
      height: of the frame, in pixels.
      **kwargs: its arguments by name.

    >>> import pyjx as jax
    >>> view = jax.viewer.show(lambda x: x + 1, 1.0)
    >>> view.html[:15]
    '<!doctype html>'
    """
    function = fun if hasattr(fun, "trace") else jit(fun)
    traced = function.trace(*args, **kwargs)
    lowered = traced.lower()
    optimised_hlo = None
    if optimised:
        with configuration.cache(False):  # a program on disk shows where its source was then
            optimised_hlo = lowered.compile().as_text()
    return View(page(traced.fun_name, jaxpr=traced.jaxpr, hlo=optimised_hlo,
                     stablehlo=lowered.as_text(debug_info=True)), height)
