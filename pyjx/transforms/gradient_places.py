"""Where the gradients of arguments go: `VJP.with_refs` takes one of these, or a reference, for each
argument. Those that it returns are nodes of trees, without leaves."""

from __future__ import annotations

from pyjx.tree_util import register_static


class _Place:
    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class GradValue(_Place):
    """The gradient is to be returned."""

    __slots__ = ()


class DontWant(_Place):
    """The gradient is not to be computed."""

    __slots__ = ()


@register_static
class GradRef(_Place):
    """Returned in place of a gradient that was added to a reference."""

    __slots__ = ()


@register_static
class DidntWant(_Place):
    """Returned in place of a gradient that was not wanted."""

    __slots__ = ()
