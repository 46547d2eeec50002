"""Fields: of objects that are given them as they are made, and never again, as others hold them and
keys of caches are made of them; and of the objects in fields."""

from __future__ import annotations

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


def of_field(path: str) -> Any:
    """A property that is a member of a field of the object, or of a field of that.

    >>> class Own:
    ...     def __init__(self, value):
    ...         self.value = value
    ...     imaginary = of_field("value.imag")
    >>> Own(1 + 2j).imaginary
    2.0
    """
    return property(attrgetter(path))
