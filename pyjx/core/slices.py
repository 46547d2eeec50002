"""Slices of known size that may start at a traced position: `ds`."""

from __future__ import annotations

from typing import Any

from pyjx.interning import missing
from pyjx.tree_util import register_pytree_node


class Slice:
    """`size` elements of an axis from `start` on, `stride` apart, as an index.

    Its start may be an array; the elements are then read as `lax.dynamic_slice` reads them, so that
    a slice that would go beyond the end begins earlier.
    """

    __slots__ = ("size", "start", "stride")

    def __init__(self, start: Any, size: Any, stride: int = 1) -> None:
        if stride < 0:
            raise ValueError("`stride` must be >= 0.")
        self.start = start
        self.size = size
        self.stride = stride

    @property
    def is_dynamic_start(self) -> bool:
        """Whether it starts at a position that is not known as an int."""
        return not isinstance(self.start, int)

    @property
    def is_dynamic_size(self) -> bool:
        """Whether its size is not known as an int."""
        return not isinstance(self.size, int)

    @classmethod
    def from_slice(cls, slc: slice, size: int) -> Slice:
        """What `slc` selects of an axis of `size`."""
        start, stop, step = slc.indices(size)
        return cls(start, max((stop - start + step - 1) // step, 0), step)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Slice) and (self.start, self.size, self.stride) == (
            other.start, other.size, other.stride)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Slice(start={self.start!r}, size={self.size!r}, stride={self.stride})"


def ds(start: Any, size: Any = missing, stride: int | None = None) -> slice | Slice:
    """An index like `start:start + size:stride`, whose start may be traced.

    Args:
      start: where it begins. `ds(None)` is `:`, and `ds(n)` is `:n`.
      size: how many elements, an int; of a start that is an int, how many positions.
      stride: how far apart the elements are.

    Raises:
      ValueError: the stride is negative.

    >>> import pyjx as jax
    >>> x = jax.numpy.arange(10)
    >>> jax.jit(lambda i: x[jax.ds(i, 3)])(4).tolist()
    [4, 5, 6]
    """
    if start is None and size is missing:
        return slice(None)
    if size is missing:
        start, size = 0, start
    return Slice(0 if start is None else start, size, 1 if stride is None else stride)


def _flatten(s: Slice) -> tuple[Any, Any]:
    flags = s.is_dynamic_start, s.is_dynamic_size
    children = [x for x, flag in zip((s.start, s.size), flags, strict=True) if flag]
    known = [x for x, flag in zip((s.start, s.size), flags, strict=True) if not flag]
    return children, (flags, tuple(known), s.stride)


def _unflatten(aux: Any, children: Any) -> Slice:
    flags, known, stride = aux
    given, others = iter(children), iter(known)
    s = object.__new__(Slice)
    s.start, s.size = [next(given) if flag else next(others) for flag in flags]
    s.stride = stride
    return s


register_pytree_node(Slice, _flatten, _unflatten)
