"""The op table: samples for each primitive, which every parametrised test of operations uses."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from typing import Any, NamedTuple


class Sample(NamedTuple):
    """One use of a primitive.

    `fun` takes `args` (NumPy arrays or scalars) and returns an array or a tuple of arrays;
    `reference` does the same with NumPy or SciPy. `diff` says with respect to which arguments the
    derivatives are checked: all inexact ones, none, or those named by position.
    """

    primitive: str
    fun: Callable[..., Any]
    args: tuple[Any, ...]
    reference: Callable[..., Any] | None = None
    diff: bool | tuple[int, ...] = True
    rtol: float | None = None
    atol: float | None = None
    id: str = ""


def families() -> list[list[Sample]]:
    """The samples of each family, in the order of the files' names."""
    import tests.ops

    return [list(importlib.import_module(f"tests.ops.{info.name}").SAMPLES)
            for info in pkgutil.iter_modules(tests.ops.__path__)]


def all_samples() -> list[Sample]:
    return [sample for family in families() for sample in family]
