"""Fields: of objects that are given them as they are made, and never again, as others hold them and
keys of caches are made of them; and of the objects in fields."""

from __future__ import annotations

from collections.abc import Container, Iterable
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NoReturn


def refuse_change(self: Any, name: str, value: Any = None) -> NoReturn:
    """What assigning to a field of such an object does, and deleting one."""
    raise AttributeError(f"cannot assign to field {name!r} of {type(self).__name__}, which cannot "
                         "be changed.")


class Frozen:
    """Base of such classes. What makes an object fills it by `filled`."""

    __slots__ = ()

    if not TYPE_CHECKING:  # a checker takes them for fields of all names
        __setattr__ = __delattr__ = refuse_change


# Gives a field its value, past what refuses to change one.
put_field = object.__setattr__


def filled(frozen: Any, **fields: Any) -> Any:
    """The object, with these fields."""
    for name, value in fields.items():
        put_field(frozen, name, value)
    return frozen


class Value(Frozen):
    """Base of frozen objects that are equal where they are of one class and their fields are. The
    fields are the slots, in any order, and the constructor takes them by name.

    >>> class Point(Value):
    ...     __slots__ = ("x", "y")
    ...     def __init__(self, x, y):
    ...         filled(self, x=x, y=y)
    ...
    >>> Point(1, 2).update(y=3) == Point(1, 3), Point(1, 2) == Point(1, 3)
    (True, False)
    """

    __slots__: tuple[str, ...] = ()

    def _fields(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash(tuple(self._fields().values()))

    def __reduce__(self) -> Any:
        return partial(type(self), **self._fields()), ()

    def update(self, **kwargs: Any) -> Any:
        """The same with some of its fields replaced."""
        fields = self._fields()
        refuse_unknown(f"{type(self).__name__}.update()", kwargs, fields)
        return type(self)(**(fields | kwargs))


def refuse_unknown(function: str, kwargs: Iterable[str], names: Container[str] = ()) -> None:
    """Raise TypeError for keywords that are none of these names."""
    for name in kwargs:
        if name not in names:
            raise TypeError(f"{function} got an unexpected keyword argument {name!r}")


def of_field(path: str) -> Any:
    """A property that is a member of a field of the object, or of a field of that.

    >>> class Own:
    ...     def __init__(self, value):
    ...         self.value = value
    ...     imaginary = of_field("value.imag")
    ...
    >>> Own(1 + 2j).imaginary
    2.0
    """
    return property(attrgetter(path))
