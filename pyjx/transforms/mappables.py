"""Types whose values say themselves how `vmap` maps them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pyjx.core.avals import get_aval
from pyjx.core.records import Record
from pyjx.core.specs import MappingSpec
from pyjx.engine.batching import BatchTrace


class Mappable(Record):
    """How values of a type are mapped; see `register_vmappable`."""

    spec_type: type
    to_elt: Callable[..., Any]
    from_elt: Callable[..., Any]


mappables: dict[type, Mappable] = {}


def register_vmappable(data_type: type, spec_type: type, axis_size_type: type,
                       to_elt: Callable[..., Any], from_elt: Callable[..., Any],
                       make_iota: Callable[..., Any] | None) -> None:
    """Have `vmap` ask how values of a type are mapped; it takes them for leaves, pytrees or not.

    A value whose entry of `in_axes` is an int has the size `value.shape[entry]` along the mapped
    axis, if it has a shape; other entries say nothing of the size.

    Args:
      data_type: the type.
      spec_type: that of the entries of `in_axes` and `out_axes` for such values, besides None.
      axis_size_type: that of the sizes of axes, which are ints.
      to_elt: `to_elt(cont, get_idx, value, entry)` is one example of a value. `cont(part, entry)`
        is an example of a part of it, an array whose entry is an int or None; `get_idx()` is the
        number of the example.
      from_elt: `from_elt(cont, size, example, entry)` is the value of all examples, where
        `cont(size, part, entry)` is all examples of a part.
      make_iota: not called, as numbers of examples are arrays.

    >>> import pyjx as jax
    >>> import numpy as np
    >>> from pyjx.interpreters import batching
    >>> class Along:
    ...     def __init__(self, axis): self.axis = axis
    ...
    >>> class Box:
    ...     def __init__(self, content): self.content = content
    ...
    >>> batching.register_vmappable(
    ...     Box, Along, int,
    ...     lambda cont, get_idx, box, along: Box(cont(box.content, along.axis)),
    ...     lambda cont, size, box, along: Box(cont(size, box.content, along.axis)), None)
    >>> f = jax.vmap(lambda box, x: Box(box.content * x), (Along(1), 0), Along(0))
    >>> f(Box(np.ones((2, 3))), np.arange(3.0)).content.tolist()
    [[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]
    >>> batching.unregister_vmappable(Box)
    """
    mappables[data_type] = Mappable(spec_type, to_elt, from_elt)


def unregister_vmappable(data_type: type) -> None:
    """Undo `register_vmappable`. Raises KeyError for a type that is not registered."""
    del mappables[data_type]


def is_vmappable(x: Any) -> bool:
    """Whether the type of `x` is registered."""
    return type(x) in mappables


def is_spec(entry: Any) -> bool:
    """Whether `vmap` takes this for an axis."""
    return type(entry) is int or isinstance(entry, MappingSpec) or any(
        [type(entry) is m.spec_type for m in mappables.values()])


# -- interpreting ----------------------------------------------------------------------------------


def example_of(trace: BatchTrace, x: Any, entry: Any) -> Any:
    """One example, in a trace, of a value or of a part of one."""
    if type(x) in mappables:
        return mappables[type(x)].to_elt(
            lambda part, entry: example_of(trace, part, entry),
            lambda: trace.join(np.arange(trace.axis.size, dtype=np.int32), 0), x, entry)
    if entry is None:
        return x
    shape = get_aval(x).shape
    if type(entry) is not int or not -len(shape) <= entry < len(shape):
        raise ValueError(f"vmap: part of an argument is an array of shape {shape}, which cannot "
                         f"be mapped along axis {entry!r}.")
    if shape[entry] != trace.axis.size:
        raise ValueError(
            f"vmap got inconsistent sizes for array axes to be mapped: axis {entry} of a part of "
            f"an argument, an array of shape {shape}, has size {shape[entry]}, and other "
            f"arguments or axis_size say {trace.axis.size}.")
    return trace.join(x, entry % len(shape))


def all_examples(x: Any, entry: Any, place: Callable[[Any, Any], Any], size: int) -> Any:
    """The value of all examples of one, or of a part of one; `place` makes that of an array."""
    if type(x) in mappables:
        return mappables[type(x)].from_elt(
            lambda size, part, entry: all_examples(part, entry, place, size), size, x, entry)
    return place(x, entry)
