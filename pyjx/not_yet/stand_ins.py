"""Modules of JAX that are not there yet, made of tables of their names.

Programs import them, ask for their names, derive from their classes, make and compare their plain
data and write all of it in annotations. What needs the module itself refuses when it is called.

A table (`pallas.txt`) has a paragraph for each module: its name, and entries with a `;` after each.

    f(x, *, y=1)                a function that refuses
    maker f(g, *, y=1)          one whose result is a function: that is what refuses
    class C(x) of B             a class whose objects cannot be made; what derives from it may
                                have a constructor of its own
    frozen C(x, y=1) of B       a frozen dataclass, of which there are objects
    data C(x, y=1)              a dataclass
    tuple C(x, y=1)             a named tuple
    enum E(A=1, B=2)            an enumeration; `intenum`, `flag`
    space E(A=1, B=2)           one of memories, semaphores or layouts, whose members are called
    NAME=C(1)                   a value: an expression of the names of the module
    primitive f_p="f"           a primitive, without rules
    jaxlib tpu="mosaic.tpu"     a module of jaxlib
    from module import a b=c    what a module has that is there, or another paragraph

A module that has come out of the table is found before it; a single name that is there is imported
`from` where it is.
"""

from __future__ import annotations

import builtins
import dataclasses
import enum
import functools
import inspect
import re
from collections import namedtuple
from collections.abc import Callable, Mapping
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from pathlib import Path
from pkgutil import resolve_name
from types import GenericAlias, ModuleType
from typing import Any, NamedTuple

from pyjx import jaxlib_api
from pyjx.core.primitive import Primitive
from pyjx.guards import guard
from pyjx.lazy import Package, own_dictionary, told
from pyjx.not_yet import TABLES, meanwhile

__all__ = ["StandIn", "modules", "names", "spec"]


class Entry(NamedTuple):
    """What a table says of one name."""

    kind: str
    said: str  # parameters, an expression, or `module:name`
    bases: str = ""


_ENTRY = re.compile(r"(?:([a-z]+) )?(\w+)(?:\((.*)\))?(?: of (.+))?", re.DOTALL)


@functools.cache
def modules(table: str) -> Mapping[str, Mapping[str, Entry]]:
    """What a table says: for each module the entry of each name."""
    text = Path(__file__).with_name(table).read_text(encoding="utf-8")
    found = {}
    for paragraph in text.strip().split("\n\n"):
        name, *lines = paragraph.split("\n")
        entries: dict[str, Entry] = {}
        for words in " ".join(" ".join(lines).split()).split(";"):
            entries.update(_read(words.strip()))
        found[name] = entries
    return found


def names() -> list[str]:
    """The modules of all tables."""
    return [name for table in sorted({*TABLES.values()}) for name in modules(table)]


def _read(words: str) -> dict[str, Entry]:
    if words.startswith("from "):
        _, module, _, *names = words.split(" ")
        return {public: Entry("from", f"{module}:{name or public}")
                for public, _, name in (word.partition("=") for word in names)}
    value = re.fullmatch(r"(?:([a-z]+) )?(\w+)=(.*)", words)
    if value:
        return {value[2]: Entry(value[1] or "value", value[3])}
    entry = _ENTRY.fullmatch(words)
    if not entry:
        return {}
    kind, name, parameters, bases = entry.groups("")
    return {name: Entry(kind or "function", parameters, bases)}


@guard
class StandIn(Package):
    """A module of a table. Its names are made when they are used."""

    def __init__(self, name: str, entries: Mapping[str, Entry]) -> None:
        super().__init__(name, "It is not there yet; its names are.")
        own_dictionary(self).update(
            entries=entries, __all__=[public for public in entries if not public.startswith("_")])

    def __getattr__(self, name: str) -> Any:
        entry = own_dictionary(self)["entries"].get(name)
        if entry is None:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        value = guard(_BUILDERS[entry.kind](self, name, entry))
        setattr(self, name, value)
        told(self.__name__, name, value)
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        """Where a function has the name of a module below, the import of that changes nothing."""
        if not (isinstance(value, ModuleType) and name in own_dictionary(self)["entries"]):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        own = own_dictionary(self)
        return sorted({*own["entries"], *[name for name in own if name.startswith("__")]})


class _Loader(Loader):
    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return StandIn(spec.name, modules(TABLES[_root(spec.name)])[spec.name])

    def exec_module(self, module: ModuleType) -> None:
        pass


def _root(name: str) -> str:
    return next((root for root in TABLES if f"{name}.".startswith(f"{root}.")), "")


def spec(name: str) -> ModuleSpec | None:
    """How the module of that name is imported, if a table has it."""
    root = _root(name)
    known = modules(TABLES[root]) if root else {}
    if name not in known:
        return None
    below = any(other.startswith(f"{name}.") for other in known)
    return ModuleSpec(name, _Loader(), origin="not there yet", is_package=below)


def _refusal(module: ModuleType, name: str) -> Callable[[], Any]:
    """What raises when something of that name is called."""
    def refuse() -> Any:
        raise NotImplementedError(
            f"{module.__name__}.{name} is not there yet.{meanwhile(module.__name__)}")

    return refuse


def _called(module: ModuleType, name: str, parameters: str, *, result: str = "refuse()",
            **names: Any) -> Any:
    """A function with the given parameters."""
    scope = {"refuse": _refusal(module, name), **names}
    code = compile(f"lambda {parameters}: {result}", __file__, "eval")  # of a table of ours
    function = eval(code, scope)
    return _named(function, module, name)


def _named(made: Any, module: ModuleType, name: str) -> Any:
    made.__module__, made.__qualname__, made.__name__ = module.__name__, name, name
    made.__doc__ = "It is not there yet."
    return made


def _function(module: StandIn, name: str, entry: Entry) -> Any:
    return _called(module, name, entry.said)


def _maker(module: StandIn, name: str, entry: Entry) -> Any:
    """A function that is given a function, at once or as a decorator is, and gives one."""
    refuse = _refusal(module, name)

    @guard
    def refused(*args: Any, **kwargs: Any) -> Any:
        return refuse()

    def made(arguments: Mapping[str, Any]) -> Any:
        of = next(iter(arguments.values()), None)
        if callable(of):
            return functools.update_wrapper(refused, of)
        return lambda fun: functools.update_wrapper(refused, fun)

    return _called(module, name, entry.said, result="made(locals())", made=made)


# In annotations a class may have parameters.
_SUBSCRIPTED: dict[str, Any] = {"__class_getitem__": classmethod(GenericAlias)}


def _bases(module: StandIn, entry: Entry) -> tuple[type, ...]:
    return tuple(resolve_name(f"{place}:{name}") if place else getattr(module, name)
                 for place, _, name in (word.rpartition(".") for word in entry.bases.split()))


def _class(module: StandIn, name: str, entry: Entry) -> Any:
    parameters = f"self, {entry.said}" if entry.said else "self"
    bases = _bases(module, entry)
    fails = any(issubclass(base, BaseException) for base in bases)
    body = {} if fails else {"__init__": _called(module, name, parameters), **_SUBSCRIPTED}
    return _named(type(name, bases, body), module, name)


def _parameters(entry: Entry) -> list[inspect.Parameter]:
    return [*inspect.signature(eval(f"lambda {entry.said}: None", {})).parameters.values()]


def _data(module: StandIn, name: str, entry: Entry) -> Any:
    """A dataclass whose constructor has the parameters as they stand, those of its bases too."""
    fields = [(p.name, Any, dataclasses.field(
        default=dataclasses.MISSING if p.default is p.empty else p.default,
        kw_only=p.kind is p.KEYWORD_ONLY)) for p in _parameters(entry)]

    def keep(given: dict[str, Any]) -> None:
        this = given.pop("self")
        for field, value in given.items():
            object.__setattr__(this, field, value)

    start = eval(f"lambda self, {entry.said}: keep(locals())", {"keep": keep})
    return _named(dataclasses.make_dataclass(
        name, fields, bases=_bases(module, entry), frozen=entry.kind == "frozen", init=False,
        namespace={"__init__": start, **_SUBSCRIPTED}), module, name)


def _tuple(module: StandIn, name: str, entry: Entry) -> Any:
    fields = _parameters(entry)
    return _named(namedtuple(name, [p.name for p in fields],  # type: ignore[misc]
                             defaults=[p.default for p in fields if p.default is not p.empty]),
                  module, name)


@dataclasses.dataclass(frozen=True)
class Described:
    """What a kernel is to have of a memory, a semaphore or a layout, in the words of the call."""

    of: Any
    arguments: tuple[Any, ...]
    named: tuple[tuple[str, Any], ...] = ()

    def reduce(self, axes: Any) -> Described:
        return Described(self, (axes,))


class _Space(enum.Enum):
    def __call__(self, *args: Any, **kwargs: Any) -> Described:
        return Described(self, args, tuple(kwargs.items()))

    def reduce(self, axes: Any) -> Described:
        return Described(self, (axes,))


_ENUMERATIONS: dict[str, Any] = {
    "enum": enum.Enum, "intenum": enum.IntEnum, "flag": enum.Flag, "space": _Space}


def _enumeration(module: StandIn, name: str, entry: Entry) -> Any:
    members = eval(f"dict({entry.said})", {})
    return _named(_ENUMERATIONS[entry.kind](name, members), module, name)


class _Names(dict[str, Any]):
    """The names of a module, for expressions."""

    def __init__(self, module: StandIn) -> None:
        super().__init__()
        self.module = module

    def __missing__(self, name: str) -> Any:
        return getattr(self.module if name in own_dictionary(self.module)["entries"] else builtins,
                       name)


def _value(module: StandIn, name: str, entry: Entry) -> Any:
    return eval(entry.said, {}, _Names(module))


def _primitive(module: StandIn, name: str, entry: Entry) -> Any:
    return Primitive(_value(module, name, entry))


def _of_jaxlib(module: StandIn, name: str, entry: Entry) -> Any:
    return jaxlib_api.submodule(_value(module, name, entry))


def _from(module: StandIn, name: str, entry: Entry) -> Any:
    return resolve_name(entry.said)


_BUILDERS: dict[str, Callable[[StandIn, str, Entry], Any]] = {
    "function": _function, "maker": _maker, "class": _class, "data": _data, "frozen": _data,
    "primitive": _primitive, "jaxlib": _of_jaxlib, "tuple": _tuple, "value": _value,
    "from": _from, **dict.fromkeys(_ENUMERATIONS, _enumeration)}
