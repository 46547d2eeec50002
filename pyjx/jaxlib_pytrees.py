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
        of_class = 7 if kind in _dataclasses else 6
        number, data, custom = (3, kind, None) if is_tuple else (of_class, data, kind)
    entries = [e for c in children for e in c.__getstate__()[1]]
    n_leaves = sum([c.num_leaves for c in children])
    made = treedef.__new__(treedef)
    made.__setstate__((registry, [*entries, (number, len(children), data, custom, n_leaves,
                                             len(entries) + 1)]))
    return made


_NODE_KINDS: dict[type, int] = {type(None): 1, tuple: 2, list: 4, dict: 5}
_dataclasses: set[type] = set()


def register_dataclass(registry: Any, kind: type, data_fields: Sequence[str],
                       meta_fields: Sequence[str]) -> None:
    """As the registry's method, of which it does not tell later."""
    registry.register_dataclass_node(kind, data_fields, meta_fields)
    _dataclasses.add(kind)


def is_node(registry: Any, typ: type, registered: set[type]) -> bool:
    """Whether a type is a node; `registered` has the custom ones, for jaxlib < 0.10."""
    if hasattr(registry, "is_node"):
        return registry.is_node(typ)
    return (typ in registered or typ in (tuple, list, dict, type(None))
            or (issubclass(typ, tuple) and hasattr(typ, "_fields")))
