"""`jax._src.lazy_loader`: modules of a package that load when they are used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyjx import lazy

__all__ = ["attach"]


def attach(package_name: str, submodules: Sequence[str]
           ) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a package, for modules of it.

    >>> find, _, names = attach("pyjx", ["nn"])
    >>> find("nn").__name__, names
    ('pyjx.nn', ['nn'])
    """
    return lazy.attach(package_name, {}, " ".join(submodules))
