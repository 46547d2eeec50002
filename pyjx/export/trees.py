"""Pytrees of arguments and results: their form in a container, and how two of them differ."""

from __future__ import annotations

import base64
import binascii
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from pyjx import jaxlib_pytrees
from pyjx.core.prefixes import structure_differences
from pyjx.engine.types import TreeDef
from pyjx.tree_util import (
    default_registry,
    keystr,
    tree_flatten_with_path,
    tree_structure,
    tree_unflatten,
)

MOST_DEPTH = 64


class _Node(NamedTuple):
    """How a type of nodes is written."""

    type: type
    serialized_name: str
    serialize_auxdata: Callable[[Any], bytes]
    deserialize_auxdata: Callable[[bytes], Any]
    from_children: Callable[[Any, Sequence[Any]], Any] | None


_by_type: dict[type, _Node] = {}
_by_name: dict[str, _Node] = {}
_tuples_by_type: dict[type, str] = {}
_tuples_by_name: dict[str, type] = {}


def _check_free(nodetype: type, name: str) -> None:
    if nodetype in _by_type or nodetype in _tuples_by_type:
        known = _by_type[nodetype].serialized_name if nodetype in _by_type else \
            _tuples_by_type[nodetype]
        raise ValueError(f"Duplicate serialization registration for type `{nodetype}`. Previous "
                         f"registration was with serialized_name `{known}`.")
    if name in _by_name or name in _tuples_by_name:
        other = _by_name[name].type if name in _by_name else _tuples_by_name[name]
        raise ValueError(f"Duplicate serialization registration for serialized_name `{name}`. "
                         f"Previous registration was for type `{other}`.")


def register_pytree_node_serialization(
    nodetype: type, *, serialized_name: str, serialize_auxdata: Callable[[Any], bytes],
    deserialize_auxdata: Callable[[bytes], Any],
    from_children: Callable[[Any, Sequence[Any]], Any] | None = None,
) -> type:
    """Let `Exported.serialize` write pytree nodes of a type.

    Args:
      nodetype: a type that is registered as a pytree node.
      serialized_name: what stands for it in the bytes; the same where they are read.
      serialize_auxdata, deserialize_auxdata: from the node's auxiliary data to bytes and back.
        What reads must stand any bytes.
      from_children: accepted; structures are read without making nodes.

    Raises:
      ValueError: the type is no pytree node, or the type or the name is registered already.

    >>> import pyjx as jax
    >>> from pyjx import export
    >>> class Pair:
    ...     def __init__(self, a, b): self.a, self.b = a, b
    ...
    >>> Pair = jax.tree_util.register_pytree_node(
    ...     Pair, lambda p: ((p.a, p.b), None), lambda _, c: Pair(*c)) or Pair
    >>> _ = export.register_pytree_node_serialization(
    ...     Pair, serialized_name="my.Pair", serialize_auxdata=lambda aux: b"",
    ...     deserialize_auxdata=lambda data: None)
    """
    _check_free(nodetype, serialized_name)
    node = _Node(nodetype, serialized_name, serialize_auxdata, deserialize_auxdata, from_children)
    _by_type[nodetype] = _by_name[serialized_name] = node  # type: ignore[assignment]
    return nodetype


def register_namedtuple_serialization(nodetype: type, *, serialized_name: str) -> type:
    """Let `Exported.serialize` write named tuples of a type, under this name.

    Raises:
      ValueError: it is no named tuple, or the type or the name is registered already.

    >>> from collections import namedtuple
    >>> from pyjx import export
    >>> Point = namedtuple("Point", "x y")
    >>> _ = export.register_namedtuple_serialization(Point, serialized_name="my.Point")
    """
    if not (isinstance(nodetype, type) and issubclass(nodetype, tuple)
            and hasattr(nodetype, "_fields")):
        raise ValueError(f"Use `jax.export.register_pytree_node_serialization` for types other "
                         f"than `collections.namedtuple`: {nodetype}.")
    _check_free(nodetype, serialized_name)
    _tuples_by_type[nodetype] = serialized_name
    _tuples_by_name[serialized_name] = nodetype
    return nodetype


def fields_of_named_tuple(name: str) -> tuple[str, ...] | None:
    """The fields of the named tuple that is registered by a name; None if there is none."""
    found: Any = _tuples_by_name.get(name)
    return found and found._fields  # type: ignore[no-any-return]


# -- as data ---------------------------------------------------------------------------------------


def tree_to_data(tree: TreeDef) -> Any:
    """A tree structure as JSON's values: "*" is a leaf.

    Raises:
      ValueError: a type of nodes has no serialization.
    """
    if tree.node_data() is None:
        return "*"
    kind, aux = tree.node_data()
    children = list(map(tree_to_data, tree.children()))
    if kind is type(None):
        return None
    if kind in (tuple, list):
        return [kind.__name__, children]
    if kind is dict:
        if not all(type(k) in (str, int, bool) for k in aux):
            raise ValueError("Serialization is supported only for dictionaries with string, int or "
                             f"bool keys. Found keys {list(aux)}.")
        return ["dict", list(aux), children]
    if kind in _tuples_by_type:
        return ["namedtuple", _tuples_by_type[kind], children]
    if isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields"):
        raise ValueError(
            "Cannot serialize PyTreeDef containing a namedtuple without a serialization. Use "
            f"`export.register_namedtuple_serialization` for type `{kind}`.")
    node = _by_type.get(kind)
    if node is None:
        raise ValueError(f"Cannot serialize PyTreeDef containing a node of type `{kind}`. Use "
                         "`export.register_pytree_node_serialization` or "
                         "`export.register_namedtuple_serialization`.")
    data = base64.b64encode(bytes(node.serialize_auxdata(aux))).decode()
    return ["node", node.serialized_name, data, children]


def tree_from_data(data: Any, depth: int = 0) -> Any:
    """The inverse of `tree_to_data`.

    Raises:
      ValueError: the data is none, or has nodes of a type that is not registered here.
    """
    if depth > MOST_DEPTH:
        raise ValueError("deserialize: a pytree is nested too deeply.")
    if data == "*":
        return _LEAF
    if data is None:
        return _made((type(None), None), [])
    if not (isinstance(data, list) and len(data) >= 2 and isinstance(data[0], str)
            and isinstance(data[-1], list)):
        raise ValueError("deserialize: a pytree node is malformed.")
    kind, *fields, items = data
    children = [tree_from_data(c, depth + 1) for c in items]
    if kind in ("tuple", "list") and not fields:
        return _made((tuple if kind == "tuple" else list, None), children)
    if kind == "dict" and len(fields) == 1 and _are_keys(fields[0], len(children)):
        return _made((dict, fields[0]), children)
    if kind == "namedtuple" and len(fields) == 1 and isinstance(fields[0], str):
        nodetype = _named_tuple(fields[0], len(children))
        return _made((nodetype, nodetype), children)
    if kind == "node" and len(fields) == 2 and all([isinstance(f, str) for f in fields]):
        return _made(_registered(*fields), children)
    raise ValueError("deserialize: a pytree node is malformed.")


_LEAF = tree_structure(0)


def _made(node_data: tuple[Any, Any], children: list[Any]) -> Any:
    return jaxlib_pytrees.treedef_of(default_registry, node_data, children)


def _are_keys(keys: Any, n: int) -> bool:
    """Whether these are the keys of a dict of n items, in their order."""
    if not (isinstance(keys, list) and len(keys) == n):
        return False
    kinds = {type(k) for k in keys}
    return len(kinds) < 2 and kinds <= {str, int, bool} and all(map(operator.lt, keys, keys[1:]))


def _named_tuple(name: str, n: int) -> type:
    nodetype: Any = _tuples_by_name.get(name)
    if nodetype is None:
        raise ValueError(f"Cannot deserialize a PyTreeDef with a namedtuple `{name}` that is not "
                         "registered: call `export.register_namedtuple_serialization`.")
    if len(nodetype._fields) != n:
        raise ValueError(f"deserialize: the namedtuple `{name}` has {len(nodetype._fields)} "
                         f"fields here, and {n} in the data.")
    return nodetype  # type: ignore[no-any-return]


def _registered(name: str, encoded: str) -> tuple[type, Any]:
    node = _by_name.get(name)
    if node is None:
        raise ValueError(f"Cannot deserialize a PyTreeDef with a node `{name}` that is not "
                         "registered: call `export.register_pytree_node_serialization`.")
    try:
        data = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("deserialize: the auxiliary data of a pytree node is malformed.") from None
    return node.type, node.deserialize_auxdata(data)


# -- for messages ----------------------------------------------------------------------------------


def flat_tree(n: int) -> Any:
    """The structure of `(args, kwargs)` of n positional leaves."""
    return tree_structure(((0,) * n, {}))


def paths_of(in_tree: TreeDef) -> list[str]:
    """The leaves of `(args, kwargs)` as they are written: `args[0]['a']`."""
    args, kwargs = tree_unflatten(in_tree, list(range(in_tree.num_leaves)))
    named = [(f"args{keystr(path)}", x) for path, x in tree_flatten_with_path(args)[0]]
    named += [(f"kwargs{keystr(path)}", x) for path, x in tree_flatten_with_path(kwargs)[0]]
    paths = [""] * in_tree.num_leaves
    for path, i in named:
        paths[i] = path
    return paths


def tree_differences(exported: TreeDef, given: TreeDef) -> str:
    """Where the tree `(args, kwargs)` of a call differs from the one that was exported."""
    return "\n".join([
        f"   - {('args', 'kwargs')[path[0].idx]}{keystr(path[1:])} is a {other} in the invocation "
        f"and a {one} when exported, so {why}."
        for path, one, other, why in structure_differences(exported, given)])
