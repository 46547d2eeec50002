"""jaxlib's pytrees: what its versions call otherwise, or do not have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyjx.jaxlib_api import pytree

all_leaves = pytree.all_leaves
treedef_tuple = getattr(pytree, "treedef_tuple", None) or pytree.tuple


def treedef_of(registry: Any, node_data: tuple[type, Any], children: Sequence[Any]) -> Any:
    """The structure of a node with these children; the inverse of `node_data()`, `children()`."""
    treedef: Any = pytree.PyTreeDef
    if hasattr(treedef, "from_node_data_and_children"):
        return treedef.from_node_data_and_children(registry, node_data, children)
    # Before 0.8 by the form in which structures are pickled: one entry a node, children first.
    kind, data = node_data
    custom = None
    number = _NODE_KINDS.get(kind)
    if number is None:
        is_tuple = issubclass(kind, tuple) and hasattr(kind, "_fields")
        number, data, custom = (3, kind, None) if is_tuple else (custom_kinds[kind], data, kind)
    entries = [e for c in children for e in c.__getstate__()[1]]
    n_leaves = sum([c.num_leaves for c in children])
    made = treedef.__new__(treedef)
    made.__setstate__((registry, [*entries, (number, len(children), data, custom, n_leaves,
                                             len(entries) + 1)]))
    return made


_NODE_KINDS: dict[type, int] = {type(None): 1, tuple: 2, list: 4, dict: 5}
CUSTOM, DATACLASS = 6, 7
custom_kinds: dict[type, int] = {}
"""The classes that have been made nodes, of which jaxlib's registry does not tell; and how."""


def is_node(registry: Any, typ: type) -> bool:
    if hasattr(registry, "is_node"):
        return registry.is_node(typ)
    return (typ in custom_kinds or typ in (tuple, list, dict, type(None))
            or (issubclass(typ, tuple) and hasattr(typ, "_fields")))
