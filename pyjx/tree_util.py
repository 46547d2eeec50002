"""Pytrees: nested containers of leaves, flattened and rebuilt by jaxlib's C++ registry.

Tuples, named tuples, lists, dicts (keys in sorted order), None (no leaves), OrderedDict and
defaultdict are nodes; every object of another type is a leaf, unless its type is registered here.
"""

from __future__ import annotations

import copyreg
import functools
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from operator import methodcaller
from typing import Any, TypeAlias, TypeVar

from pyjx import jaxlib_pytrees
from pyjx.interning import missing
from pyjx.jaxlib_api import pytree
from pyjx.lazy import deferred, directory

dataclasses = deferred("dataclasses")  # loads inspect

PyTreeDef = jaxlib_pytrees.PyTreeDef
PyTree: TypeAlias = Any  # a leaf, or a container of them
PyTreeRegistry = pytree.PyTreeRegistry
DictKey = pytree.DictKey
SequenceKey = pytree.SequenceKey
GetAttrKey = pytree.GetAttrKey
FlattenedIndexKey = pytree.FlattenedIndexKey

KeyEntry = TypeVar("KeyEntry", bound=Hashable)
KeyPath = tuple[KeyEntry, ...]
IsLeaf = Callable[[Any], bool] | None
_Class = TypeVar("_Class", bound=type)

default_registry = pytree.default_registry()
default_registry.__module__ = __name__  # so that a PyTreeDef is pickled with its registry's name
default_registry.__name__ = "default_registry"
_flatten = default_registry.flatten
_one_level_with_keys = functools.partial(jaxlib_pytrees.one_level_with_keys, default_registry)
# Functions that are pickled by value, as cloudpickle does with those of scripts, read such methods.
copyreg.pickle(type(_flatten), lambda method: (getattr, (method.__self__, method.__name__)))


# Flattening and mapping


def tree_flatten(tree: PyTree, is_leaf: IsLeaf = None) -> tuple[list[Any], PyTreeDef]:
    """The leaves of a tree and its structure.

    Args:
      tree: the tree.
      is_leaf: asked of every node; where it is true the node counts as a leaf.

    Returns:
      The list of leaves, and the `PyTreeDef` from which `tree_unflatten` rebuilds the tree.

    >>> from pyjx import tree_util
    >>> tree_util.tree_flatten({"b": 1, "a": (2, None)})
    ([2, 1], PyTreeDef({'a': (*, None), 'b': *}))
    """
    return _flatten(tree, is_leaf)


def tree_unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> Any:
    """The tree of the given structure with the given leaves, the inverse of `tree_flatten`.

    Raises:
      ValueError: the number of leaves is not that of the structure.
    """
    try:
        return treedef.unflatten(leaves)
    except AttributeError:
        if hasattr(treedef, "unflatten"):
            raise
        raise TypeError("tree_unflatten takes the structure first, then the leaves; got "
                        f"{type(treedef).__name__} and {type(leaves).__name__}.") from None


def tree_leaves(tree: PyTree, is_leaf: IsLeaf = None) -> list[Any]:
    """The leaves of a tree, in the order of `tree_flatten`.

    >>> from pyjx import tree_util
    >>> tree_util.tree_leaves([1, (2, {"x": 3})])
    [1, 2, 3]
    """
    return _flatten(tree, is_leaf)[0]


def tree_structure(tree: PyTree, is_leaf: IsLeaf = None) -> PyTreeDef:
    """The structure of a tree: a `PyTreeDef`, which can be compared, hashed and unflattened."""
    return _flatten(tree, is_leaf)[1]


def tree_map(f: Callable[..., Any], tree: PyTree, *rest: Any, is_leaf: IsLeaf = None) -> Any:
    """Applies `f` to the leaves of `tree`; the result has the structure of `tree`.

    Args:
      f: called with one leaf of `tree` and, for each tree of `rest`, what is at the same place.
      tree: decides the structure.
      *rest: trees that have the structure of `tree` or, deeper down, more of it.
      is_leaf: see `tree_flatten`.

    Raises:
      ValueError: a tree of `rest` has another structure; the message names the place.

    >>> from pyjx import tree_util
    >>> tree_util.tree_map(lambda x, y: x + y, {"a": 1, "b": [2]}, {"a": 10, "b": [20]})
    {'a': 11, 'b': [22]}
    """
    leaves, treedef = _flatten(tree, is_leaf)
    left = iter(leaves)  # errors are told by which leaf it was: `core/advice.py` reads that here
    if not rest:
        return treedef.unflatten([f(x) for x in left])
    columns = [_subtrees("tree_map tree", treedef, tree, other, is_leaf, i)
               for i, other in enumerate(rest)]
    return treedef.unflatten([f(*xs) for xs in zip(left, *columns, strict=True)])


def of_each_leaf(f: Callable[..., Any], of: str, tree: PyTree, leaves: list[Any],
                 *columns: Iterable[Any]) -> list[Any]:
    """`f` of each leaf of a tree and what is at its place in the columns. Errors tell which leaf it
    was of the tree, which the function that the user called calls `of`."""
    left = iter(leaves)
    return [f(*xs) for xs in zip(left, *columns, strict=True)]


def _subtrees(name: str, treedef: PyTreeDef, tree: PyTree, other: PyTree, is_leaf: IsLeaf,
              i: int | None = None) -> list[Any]:
    """What another tree, `rest[i]` if that is given, has at the places of the leaves of one."""
    try:
        return treedef.flatten_up_to(other)
    except ValueError:
        for make_error in prefix_errors(tree, other, is_leaf):
            where = "" if i is None else f"\nThe full tree is rest[{i}]."
            if _is_rebuilt(tree, other):
                where += ("\nIf its leaves come in this order, they are of this structure by "
                          "jax.tree.unflatten(jax.tree.structure(tree), jax.tree.leaves(other)).")
            as_leaf = "leaves; is_leaf=lambda x: x is None makes it a leaf."
            raise ValueError(str(make_error(name)).replace("leaves.", as_leaf) + where) from None
        raise


def tree_reduce(function: Callable[[Any, Any], Any], tree: PyTree, initializer: Any = missing,
                is_leaf: IsLeaf = None) -> Any:
    """`functools.reduce` over the leaves of a tree.

    >>> from pyjx import tree_util
    >>> tree_util.tree_reduce(lambda total, x: total + x, {"a": 1, "b": [2, 3]}, 10)
    16
    """
    leaves = tree_leaves(tree, is_leaf)
    if initializer is not missing:
        return functools.reduce(function, leaves, initializer)
    if not leaves:
        raise TypeError("reduce() of empty iterable with no initial value: the tree has no leaves. "
                        "Give tree_reduce an initializer.")
    return functools.reduce(function, leaves)


def tree_reduce_associative(operation: Callable[[Any, Any], Any], tree: PyTree, *,
                            identity: Any = missing, is_leaf: IsLeaf = None) -> Any:
    """Combines the leaves of a tree by an associative operation, as a balanced binary tree.

    The depth is the logarithm of the number of leaves, so that operations can run in parallel and
    rounding errors of a sum grow slowly.

    Args:
      operation: associative function of two values.
      tree: the tree.
      identity: the result for a tree without leaves.
      is_leaf: see `tree_flatten`.

    Raises:
      TypeError: there are no leaves and no identity.

    >>> from pyjx import tree_util
    >>> tree_util.tree_reduce_associative(lambda a, b: f"({a}{b})", list("abcd"))
    '((ab)(cd))'
    """
    leaves = tree_leaves(tree, is_leaf)
    if not leaves:
        if identity is missing:
            raise TypeError("tree_reduce_associative: the tree has no leaves, so identity must "
                            "be specified.")
        return identity

    def combine(values: list[Any]) -> Any:
        if len(values) == 1:
            return values[0]
        half = len(values) // 2
        return operation(combine(values[:half]), combine(values[half:]))

    return combine(leaves)


def tree_all(tree: PyTree, *, is_leaf: IsLeaf = None) -> bool:
    """Whether all leaves are true.

    >>> from pyjx import tree_util
    >>> tree_util.tree_all({"a": True, "b": [1, 0]})
    False
    """
    return all(tree_leaves(tree, is_leaf))


def all_leaves(iterable: Iterable[Any], is_leaf: IsLeaf = None) -> bool:
    """Whether every item is itself a leaf.

    >>> from pyjx import tree_util
    >>> [tree_util.all_leaves(leaves) for leaves in ([1, "x"], [1, None], [1, [2]])]
    [True, False, False]
    """
    if is_leaf is None:
        return bool(jaxlib_pytrees.all_leaves(default_registry, iterable))
    for item in iterable:
        leaves = _flatten(item, is_leaf)[0]
        if len(leaves) != 1 or leaves[0] is not item:
            return False
    return True


def tree_broadcast(prefix_tree: PyTree, full_tree: PyTree, is_leaf: IsLeaf = None) -> Any:
    """Repeats the leaves of a prefix so that it has the structure of `full_tree`.

    Args:
      prefix_tree: a tree that ends where `full_tree` may go on.
      full_tree: gives the structure.
      is_leaf: what to take for a leaf of `prefix_tree`.

    Raises:
      ValueError: `prefix_tree` is no prefix of `full_tree`; the message names the place.

    >>> from pyjx import tree_util
    >>> tree_util.tree_broadcast({"a": 1, "b": 2}, {"a": [10, 20], "b": 30})
    {'a': [1, 1], 'b': 2}
    """
    return tree_unflatten(tree_structure(full_tree),
                          _broadcast("tree_broadcast", prefix_tree, full_tree, is_leaf))


def broadcast_prefix(prefix_tree: PyTree, full_tree: PyTree, is_leaf: IsLeaf = None) -> list[Any]:
    """The leaves of `tree_broadcast(prefix_tree, full_tree)`."""
    return _broadcast("broadcast_prefix", prefix_tree, full_tree, is_leaf)


def _broadcast(name: str, prefix_tree: PyTree, full_tree: PyTree, is_leaf: IsLeaf) -> list[Any]:
    values, treedef = _flatten(prefix_tree, is_leaf)
    subtrees = _subtrees(f"{name} prefix_tree", treedef, prefix_tree, full_tree, is_leaf)
    return [value for value, subtree in zip(values, subtrees, strict=True)
            for _ in range(tree_structure(subtree).num_leaves)]


def tree_transpose(outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None,
                   pytree_to_transpose: PyTree) -> Any:
    """Turns a tree of trees inside out.

    Args:
      outer_treedef: the structure of the outer tree.
      inner_treedef: the structure of the trees in it; None takes that of the first.
      pytree_to_transpose: a tree of structure `outer_treedef.compose(inner_treedef)`.

    Returns:
      A tree of structure `inner_treedef.compose(outer_treedef)`.

    Raises:
      TypeError: the number of leaves is not the product of those of the two structures.

    >>> from pyjx import tree_util
    >>> outer, inner = tree_util.tree_structure([0, 0]), tree_util.tree_structure({"a": 0})
    >>> tree_util.tree_transpose(outer, inner, [{"a": 1}, {"a": 2}])
    {'a': [1, 2]}
    """
    flat, treedef = tree_flatten(pytree_to_transpose)
    if inner_treedef is None:
        inner_trees = outer_treedef.flatten_up_to(pytree_to_transpose)
        if not inner_trees:
            raise TypeError("tree_transpose: inner_treedef must be specified when the outer tree "
                            "has no leaves.")
        inner_treedef = tree_structure(inner_trees[0])
    inner_size = inner_treedef.num_leaves
    if len(flat) != inner_size * outer_treedef.num_leaves:
        raise TypeError(f"Mismatch\n{treedef}\n != \n{outer_treedef.compose(inner_treedef)}")
    return inner_treedef.unflatten(
        [outer_treedef.unflatten(flat[i::inner_size]) for i in range(inner_size)])


# Structures


def treedef_tuple(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    """The structure of a tuple whose items have the given structures."""
    return jaxlib_pytrees.treedef_tuple(default_registry, list(treedefs))


def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]:
    """The structures of the children of the root.

    >>> from pyjx import tree_util
    >>> tree_util.treedef_children(tree_util.tree_structure((1, [2])))
    [PyTreeDef(*), PyTreeDef([*])]
    """
    return treedef.children()


def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    """Whether the structure is one leaf (or None, which has no children either)."""
    return treedef.num_nodes == 1


def is_tree_node(typ: type) -> bool:
    """Whether objects of exactly this type are nodes.

    >>> from pyjx import tree_util
    >>> tree_util.is_tree_node(list), tree_util.is_tree_node(int)
    (True, False)
    """
    return isinstance(typ, type) and bool(jaxlib_pytrees.is_node(default_registry, typ))


def flatten_one_level(tree: PyTree) -> tuple[Iterable[Any], Hashable]:
    """The children of the root, and the auxiliary data that rebuilds it.

    Raises:
      ValueError: `tree` is a leaf.

    >>> from pyjx import tree_util
    >>> tree_util.flatten_one_level({"a": [1, 2], "b": 3})
    (([1, 2], 3), ('a', 'b'))
    """
    result = default_registry.flatten_one_level(tree)
    if result is None:
        raise ValueError(f"can't tree-flatten type: {type(tree)}")
    return result


def flatten_one_level_with_keys(tree: PyTree) -> tuple[Iterable[tuple[Any, Any]], Hashable]:
    """As `flatten_one_level`, with each child as a pair `(key, child)`.

    >>> from pyjx import tree_util
    >>> tree_util.flatten_one_level_with_keys([4])[0]
    [(SequenceKey(idx=0), 4)]
    """
    result = _one_level_with_keys(tree)
    if result is None:
        raise ValueError(f"can't tree-flatten type: {type(tree)}")
    return result


# Key paths


def tree_flatten_with_path(tree: PyTree, is_leaf: Callable[..., bool] | None = None,
                           is_leaf_takes_path: bool = False
                           ) -> tuple[list[tuple[tuple[Any, ...], Any]], Any]:
    """As `tree_flatten`, with each leaf as a pair `(key path, leaf)`.

    Args:
      tree: the tree.
      is_leaf: `is_leaf(node)`, or `is_leaf(path, node)` with `is_leaf_takes_path`.
      is_leaf_takes_path: which of the two.

    >>> from pyjx import tree_util
    >>> tree_util.tree_flatten_with_path({"a": [5]})[0]
    [((DictKey(key='a'), SequenceKey(idx=0)), 5)]
    """
    if is_leaf is not None and not is_leaf_takes_path:
        asks_node = is_leaf

        def is_leaf(path: Any, node: PyTree) -> bool:
            return asks_node(node)

    return default_registry.flatten_with_path(tree, is_leaf)


def tree_leaves_with_path(tree: PyTree, is_leaf: Callable[..., bool] | None = None,
                          is_leaf_takes_path: bool = False) -> list[tuple[tuple[Any, ...], Any]]:
    """The pairs `(key path, leaf)` of a tree; see `tree_flatten_with_path`.

    >>> from pyjx import tree_util
    >>> leaves = tree_util.tree_leaves_with_path({"a": [5], "b": 6})
    >>> [(tree_util.keystr(path), leaf) for path, leaf in leaves]
    [("['a'][0]", 5), ("['b']", 6)]
    """
    return tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


def tree_map_with_path(f: Callable[..., Any], tree: PyTree, *rest: Any,
                       is_leaf: Callable[..., bool] | None = None,
                       is_leaf_takes_path: bool = False) -> Any:
    """As `tree_map`, with the key path of the leaf as the first argument of `f`.

    >>> from pyjx import tree_util
    >>> from pyjx.tree_util import keystr
    >>> tree_util.tree_map_with_path(lambda path, x: keystr(path) + str(x), {"a": [5]})
    {'a': ["['a'][0]5"]}
    """
    pairs, treedef = tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    is_leaf = None if is_leaf_takes_path else is_leaf
    columns = [_subtrees("tree_map_with_path tree", treedef, tree, other, is_leaf, i)
               for i, other in enumerate(rest)]
    return treedef.unflatten(
        [f(path, x, *others) for (path, x), *others in zip(pairs, *columns, strict=True)])


def keystr(keys: Iterable[Any], *, simple: bool = False, separator: str = "") -> str:
    """A key path as text.

    Args:
      keys: the key path.
      simple: names and numbers only, in place of Python's notation.
      separator: put between the keys.

    >>> from pyjx import tree_util
    >>> from pyjx.tree_util import DictKey, GetAttrKey, SequenceKey
    >>> path = (GetAttrKey("params"), DictKey("w"), SequenceKey(0))
    >>> tree_util.keystr(path)
    ".params['w'][0]"
    >>> tree_util.keystr(path, simple=True, separator="/")
    'params/w/0'
    """
    return separator.join(map(_simple_key if simple else str, keys))


def _simple_key(key: Any) -> str:
    if isinstance(key, (DictKey, FlattenedIndexKey)):
        return str(key.key)
    if isinstance(key, SequenceKey):
        return str(key.idx)
    if isinstance(key, GetAttrKey):
        return str(key.name)
    return str(key)


# Mismatches


def prefix_errors(prefix_tree: PyTree, full_tree: PyTree, is_leaf: IsLeaf = None
                  ) -> list[Callable[[str], ValueError]]:
    """Why `prefix_tree` is no prefix of `full_tree`: one entry for each place where they differ.

    Returns:
      Functions from the name of the prefix, such as `"vmap in_axes"`, to an error that tells the
      place and the difference. The list is empty if it is a prefix.

    >>> str(prefix_errors([1, (2,)], [1, 2])[0]("spec")).splitlines()[:2]
    ['pytree structure error: different types at key path', '    spec[1]']
    """
    return list(_prefix_errors((), prefix_tree, full_tree, is_leaf))


def _prefix_errors(path: tuple[Any, ...], prefix: PyTree, full: PyTree, is_leaf: IsLeaf
                   ) -> Iterator[Callable[[str], ValueError]]:
    if is_leaf is not None and is_leaf(prefix):
        return
    expected = _one_level_with_keys(prefix)
    if expected is None:
        return
    if type(prefix) is not type(full):
        found_kind = "<class 'jax.Array'>" if hasattr(full, "aval") else type(full)
        yield _mismatch("types", path, f"a node of type\n    {type(prefix)}\n"
                        f"but the full tree has a value of type\n    {found_kind}."
                        + " None is a node without leaves." * (prefix is None))
        return
    found = _one_level_with_keys(full)
    assert found is not None
    if len(expected[0]) != len(found[0]):
        yield _arity_mismatch(path, type(prefix), expected[0], found[0])
    elif not _same_metadata(expected[1], found[1]):
        what = "keys" if isinstance(prefix, dict) else "metadata"
        yield _mismatch("pytree metadata", path, f"a node of type\n    {type(prefix)}\nwith the "
                        f"{what}\n    {expected[1]}\nbut the full tree has one with the "
                        f"{what}\n    {found[1]}{_key_difference(expected[0], found[0])}")
    else:
        for (key, below), (_, full_below) in zip(expected[0], found[0], strict=True):
            yield from _prefix_errors((*path, key), below, full_below, is_leaf)


def _same_metadata(a: Any, b: Any) -> bool:
    try:
        return bool(a == b)
    except Exception as e:
        raise ValueError("pytree structure error: the metadata of a node must be comparable by ==, "
                         f"but comparing\n    {a}\nof type {type(a)} with\n    {b}\nof type "
                         f"{type(b)}\nraised {type(e).__name__}: {e}") from e


def _arity_mismatch(path: tuple[Any, ...], cls: type, expected: list[Any], found: list[Any]
                    ) -> Callable[[str], ValueError]:
    if issubclass(cls, (list, tuple)):
        return _mismatch(f"lengths of {cls.__name__}", path,
                         f"a {cls.__name__} of length {len(expected)}, "
                         f"but the full tree has one of length {len(found)}.")
    return _mismatch("numbers of pytree children", path,
                     f"a node of type\n    {cls}\nwith {len(expected)} children, but the "
                     f"full tree has one with {len(found)}." + _key_difference(expected, found))


def _key_difference(expected: list[Any], found: list[Any]) -> str:
    keys = [[key for key, _ in children] for children in (expected, found)]
    return "".join([
        f"\n{where} the full tree: {keystr(only[:8], separator=' ')}"
        + f" and {len(only) - 8} more" * (len(only) > 8)
        for where, own, others in (("Missing in", *keys), ("Only in", *keys[::-1]))
        if (only := [k for k in own if k not in others])])


def _mismatch(what: str, path: tuple[Any, ...], details: str) -> Callable[[str], ValueError]:
    return lambda name: ValueError(
        f"pytree structure error: different {what} at key path\n    {name}{keystr(path)}\n"
        f"There {name} has {details}")


def _is_rebuilt(tree: PyTree, other: PyTree) -> bool:
    """Whether the leaves of another tree, in their order, are those of the same places in a tree:
    the two have the same nodes but for lists that are tuples, and mappings of other classes."""
    one, two = _one_level_with_keys(tree), _one_level_with_keys(other)
    if one is None or two is None:
        return one is two
    keys, others = [[key for key, _ in children] for children, _ in (one, two)]
    kinds = {type(tree), type(other)}  # named tuples are made of tuples, not of other named ones
    named_alike = keys == others or not kinds.isdisjoint((list, tuple))
    alike = _same_metadata(one[1], two[1]) if len(kinds) == 1 else any(
        [isinstance(tree, kind) and isinstance(other, kind) for kind in ((list, tuple), Mapping)])
    return len(keys) == len(others) and named_alike and alike and all(
        [_is_rebuilt(x, y) for (_, x), (_, y) in zip(one[0], two[0], strict=True)])


# Registration


def register_pytree_node(
    nodetype: type,
    flatten_func: Callable[[Any], tuple[Iterable[Any], Hashable]],
    unflatten_func: Callable[[Any, Any], Any],
    flatten_with_keys_func: Callable[[Any], tuple[Iterable[Any], Hashable]] | None = None,
) -> None:
    """Makes objects of a type nodes of trees.

    Args:
      nodetype: the type; objects of its subclasses stay leaves.
      flatten_func: from an object to its children and its auxiliary data, which must be hashable
        and comparable.
      unflatten_func: from the auxiliary data and the children to an object. The children can be
        anything, so it should not check them.
      flatten_with_keys_func: as `flatten_func`, with each child as a pair `(key, child)`.

    Raises:
      ValueError: the type is registered already.

    >>> from pyjx import tree_util
    >>> class Pair:
    ...     def __init__(self, x, y):
    ...         self.x, self.y = x, y
    ...
    >>> tree_util.register_pytree_node(
    ...     Pair, lambda p: ((p.x, p.y), None), lambda _, xy: Pair(*xy))
    >>> tree_util.tree_leaves([Pair(1, 2), 3])
    [1, 2, 3]
    """
    jaxlib_pytrees.register_node(default_registry, nodetype, flatten_func, unflatten_func,
                                 flatten_with_keys_func)


def register_pytree_with_keys(
    nodetype: type,
    flatten_with_keys: Callable[[Any], tuple[Iterable[Any], Hashable]],
    unflatten_func: Callable[[Any, Any], Any],
    flatten_func: Callable[[Any], tuple[Iterable[Any], Hashable]] | None = None,
) -> None:
    """As `register_pytree_node`, for types whose children have names.

    Args:
      nodetype: the type.
      flatten_with_keys: from an object to pairs `(key, child)` and its auxiliary data.
      unflatten_func: from the auxiliary data and the children to an object.
      flatten_func: the same without the keys, if that can be done faster.
    """
    if flatten_func is None:

        def flatten_func(tree: PyTree) -> tuple[Iterable[Any], Hashable]:
            pairs, aux = flatten_with_keys(tree)
            return [child for _, child in pairs], aux

    register_pytree_node(nodetype, flatten_func, unflatten_func, flatten_with_keys)


def register_pytree_node_class(cls: _Class) -> _Class:
    """Class decorator that registers a class by its methods.

    They are `tree_flatten(self)` and the class method `tree_unflatten(cls, aux, children)`.

    >>> from pyjx import tree_util
    >>> @tree_util.register_pytree_node_class
    ... class Box:
    ...     def __init__(self, x):
    ...         self.x = x
    ...     def tree_flatten(self):
    ...         return (self.x,), None
    ...     @classmethod
    ...     def tree_unflatten(cls, aux, children):
    ...         return cls(*children)
    ...
    >>> tree_util.tree_map(lambda x: x + 1, Box(1)).x
    2
    """
    register_pytree_node(cls, methodcaller("tree_flatten"), _unflattening(cls))
    return cls


def _unflattening(cls: type) -> Any:
    try:
        return cls.tree_unflatten  # type: ignore[attr-defined]
    except AttributeError as error:
        raise AttributeError(f"{error}: a class that is a pytree by its methods has a class method "
                             "tree_unflatten(cls, aux, children)") from None


def register_pytree_with_keys_class(cls: _Class) -> _Class:
    """Class decorator that registers a class whose children have names.

    Its methods are `tree_flatten_with_keys(self)`, the class method
    `tree_unflatten(cls, aux, children)`, and perhaps `tree_flatten(self)`.
    """
    register_pytree_with_keys(
        cls, methodcaller("tree_flatten_with_keys"), _unflattening(cls),
        methodcaller("tree_flatten") if hasattr(cls, "tree_flatten") else None)
    return cls


def register_dataclass(nodetype: _Class, data_fields: Sequence[str] | None = None,
                       meta_fields: Sequence[str] | None = None,
                       drop_fields: Sequence[str] = ()) -> _Class:
    """Registers a dataclass, or a class with such attributes and constructor, as a node.

    Args:
      nodetype: the class.
      data_fields: names of the fields that are children.
      meta_fields: names of the fields that are auxiliary data: hashable, and static under jit.
      drop_fields: names of fields that are left out, and so get their defaults on rebuilding.
      For a dataclass both lists may be left out: then the fields with `static=True` in their
      metadata (see `jax.tree.static`) are auxiliary and the others are children.

    Raises:
      TypeError: one list without the other, or none for a class that is no dataclass.
      ValueError: a field is in both lists, in none, or does not exist.

    >>> from pyjx import tree_util
    >>> import dataclasses
    >>> @tree_util.register_dataclass
    ... @dataclasses.dataclass
    ... class Layer:
    ...     weight: float
    ...     name: str = dataclasses.field(metadata={"static": True})
    ...
    >>> tree_util.tree_map(lambda x: 2 * x, Layer(1.5, "in"))
    Layer(weight=3.0, name='in')
    """
    is_dataclass = isinstance(nodetype, type) and hasattr(nodetype, "__dataclass_fields__")
    if (data_fields is None) != (meta_fields is None):
        raise TypeError("register_dataclass: data_fields and meta_fields must both be specified "
                        f"when either is specified. Got {data_fields=} {meta_fields=}.")
    if data_fields is None or meta_fields is None:
        if not is_dataclass:
            raise TypeError("register_dataclass: data_fields and meta_fields are required when "
                            f"nodetype is not a dataclass. Got {nodetype=}: put @dataclass below.")
        data_fields, meta_fields = _fields_by_metadata(nodetype, drop_fields)
    data_fields, meta_fields = list(data_fields), list(meta_fields)
    overlap = set(data_fields) & set(meta_fields)
    if overlap:
        raise ValueError("data_fields and meta_fields must not overlap. Overlapping fields: "
                         f"{overlap}.")
    if is_dataclass:
        _check_fields(nodetype, {*data_fields, *meta_fields}, set(drop_fields))
    jaxlib_pytrees.register_dataclass_node(default_registry, nodetype, data_fields, meta_fields)
    return nodetype


def _fields_by_metadata(nodetype: Any, drop_fields: Sequence[str]) -> tuple[list[str], list[str]]:
    fields = [f for f in dataclasses.fields(nodetype) if f.name not in drop_fields]
    return ([f.name for f in fields if not f.metadata.get("static", False)],
            [f.name for f in fields if f.metadata.get("static", False)])


def _check_fields(nodetype: Any, given: set[str], dropped: set[str]) -> None:
    init_fields = {f.name for f in dataclasses.fields(nodetype) if f.init}
    problems = ""
    if missing := init_fields - given - dropped:
        problems += f" Missing fields: {missing}. Add them to drop_fields to suppress this error."
    if unexpected := given - init_fields:
        problems += f" Unexpected fields: {unexpected}."
    if problems:
        raise ValueError("data_fields and meta_fields must include all dataclass fields with "
                         f"``init=True`` and only them.{problems}")


def register_static(cls: _Class) -> _Class:
    """Class decorator that makes objects of a class nodes without leaves.

    They are part of the structure: static under jit, so they must be hashable and comparable.

    >>> from pyjx import tree_util
    >>> @tree_util.register_static
    ... class Mode(str):
    ...     pass
    ...
    >>> tree_util.tree_leaves([Mode("train"), 1])
    [1]
    """
    register_pytree_node(cls, lambda obj: ((), obj), lambda obj, _: obj, lambda obj: ((), obj))
    return cls


register_pytree_with_keys(
    OrderedDict,
    lambda d: ([(DictKey(k), v) for k, v in d.items()], tuple(d)),
    lambda keys, values: OrderedDict(zip(keys, values, strict=True)),
    lambda d: (tuple(d.values()), tuple(d)),
)
register_pytree_with_keys(
    defaultdict,
    lambda d: ([(DictKey(k), d[k]) for k in sorted(d)], (d.default_factory, tuple(sorted(d)))),
    lambda aux, values: defaultdict(aux[0], zip(aux[1], values, strict=True)),
    lambda d: (list(map(d.__getitem__, keys := sorted(d))), (d.default_factory, tuple(keys))),
)


# Functions as trees


class _Opaque:
    """Stands for a `functools.partial` in a `Partial`, and is compared and hashed as that is."""

    __slots__ = ("_fun",)

    def __init__(self, fun: Callable[..., Any]) -> None:
        self._fun = fun

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._fun(*args, **kwargs)

    def __hash__(self) -> int:
        return hash(self._fun)

    def __eq__(self, other: object) -> bool:
        return bool(self._fun == (other._fun if isinstance(other, _Opaque) else other))

    def __getattr__(self, name: str) -> Any:
        if name == "_fun":  # it is asked for before it is there, as by copy
            raise AttributeError(name)
        return getattr(self._fun, name)

    def __repr__(self) -> str:
        return repr(self._fun)


class Partial(functools.partial):
    """A `functools.partial` that is a node: its arguments are children, its function is static.

    So it can be given to jit as an argument or returned from it. A `functools.partial` (or another
    Partial) given as the function is taken as a whole: the arguments it holds are static.

    >>> from pyjx import tree_util
    >>> add = tree_util.Partial(lambda x, y: x + y, 1)
    >>> tree_util.tree_leaves(add), add(10)
    ([1], 11)
    """

    def __new__(cls, func: Callable[..., Any], /, *args: Any, **kw: Any) -> Partial:
        if isinstance(func, functools.partial):
            func = _Opaque(func)
        return super().__new__(cls, func, *args, **kw)


register_pytree_node(
    Partial,
    lambda p: ((p.args, p.keywords), p.func),
    lambda func, args_kw: Partial(func, *args_kw[0], **args_kw[1]),
)


__all__ = [
    "DictKey", "FlattenedIndexKey", "GetAttrKey", "KeyEntry", "KeyPath", "Partial", "PyTreeDef",
    "SequenceKey", "all_leaves", "default_registry", "flatten_one_level",
    "flatten_one_level_with_keys", "is_tree_node", "keystr", "register_dataclass",
    "register_pytree_node", "register_pytree_node_class", "register_pytree_with_keys",
    "register_pytree_with_keys_class", "register_static", "tree_all", "tree_broadcast",
    "tree_flatten", "tree_flatten_with_path", "tree_leaves", "tree_leaves_with_path", "tree_map",
    "tree_map_with_path", "tree_reduce", "tree_reduce_associative", "tree_structure",
    "tree_transpose", "tree_unflatten", "treedef_children", "treedef_is_leaf", "treedef_tuple",
]
__dir__ = directory(__name__, __all__)
