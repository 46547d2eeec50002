"""Functions that are compared, vectorized and shown in tracebacks, and pytrees that are taken
apart, as libraries ask for it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import wraps
from types import FrameType
from typing import Any, NamedTuple, TypeVar

from pyjx.core import frames
from pyjx.core.records import Alike
from pyjx.engine.functions import with_at
from pyjx.engine.types import TreeDef
from pyjx.guards import guard
from pyjx.jaxlib_api import pytree
from pyjx.jaxlib_pytrees import treedef_of
from pyjx.lax.common import broadcast_shapes
from pyjx.numpy.vectorization import Names, checked, core_sizes
from pyjx.tree_util import flatten_one_level, is_tree_node, tree_flatten, tree_structure

# -- callables -------------------------------------------------------------------------------------

_F = TypeVar("_F", bound=Callable[..., Any])
Out = TypeVar("Out")


class HashablePartial(Alike):
    """A partial application that equals those of the same function and arguments.

    >>> HashablePartial(lambda x, y: x + y, 1)(2)
    3
    """

    def __init__(self, f: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        self.f, self.args, self.kwargs = f, args, kwargs

    @property
    def _key(self) -> tuple[Any, ...]:
        return self.f.__code__, self.args, tuple(self.kwargs.items())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.f(*self.args, *args, **self.kwargs, **kwargs)


def api_boundary(fun: _F, **options: Any) -> _F:
    """Let exceptions that leave a function show the user's frames only."""
    @guard
    def boundary(*args: Any, **kwargs: Any) -> Any:
        return fun(*args, **kwargs)

    return wraps(fun)(boundary)  # type: ignore[return-value]


def include_frame(frame: FrameType) -> bool:
    """Whether a frame is the user's."""
    return not frames.is_internal(frame.f_code.co_filename)


def _apply_excluded(func: Callable[..., Any], excluded: Collection[int | str],
                    args: Sequence[Any], kwargs: dict[str, Any]
                    ) -> tuple[Callable[..., Any], Sequence[Any], dict[str, Any]]:
    """A function of the arguments that are not excluded, and these.

    >>> fun, args, kwargs = _apply_excluded(lambda x, n, *, y: x * n + y, {1}, (3, 2), {"y": 1})
    >>> args, kwargs, fun(*args, **kwargs)
    ([3], {'y': 1}, 7)
    """
    mapped = [i for i in range(len(args)) if i not in excluded]
    fixed = {name: x for name, x in kwargs.items() if name in excluded}

    def applied(*values: Any, **others: Any) -> Any:
        return func(*with_at(args, mapped, values), **fixed, **others)

    rest = {name: x for name, x in kwargs.items() if name not in excluded}
    return applied, [args[i] for i in mapped], rest


def _check_output_dims(func: Callable[..., Any], dim_sizes: dict[str, int],
                       expected_output_core_dims: list[Names], error_context: str = ""
                       ) -> Callable[..., Any]:
    """The function, whose results must have the axes that the signature says."""
    return checked(func, expected_output_core_dims, dim_sizes, lambda: error_context)


def _parse_input_dimensions(args: Sequence[Any], input_core_dims: list[Names],
                            error_context: str = "") -> tuple[tuple[int, ...], dict[str, int]]:
    """The shape of the axes that are mapped, and the sizes of those that have names.

    >>> import numpy as np
    >>> _parse_input_dimensions((np.ones((4, 2)), np.ones((3, 1, 2))), [("n",), ("n",)])
    ((3, 4), {'n': 2})
    """
    sizes = core_sizes(args, input_core_dims, lambda: error_context)
    outer = [x.shape[:len(x.shape) - len(names)]
             for x, names in zip(args, input_core_dims, strict=True)]
    return broadcast_shapes(*outer), sizes


# -- pytrees ---------------------------------------------------------------------------------------


default_registry = pytree.default_registry()
none_leaf_registry = default_registry


class _RegistryEntry(NamedTuple):
    """How an object of one type is taken apart into children and what else it holds, and made."""

    to_iter: Callable[[Any], tuple[Iterable[Any], Any]]
    from_iter: Callable[[Any, Iterable[Any]], Any]


class Nodes:
    """The types that are nodes of trees."""

    def __contains__(self, kind: type) -> bool:
        return is_tree_node(kind)

    def __getitem__(self, kind: type) -> Any:
        entry = self.get(kind)
        if entry is None:
            raise KeyError(kind)
        return entry

    def get(self, kind: type, default: object = None) -> Any:
        if kind not in self:
            return default

        def from_iter(rest: Any, children: Iterable[Any]) -> Any:
            leaves = [*children]
            structures = [tree_structure(0)] * len(leaves)
            return treedef_of(default_registry, (kind, rest), structures).unflatten(leaves)

        return _RegistryEntry(flatten_one_level, from_iter)


_registry = Nodes()


class FlatTree:
    """The leaves of a pytree, and its structure.

    >>> pair = pack((nones(2), nones(1)))
    >>> [group.vals for group in pair.update("abc").unpack()]
    [('a', 'b'), ('c',)]
    """

    __slots__ = ("tree", "vals")

    def __init__(self, vals: Sequence[Any], tree: TreeDef) -> None:
        self.vals = tuple(vals)
        self.tree = tree
        if len(self.vals) != tree.num_leaves:
            raise ValueError(f"FlatTree: {len(self.vals)} leaves for a tree of {tree.num_leaves}.")

    def update(self, new_vals: Sequence[Any]) -> FlatTree:
        """The same tree with other leaves."""
        return FlatTree(tuple(new_vals), self.tree)

    def unflatten(self) -> Any:
        """The pytree itself."""
        return self.tree.unflatten(self.vals)

    def unpack(self) -> tuple[FlatTree, ...]:
        """The trees of the children of the root."""
        rest = iter(self.vals)
        return tuple([FlatTree([next(rest) for _ in range(child.num_leaves)], child)
                      for child in self.tree.children()])

    def __len__(self) -> int:
        return len(self.vals)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.vals)

    def __repr__(self) -> str:
        return repr(self.unflatten())


def flatten(tree: Any) -> FlatTree:
    """A pytree as its leaves and its structure."""
    return FlatTree(*tree_flatten(tree))


def nones(n: int) -> FlatTree:
    """A tuple of `n` leaves that tell nothing."""
    return FlatTree((None,) * n, tree_structure((0,) * n))


def pack(trees: Sequence[FlatTree]) -> FlatTree:
    """The tuple of some trees."""
    vals = [x for t in trees for x in t.vals]
    return FlatTree(vals, tree_structure(tuple([t.tree.unflatten((0,) * len(t)) for t in trees])))
