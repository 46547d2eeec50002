"""Name stacks: the scopes and transformations inside which an operation is made.

Every thread has one. It names operations in jaxprs, in lowered programs and in profiles.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

_F = TypeVar("_F", bound=Callable[..., Any])


class Scope(str):
    """An entry of a name stack: the name of a part of the program."""

    __slots__ = ()


class Beside(Scope):
    """A name that stands in the place of that of the program it begins in, such as a loop's body:
    for what is a part of its own to the user."""

    __slots__ = ()


class Transform(str):
    """An entry of a name stack: a transformation, which encloses the entry after it."""

    __slots__ = ()


class Metadata(str):
    """An entry of a name stack that names nothing: what XLA is told of operations below it."""

    __slots__ = ("items",)

    items: tuple[tuple[str, Any], ...]

    def __new__(cls, items: tuple[tuple[str, Any], ...]) -> Metadata:
        self = super().__new__(cls, repr(items))
        self.items = items
        return self


class NameStack:
    """An immutable stack of scopes and transformations, outermost first.

    >>> from pyjx.core.name_stack import NameStack
    >>> print(NameStack().extend("outer").transform("jvp").extend("inner").extend("mlp"))
    outer/jvp(inner)/mlp
    """

    __slots__ = ("_text", "entry", "metadata", "parent")

    metadata: tuple[tuple[str, Any], ...] | None  # what XLA is told of operations made here

    def __init__(self, parent: NameStack | None = None, entry: str | None = None) -> None:
        self.parent = parent
        self.entry = entry
        self.metadata = None if parent is None else parent.metadata
        if type(entry) is Metadata:
            self.metadata = entry.items
        self._text: str | None = None

    def extend(self, name: str) -> NameStack:
        """The stack with a scope called `name` at its end."""
        return NameStack(self, Scope(name))

    def beside(self, name: str) -> NameStack:
        """The stack with a name at its end that takes the place of the program's."""
        return NameStack(self, Beside(name))

    def transform(self, transform_name: str) -> NameStack:
        """The stack with a transformation at its end; it encloses what follows."""
        return NameStack(self, Transform(transform_name))

    def annotated(self, metadata: dict[str, Any]) -> NameStack:
        """The stack with metadata for XLA at its end, besides what it has."""
        known = dict(self.metadata or ())
        return NameStack(self, Metadata(tuple(sorted({**known, **metadata}.items()))))

    @property
    def stack(self) -> tuple[str, ...]:
        entries: list[str] = []
        node: NameStack | None = self
        while node is not None and node.entry is not None:
            entries.append(node.entry)
            node = node.parent
        return tuple(reversed(entries))

    def __add__(self, other: NameStack) -> NameStack:
        if other.entry is None:
            return self
        if self.entry is None:
            return other
        return _from_entries(self, other.stack)

    def inside(self, outer: NameStack) -> NameStack:
        """The part of the stack that was made inside `outer`; all of it if it was made elsewhere.

        >>> outer = NameStack().extend("outer")
        >>> print(outer.extend("inner").inside(outer))
        inner
        """
        entries: list[str] = []
        node = self
        while node is not outer:
            if node.parent is None or node.entry is None:
                return self
            entries.append(node.entry)
            node = node.parent
        return _from_entries(empty_name_stack, tuple(reversed(entries)))

    def __str__(self) -> str:
        if self._text is None:
            parts: list[str] = []  # innermost first
            for entry in reversed(self.stack):
                if isinstance(entry, Metadata):
                    continue
                if isinstance(entry, Transform):
                    parts.append(f"{entry}({parts.pop() if parts else ''})")
                else:
                    parts.append(entry)
            self._text = "/".join(reversed(parts))
        return self._text

    def __len__(self) -> int:
        return len(self.stack)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, NameStack) and _typed(self) == _typed(other)

    def __hash__(self) -> int:
        return hash(self.stack)

    def __repr__(self) -> str:
        entries = ", ".join(f"{type(e).__name__}({str(e)!r})" for e in self.stack)
        return f"NameStack({entries})"


def _typed(stack: NameStack) -> list[tuple[type, str]]:
    return [(type(entry), entry) for entry in stack.stack]


def _from_entries(base: NameStack, entries: tuple[str, ...]) -> NameStack:
    for entry in entries:
        base = NameStack(base, entry)
    return base


empty_name_stack = NameStack()


class _ThreadState(threading.local):
    name_stack: NameStack = empty_name_stack
    program: NameStack = empty_name_stack  # that with which the tracing of a program begins


thread_state = _ThreadState()


def current_name_stack() -> NameStack:
    """The calling thread's name stack."""
    return thread_state.name_stack


class set_name_stack:
    """A context in which the calling thread's name stack is the given one."""

    __slots__ = ("name_stack", "prev")

    prev: NameStack  # the one around it, once it is entered

    def __init__(self, name_stack: NameStack) -> None:
        self.name_stack = name_stack

    def __enter__(self) -> NameStack:
        self.prev = thread_state.name_stack
        thread_state.name_stack = self.name_stack
        return self.name_stack

    def __exit__(self, *exc: object) -> None:
        thread_state.name_stack = self.prev


def reset_name_stack() -> set_name_stack:
    """A context with an empty name stack: that of a jaxpr that is traced on its own."""
    return set_name_stack(thread_state.program)


class extend_name_stack:
    """A context, or a decorator, whose operations are named `name/...`. It may be reused."""

    __slots__ = ("name", "prev")

    prev: NameStack  # the one that was around it when it was entered last
    _inside: Callable[[NameStack, str], NameStack] = staticmethod(NameStack.extend)

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> NameStack:
        self.prev = thread_state.name_stack
        stack = thread_state.name_stack = self._inside(self.prev, self.name)
        return stack

    def __exit__(self, *exc: object) -> None:
        # the parent, not a saved stack: one object may be entered twice, or by two threads
        thread_state.name_stack = thread_state.name_stack.parent or empty_name_stack

    def __call__(self, fun: _F) -> _F:
        @wraps(fun)
        def scoped(*args: Any, **kwargs: Any) -> Any:
            with self:
                return fun(*args, **kwargs)

        return scoped  # type: ignore[return-value]


class transform_name_stack(extend_name_stack):
    """A context whose operations are named `name(...)`, after a transformation."""

    __slots__ = ()

    _inside = staticmethod(NameStack.transform)


def named_call(fun: _F, *, name: str | None = None) -> _F:
    """`fun`, with its operations named after it.

    Args:
      fun: any function.
      name: in place of that of the function.

    Raises:
      AttributeError: the function has no name and none is given.

    >>> import pyjx as jax
    >>> layer = jax.named_call(lambda x: 2 * x, name="layer")
    >>> print(jax.make_jaxpr(layer)(1.0).eqns[0].source_info.name_stack)
    layer
    """
    if not callable(fun):
        raise TypeError(f"named_call: fun must be a function, got {fun!r}")
    if name is None:
        name = fun.__name__  # type: ignore[attr-defined]
    return named_scope(name)(fun)


def named_scope(name: str) -> extend_name_stack:
    """Names the operations made inside: a context manager and a decorator.

    The name appears in jaxprs, in the lowered program and in profiles.

    Args:
      name: any string; `/` separates levels.

    Raises:
      TypeError: `name` is not a string.

    >>> import pyjx as jax
    >>> layer = jax.named_scope("layer_1")(lambda x: 2 * x)
    >>> print(jax.make_jaxpr(layer)(1.0).eqns[0].source_info.name_stack)
    layer_1
    """
    if not isinstance(name, str):
        raise TypeError(f"named_scope name argument must be a string, got {name!r} of type "
                        f"{type(name).__name__}.")
    return extend_name_stack(name)
