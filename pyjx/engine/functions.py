"""Functions as users give them: their names, and how they become functions of leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NoReturn

from pyjx.core.avals import get_aval, is_valid_value
from pyjx.core.unwrapping import transformations, users_function, users_place
from pyjx.core.value_texts import array_cure, as_pytree, shortened
from pyjx.engine.types import TreeDef, Values
from pyjx.errors import as_field
from pyjx.jaxlib_api import pytree
from pyjx.jaxlib_pytrees import treedef_of
from pyjx.tree_util import (
    FlattenedIndexKey,
    default_registry,
    tree_flatten_with_path,
    tree_structure,
    tree_unflatten,
)

flatten = pytree.default_registry().flatten


def name_of(fun: Callable[..., Any]) -> str:
    """The name of a function, of what a partial without a name wraps, or of an object's class."""
    while isinstance(fun, partial) and not hasattr(fun, "__name__"):
        fun = fun.func
    return str(getattr(fun, "__name__", None) or type(fun).__name__)


def source_of(fun: Callable[..., Any]) -> str:
    """`name at file:line`, for messages; the name alone of a function of this package."""
    place = users_place(fun)
    return f"{name_of(fun)} at {place}" if place else name_of(fun)


def of_transformation(fun: Callable[..., Any]) -> tuple[str, str]:
    """What made `fun` of the user's function, and the source of that: `vmap of `, `loss at
    file:line`. The first is empty where nothing did, and where the function is not the user's."""
    made = "".join([f"{name} of " for name in transformations(fun)])
    return made, source_of(users_function(fun) or fun)


def check_values(values: Sequence[Any], what: str = "") -> None:
    """Raise TypeError, or ValueError as `get_aval` does, unless each of `values` can be traced.
    `what` is said of tangents and the like, which no function has from elsewhere."""
    for x in values:
        if not is_valid_value(x):
            if what:
                raise TypeError(f"Argument {shortened(x)} of type {type(x)} is not a valid JAX "
                                f"type. It is one of the {what}. {array_cure(x)}".rstrip())
            get_aval(x)


def raise_bad_result(of: str, tree: TreeDef, outs: Sequence[Any]) -> NoReturn:
    """Say which result of a function is no array; `of` says which function that is."""
    i = next(i for i, x in enumerate(outs) if not is_valid_value(x))
    path = leaf_paths(tree)[i]
    others = "" if type(outs[i]).__module__.startswith("pyjx.") else as_pytree(outs[i])
    raise TypeError(f"{of} returned a value of type "
                    f"{type(outs[i])}{f' at output component {path}' if path else ''}, which is "
                    f"not a valid JAX type. Return arrays, alone or in containers.{others}"
                    + as_field(path))


_LEAF = tree_structure(0)


def leaf_paths(tree: TreeDef) -> list[str]:
    """Where each leaf is in its tree, such as `['w'][0]`.

    Only a node knows what its children are called, so one is made, of numbers. Where a class of the
    user's can not be made of numbers, or takes them for other children, these have positions.
    """
    whole = _keys(tree)
    if whole is not None:
        return whole
    return [key + path for key, child in zip(child_keys(tree), tree.children(), strict=True)
            for path in leaf_paths(child)]


def child_keys(tree: TreeDef) -> list[str]:
    """What a node calls its children, such as `.w`; positions as in `leaf_paths`."""
    n = len(tree.children())
    return _keys(treedef_of(default_registry, tree.node_data(), [_LEAF] * n)) or \
        [f"[{i}]" for i in range(n)]


def _keys(tree: TreeDef) -> list[str] | None:
    """As `leaf_paths`; None if a node refuses."""
    numbers = list(range(tree.num_leaves))
    try:
        found = tree_flatten_with_path(tree_unflatten(tree, numbers))[0]
    except Exception:  # whatever a class of the user's raises
        return None
    if [x if type(x) is int else None for _, x in found] != numbers:
        return None
    return ["".join([f"[{k.key}]" if type(k) is FlattenedIndexKey else str(k) for k in path])
            for path, _ in found]


def tree_text(value: Any) -> str:
    """A pytree for messages: of arrays their types alone."""
    leaves, tree = flatten(value)
    shown = [get_aval(x).str_short() if hasattr(x, "dtype") else repr(x) for x in leaves]
    return str(tree.unflatten(map(_Shown, shown)))


def short_types(tree: TreeDef, avals: Sequence[Any]) -> str:
    """A pytree of types for messages; `*` stands for one that is not known."""
    return str(tree.unflatten([_Shown(getattr(a, "str_short", lambda: "*")()) for a in avals]))


class _Shown(str):
    """A text without quotes."""

    __slots__ = ()

    __repr__ = str.__str__


class FlatFun:
    """A function of pytrees as a function of the leaves of its arguments.

    Args:
      fun: takes the arguments, whose structure (that of their tuple) is `in_tree`.
      has_aux: `fun` returns a pair of its output and of data that is passed on as it is.
      of: the user's function, where `fun` is one that calls it.

    Attributes:
      out_tree: the structure of the output of the latest call; None before the first.
      aux, aux_tree: leaves and structure of the auxiliary data. Engines replace leaves that they
        traced in place.
    """

    __slots__ = ("aux", "aux_tree", "fun", "has_aux", "in_tree", "of", "out_tree")

    def __init__(self, fun: Callable[..., Any], in_tree: TreeDef, has_aux: bool = False,
                 of: Callable[..., Any] | None = None) -> None:
        self.fun = fun
        self.of = fun if of is None else of
        self.in_tree = in_tree
        self.has_aux = has_aux
        self.out_tree: Any = None  # a structure, once it is traced
        self.aux: list[Any] = []
        self.aux_tree: Any = None

    @property
    def __name__(self) -> str:
        return name_of(self.of)

    def __call__(self, *leaves: Any) -> list[Any]:
        result = self.fun(*self.in_tree.unflatten(leaves))
        if self.has_aux:
            result = self._without_aux(result)
        outs, self.out_tree = flatten(result)
        self.check(outs)
        return outs  # type: ignore[no-any-return]

    def check(self, outs: list[Any]) -> None:
        """Raise TypeError unless the leaves of the output, whose tree is known, can be traced."""
        if not all(map(is_valid_value, outs)):
            raise_bad_result(f"function {source_of(self.of)}", self.out_tree, outs)

    def _without_aux(self, result: Any) -> Any:
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            raise TypeError(
                "expected function with aux output to return a two-element tuple, but got type "
                f"{tree_text(result)}. With has_aux=True, {source_of(self.of)} must return a pair "
                "of its value and of the auxiliary data.")
        self.aux[:], self.aux_tree = flatten(result[1])
        return result[0]

    def unflatten(self, outs: Values) -> Any:
        """What the user gets for these leaves of the output, with the auxiliary data if any."""
        out = self.out_tree.unflatten(outs)
        return (out, self.aux_tree.unflatten(self.aux)) if self.has_aux else out

    def with_derivative(self, outs: Values, derivative: Any) -> Any:
        """As `unflatten`, with a derivative behind the output."""
        aux = (self.aux_tree.unflatten(self.aux),) if self.has_aux else ()
        return self.out_tree.unflatten(outs), derivative, *aux


def with_at(args: Sequence[Any], places: Iterable[int], values: Sequence[Any]) -> list[Any]:
    """The arguments with these values at some places."""
    every = list(args)
    for i, x in zip(places, values, strict=True):
        every[i] = x
    return every


def made_in(fun: Callable[..., Any], how: str) -> str:
    """The sentence of error messages on a value that was made while `fun` ran; empty if that is no
    function of the user's. `how` says what was done with it, such as `mapped by vmap`."""
    if not isinstance(fun, FlatFun):
        return ""
    return f"\nThe value was made in the function {source_of(fun.of)}, which was {how}."
