"""Small classes: tuples with named fields whose classes are made quickly, and fields that objects
are given as they are made, and never again.

`typing.NamedTuple` compiles the text of every annotation, and that of a constructor, as a class is
made. With those of some twenty classes that is a twentieth of `import pyjx`, and as much of the
first trace for those that load then.
"""

from __future__ import annotations

import copyreg
from collections.abc import Container, Iterable
from functools import partial
from operator import attrgetter, call, itemgetter
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeVar

T = TypeVar("T", covariant=True)

# -- tuples with named fields ----------------------------------------------------------------------

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
                setattr(cls, name, property(itemgetter(position), doc=f"Field {position}."))

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


# -- fields that are given once --------------------------------------------------------------------


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


def by_names(self: object) -> Any:
    """`__reduce__` of a class whose constructor takes its fields by name, and which jax keeps in
    another form. An object of a subclass is its state: only that knows what its constructor takes.
    """
    if "__reduce__" in vars(type(self)):
        return call, (partial(type(self), **vars(self)),)
    return copyreg.__newobj__, (type(self),), vars(self)  # type: ignore[attr-defined]


class Shared:
    """Base of objects that never change: their copies are they themselves."""

    __slots__ = ()

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self


class Unpickled(Shared):
    """Base of such objects that are not pickled. `_instead` says what serves."""

    __slots__ = ()
    _instead: str

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"cannot pickle {type(self).__name__!r} object: {self._instead}")


EXPORT = ("export its function, jax.export.export(jax.jit(f))(*args).serialize(), or pickle the "
          "function by cloudpickle and trace it anew.")


class Alike:
    """Base of objects that are equal where they are of one class and their keys are: their slots,
    those of bases too, unless the class says another `_key`.

    Raises:
      TypeError: a subclass has neither slots nor a key, so that all its objects would be equal;
        `__slots__ = ()` says that they are.
    """

    __slots__: tuple[str, ...] = ()

    _key: Any = property(type)  # of what has no slots

    def __init_subclass__(cls) -> None:
        own = vars(cls)
        if own.get("__slots__") and "_key" not in own:
            slots = [name for base in cls.__mro__ for name in vars(base).get("__slots__", ())]
            # In C, as tables hash callbacks.
            cls._key = property(attrgetter(*slots), doc="What is compared: the slots.")
        elif cls._key is Alike._key and "__slots__" not in own:
            raise TypeError(f"{cls.__name__} has neither slots nor a _key to be compared by.")

    def __eq__(self, other: object) -> bool:
        return self._key == other._key if type(other) is type(self) else NotImplemented

    def __hash__(self) -> int:
        return hash((type(self), self._key))


class Value(Alike, Frozen):
    """Base of such objects that are frozen, whose constructor takes the slots by name.

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


class Field(Protocol[T]):
    """What type checkers take a member that `of_field` makes for: a property that nobody sets."""

    def __get__(self, instance: Any, owner: Any = None) -> T: ...
    def __set__(self, instance: Any, value: NoReturn) -> None: ...


def of_field(path: str, doc: str = "") -> Any:
    """A property that is a field of the object, or a member of one, with what is to be said of it.

    >>> class Own:
    ...     def __init__(self, value):
    ...         self.value = value
    ...     imaginary = of_field("value.imag")
    ...
    >>> Own(1 + 2j).imaginary
    2.0
    """
    return property(attrgetter(path), doc=doc or f"`self.{path}`.")
