"""Tuples with named fields whose classes are made quickly.

`typing.NamedTuple` compiles the text of every annotation, and that of a constructor, as a class is
made. With those of some twenty classes that is a twentieth of `import pyjx`, and as much of the
first trace for those that load then.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import NamedTuple as Record
else:
    _new = tuple.__new__

    class Record(tuple):
        """Base of records: a subclass lists its fields as annotations, some with defaults.

        It is what a `typing.NamedTuple` is, without checks of what the annotations say.

        >>> class Point(Record):
        ...     x: int
        ...     y: int = 0
        ...
        >>> Point(1), Point(x=1, y=2)._replace(x=3)
        (Point(x=1, y=0), Point(x=3, y=2))
        """

        __slots__ = ()
        _fields: tuple[str, ...]
        _field_defaults: dict[str, Any]

        def __init_subclass__(cls) -> None:
            body = vars(cls)
            cls._fields = cls.__match_args__ = fields = tuple(cls.__annotations__)
            cls._field_defaults = {name: body[name] for name in fields if name in body}
            for position, name in enumerate(fields):
                setattr(cls, name, property(itemgetter(position)))

        def __new__(cls, *args: Any, **kwargs: Any) -> Record:
            if kwargs or len(args) != len(cls._fields):
                args = cls._complete(args, kwargs)
            return _new(cls, args)

        @classmethod
        def _complete(cls, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
            """The values of all fields."""
            fields = cls._fields
            given = dict(zip(fields, args, strict=False))
            values = {**cls._field_defaults, **given, **kwargs}
            once = len(given) == len(args) and given.keys().isdisjoint(kwargs)
            if not once or len(values) != len(fields) or not values.keys() <= set(fields):
                raise TypeError(
                    f"{cls.__name__} takes a value for each of {', '.join(fields)}; got "
                    f"{len(args)} by position and {', '.join(kwargs) or 'none'} by name")
            return tuple([values[field] for field in fields])

        @classmethod
        def _make(cls, values: Any) -> Record:
            return cls(*values)

        def _asdict(self) -> dict[str, Any]:
            return dict(zip(self._fields, self, strict=True))

        def _replace(self, /, **values: Any) -> Record:
            return type(self)(**(self._asdict() | values))

        def __reduce__(self) -> Any:
            return type(self), tuple(self)

        def __repr__(self) -> str:
            shown = [f"{k}={v!r}" for k, v in zip(self._fields, self, strict=True)]
            return f"{type(self).__name__}({', '.join(shown)})"


__all__ = ["Record"]
