"""Which operations of the forms of a program come from the same operation of the user's."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from functools import lru_cache
from typing import TypeVar

from pyjx.viewer.listing import OPERATION, UNKNOWN, Listing, Places

_Key = TypeVar("_Key", bound=Hashable)

_TRANSFORM = re.compile(r"([\w.\-]+)\(")
# XLA gives them the name of the operation beside them.
_PLUMBING = frozenset(("get-tuple-element", "parameter", "tuple"))
_KIND = re.compile(r"([^()/]*)\)*$")


@lru_cache(65536)
def signature(name: str) -> tuple[str, str]:
    """The operation and the transformations that a profile's name ends with.

    XLA puts the name of a call before those of the operations that it inlines, so only what stands
    behind the last `jit` counts.

    >>> signature("jit(step)/jvp(block)/jit(step)/transpose(jvp())/mul")
    ('mul', 'transpose jvp')
    """
    parts, depth, start = [], 0, 0
    for i, c in enumerate(name):
        if c == "(":
            depth += 1
        elif c == ")":
            depth -= 1
        elif c == "/" and not depth:
            parts.append(name[start:i])
            start = i + 1
    parts.append(name[start:])
    while any("jit(" in part for part in parts[:-1]):
        del parts[0]
    tail = "/".join(parts[1:] if "jit(" in parts[0] and len(parts) > 1 else parts)
    kind = _KIND.search(tail)
    return kind[1] if kind else tail, " ".join(_TRANSFORM.findall(tail))


def groups(listings: Sequence[Listing], places: Places) -> list[list[int]]:
    """For each row of each form the number of its group, or `UNKNOWN`.

    Operations of a group have the same name, transformations and position; where the forms agree
    on it, they were called from the same lines, too.
    """
    keys = [_keys(listing, places) for listing in listings]
    return _numbered(_by_callers(keys, [x.place for x in listings]))


def sites(listings: Sequence[Listing], places: Places) -> list[list[int]]:
    """For each row of each form a number of its transformations and position, or `UNKNOWN`.

    It tells where an operation that has no relatives by its name became others, as by a
    decomposition.
    """
    keys = [_keys(listing, places) for listing in listings]
    return _numbered([[key and key[1:] for key in form] for form in keys])


def _keys(listing: Listing, places: Places) -> list[tuple[Hashable, ...] | None]:
    """Operation, transformations and position of each row."""
    keys: list[tuple[Hashable, ...] | None] = []
    for kind, own, name, place in zip(listing.kind, listing.operation, listing.name, listing.place,
                                      strict=True):
        if kind != OPERATION or own in _PLUMBING or not (name and place != UNKNOWN):
            keys.append(None)
        else:
            keys.append((*signature(name), places.position(place)))
    return keys


def _by_callers(keys: Sequence[Sequence[Hashable]], places: Sequence[Sequence[int]]
                ) -> list[list[Hashable]]:
    """The keys with the places, which know the callers, unless a form would then be alone.

    It would be where a function is called: the lowering writes it once, without its callers.
    """
    refined = [[None if key is None else (key, place) for key, place in zip(*pair, strict=True)]
               for pair in zip(keys, places, strict=True)]
    forms = _forms_of(refined)
    coarse = {key[0] for key, which in forms.items() if key is not None and not which & which - 1}
    return [[key if key in coarse else pair for key, pair in zip(*rows, strict=True)]
            for rows in zip(keys, refined, strict=True)]


def _forms_of(keys: Sequence[Sequence[_Key]]) -> dict[_Key, int]:
    """Which forms have a key, a bit each."""
    forms: dict[_Key, int] = {}
    for i, form in enumerate(keys):
        for key in set(form):
            forms[key] = forms.get(key, 0) | 1 << i
    return forms


def _numbered(keys: Sequence[Sequence[Hashable]]) -> list[list[int]]:
    """Numbers for the keys that more than one form has."""
    forms = _forms_of(keys)
    number: dict[Hashable, int] = {}
    for form in keys:  # in the order of the rows, whatever the order of sets is
        for key in form:
            which = forms[key]
            if key is not None and which & which - 1 and key not in number:
                number[key] = len(number)
    return [[number.get(key, UNKNOWN) for key in form] for form in keys]
