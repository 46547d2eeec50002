"""Effects: what a program does or reads besides computing its results."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from typing import TYPE_CHECKING

from pyjx.core.records import Alike

if TYPE_CHECKING:
    from pyjx.core.jaxpr import ClosedJaxpr, JaxprEqn


class Effect:
    """Something that a program does besides computing its results.

    An equation with an effect stays in the program even where nobody reads its results, unless the
    effect's class says that it is `droppable`. Effects that are `ordered` happen one after the
    other, also from call to call. What a backward pass computes again has its `repeatable` effects
    again; others are refused there. Programs over several devices refuse those that are for
    `one_device`.
    """

    __slots__ = ()

    droppable = False
    ordered = False
    repeatable = False
    one_device = False


class NamedAxisEffect(Alike, Effect):
    """The program reads the named axis `name` around it: its size, the position on it, or the
    values at its other positions."""

    __slots__ = ("name",)

    droppable = True

    def __init__(self, name: object) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"NamedAxisEffect({self.name})"


class RefEffect(Effect):
    """The program takes or has mutable references, and does something with them."""

    __slots__ = ()

    def __repr__(self) -> str:
        return type(self).__name__


class ReadEffect(RefEffect):
    """The program reads a reference."""

    __slots__ = ()


class WriteEffect(RefEffect):
    """The program writes a reference."""

    __slots__ = ()


class AccumEffect(RefEffect):
    """The program adds to a reference."""

    __slots__ = ()


class InternalRefEffect(RefEffect):
    """The program makes, freezes or frees references of its own."""

    __slots__ = ()


class TypeEffect(Effect):
    """The program has values of a library's type, or operations that it says itself how to lower:
    it is compiled as one on what these are made of."""

    __slots__ = ()

    droppable = True

    def __repr__(self) -> str:
        return type(self).__name__


Effects = frozenset[Effect]
reads: Effects = frozenset({ReadEffect()})
writes: Effects = frozenset({WriteEffect()})
accumulates: Effects = frozenset({AccumEffect()})
has_own_refs: Effects = frozenset({InternalRefEffect()})
has_own_types: Effects = frozenset({TypeEffect()})
no_effects: Effects = frozenset()


_effects_of = attrgetter("effects")


def join_effects(parts: Iterable[JaxprEqn | ClosedJaxpr]) -> Effects:
    """The union of the effects of equations or programs."""
    return no_effects.union(*set(map(_effects_of, parts)))


def keeps_alive(effects: Effects) -> bool:
    """Whether an equation with these effects must stay where nobody reads its results."""
    return any([not effect.droppable for effect in effects])


def unrepeatable(effects: Effects) -> list[Effect]:
    """Those that are neither dropped nor had again at will."""
    return [e for e in effects if not (e.droppable or e.repeatable)]


def is_ordered(effects: Effects) -> bool:
    return any([effect.ordered for effect in effects])


def has_state(effects: Effects) -> bool:
    """Whether a program with these effects takes or has references."""
    return any([isinstance(effect, RefEffect) for effect in effects])


def has_types(effects: Effects) -> bool:
    """Whether a program with these effects has values of types of libraries."""
    return not has_own_types.isdisjoint(effects)


def is_replaced(effects: Effects) -> bool:
    """Whether another program is compiled in the place of one with these effects: one that knows
    arrays alone."""
    return any([isinstance(effect, (RefEffect, TypeEffect)) for effect in effects])


def axis_names(effects: Effects) -> list[object]:
    """The named axes that a program with these effects reads."""
    return [e.name for e in effects if type(e) is NamedAxisEffect]
