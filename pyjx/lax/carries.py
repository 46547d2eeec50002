"""Carries of loops: settling their types, and what to say if a body changes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import is_
from types import FunctionType
from typing import Any, NoReturn

import numpy as np

from pyjx.core import dtypes
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.differences import Path
from pyjx.core.primitive import vary
from pyjx.core.varying import varying_axes
from pyjx.engine.types import TreeDef, Value
from pyjx.lax.convert import convert_element_type
from pyjx.lax.differences import in_full, tree_differences, type_differences
from pyjx.runtime.signature import parameters_of
from pyjx.runtime.transfers import array_from_host
from pyjx.tree_util import keystr


def as_in_program(x: Any) -> Any:
    """A Python number, or an array of NumPy's, which a body may change, as the array that it would
    be in a program."""
    of_host = type(x) in (bool, int, float, complex) or isinstance(x, np.ndarray)
    return array_from_host(x) if of_host else x


def promote_carry(leaves: Sequence[Value], out_avals: Sequence[ShapedArray]
                  ) -> tuple[list[Value], bool]:
    """The carry with each weakly typed leaf that the body changes the type of in the dtype that the
    two promote to; and whether the body is to be traced again, for another dtype."""
    changed = False
    new = []
    for x, out in zip(leaves, out_avals, strict=True):
        aval = get_aval(x)
        if aval.weak_type and aval is not out and aval.shape == out.shape:
            dtype = dtypes.result_type(x, out)
            if dtype != aval.dtype:
                x, changed = convert_element_type(x, dtype), True
        new.append(x)
    return new, changed


def varied(leaves: Sequence[Value], out_avals: Sequence[ShapedArray]) -> list[Value] | None:
    """The carry with each leaf varying along the axes of a mesh along which the body makes it vary;
    None where it does."""
    if all([varying_axes(out) <= varying_axes(get_aval(x))
            for x, out in zip(leaves, out_avals, strict=True)]):
        return None
    return [vary(x, varying_axes(out)) for x, out in zip(leaves, out_avals, strict=True)]


def check_carry(op: str, what: str, fun: Callable[..., Any], tree: TreeDef,
                avals: Sequence[ShapedArray], out_tree: TreeDef,
                out_avals: Sequence[ShapedArray]) -> None:
    """Raise TypeError unless the body gives a carry of the type it takes.

    A body made of another one tells by `user_body()` what to speak of: the operation, the name of
    the argument, the function, which of its parameters the carry is, and how deep that lies here.
    """
    if out_tree is tree and all(map(is_, avals, out_avals)):
        return
    place = depth = 0
    if type(fun) is FunctionType and "user_body" in vars(fun):  # of a loop made into this one
        loop, what, fun, place, depth = vars(fun)["user_body"]()
        op = f"{loop}: {op}"
    parameters = parameters_of(fun)
    named = parameters is not None and len(parameters.positional) > place
    root = parameters.positional[place] if parameters and named else "carry"

    def component(path: Path) -> str:
        path = path[depth:]
        return f"carry component {root}{keystr(path)}" if path else f"carry {root}"

    if out_tree != tree:
        _raise(f"{op} body function carry input and carry output must have the same pytree "
               "structure",
               tree_differences(lambda path: f"the input {component(path)}",
                                lambda path: "the corresponding component of the carry output",
                                tree, out_tree),
               f"({what}) so that the carry output has the same pytree structure as the carry "
               "input")
    wrong = type_differences(lambda path: f"the input {component(path)}",
                             lambda path: "the corresponding output carry component",
                             tree, avals, out_avals)
    if wrong:
        _raise(f"{op} body function carry input and carry output must have equal types", wrong,
               f"({what}) so that all output types match the corresponding input types")


def _raise(what: str, differences: list[str], cure: str) -> NoReturn:
    raise TypeError(f"{what}, but they differ:\n\n{in_full(differences)}\n\nRevise the function "
                    f"{cure}.")
