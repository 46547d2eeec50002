"""Which rows of several forms come from the same operation of the user's."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Hashable, Sequence
from functools import lru_cache, partial
from typing import TypeVar

from pyjx.runtime.touched import plain
from pyjx.viewer.listing import OPERATION, UNKNOWN, Listing, Places, name_parts

_Key = TypeVar("_Key", bound=Hashable)

_TRANSFORM = re.compile(r"([\w.\-]+)\(")
# XLA gives them the name of the operation beside them.
_PLUMBING = frozenset(("get-tuple-element", "parameter", "tuple"))
_PRODUCTS = {"conv": "convolution", "convolution": "convolution", "dot": "dot"}
_KIND = re.compile(r"([^()/]*)\)*$")


@lru_cache(65536)
def signature(name: str) -> tuple[str, str]:
    """The operation and the transformations that a profile's name ends with.

    >>> signature("jit(step)/jvp(block)/jit(step)/transpose(jvp())/mul")
    ('mul', 'transpose jvp')
    """
    tail = "/".join(name_parts(name))
    kind = _KIND.search(tail)
    return kind[1] if kind else tail, " ".join(_TRANSFORM.findall(tail))


def links(listings: Sequence[Listing], places: Places) -> list[tuple[list[int], list[int]]]:
    """For each row of each form the number of its group and that of its site, or `UNKNOWN`.

    Operations of a group have the same name, transformations and position; where the forms agree
    on it, they were called from the same lines, too. Those of a site have the same transformations
    and position: it tells where an operation without relatives became others, as by a
    decomposition.
    """
    keys = [_keys(listing, places) for listing in listings]
    groups = _numbered(_by_callers(keys, [x.place for x in listings]))
    sites = _numbered([[key and key[1:] for key in form] for form in keys])
    return list(zip(groups, sites, strict=True))


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


def name_transfers(listing: Listing, before: Listing) -> None:
    """Give what moves values to the host or from it the names and places of what says so before:
    XLA gives it none, or those of the loop around it. What moves as much in one direction comes in
    the same order."""
    found = _transfers(before)
    for key, rows in _transfers(listing).items():
        said = found.get(key, [])
        if len({before.place[r] for r in said}) == 1:
            said = said[:1] * len(rows)
        for row, source in zip(rows, said, strict=False) if len(said) == len(rows) else ():
            listing.name[row], listing.place[row] = before.name[source], before.place[source]


def _transfers(listing: Listing) -> dict[tuple[bool, float], list[int]]:
    """The rows that move values to the host (True) or from it, by the bytes that they move."""
    found: dict[tuple[bool, float], list[int]] = {}
    for row, moved in listing.to_host.items():
        found.setdefault((row in listing.on_host, moved), []).append(row)
    return found


def name_products(listing: Listing, before: Listing, places: Places) -> None:
    """Give products to which XLA gave no name, or that of what it has folded into them, the names
    of those before which have no relative and are as much arithmetic: such as that of a matrix and
    a vector which it makes one of two matrices, or one whose result is transposed."""
    keys, earlier = _keys(listing, places), _keys(before, places)
    known = {key for key, traffic in zip(keys, listing.traffic, strict=True) if traffic}
    paths, earlier_paths = ([tuple(name_parts(name)) for name in form.name]
                            for form in (listing, before))
    kinds, earlier_kinds = (_products(form) for form in (listing, before))
    there = Counter(zip(keys, paths, kinds, strict=True))
    lost: dict[tuple[str, float] | None, list[int]] = {}
    for row, product in enumerate(zip(earlier, earlier_paths, earlier_kinds, strict=True)):
        there[product] -= 1
        if product[2] and product[0] and there[product] < 0:
            lost.setdefault(product[2], []).append(row)

    def distance(row: int, of: int) -> tuple[bool, bool, bool, int]:
        """Of another site, with a name that others have, in other scopes; the last to be taken."""
        key, other = keys[row], earlier[of] or ()
        return (key is not None and key[1:] != other[1:], other in known,
                paths[row][:-1] != earlier_paths[of][:-1], of)

    for row, name in enumerate(listing.name):
        found = lost.get(kinds[row])
        if found and not (name and _kind_of_product(signature(name)[0])):
            of = min(found, key=partial(distance, row))
            found.remove(of)
            listing.name[row], listing.place[row] = before.name[of], before.place[of]


def count_kernels(listing: Listing, jaxpr: Listing, places: Places) -> None:
    """Give kernels, which a form holds as code, the arithmetic of those of the jaxpr that are
    called from the same lines, or at least written there, and give as much, in their order."""
    def alike(form: Listing, row: int) -> list[deque[float]]:
        place, size = form.place[row], form.size[row]
        keys = filter(None, (places.stack(place), places.position(place)))
        return [known.setdefault((key, size), deque()) for key in keys]

    known = dict[Hashable, deque[float]]()
    for row in filter(jaxpr.is_fused, jaxpr.bodies):
        for kernels in alike(jaxpr, row):
            kernels.append(jaxpr.flops[row])
    for row, operation in enumerate(listing.operation):
        if plain(operation) == "custom_call" and not listing.own[row]:
            for kernels in [*filter(None, alike(listing, row))][:1]:
                listing.own[row] = kernels[0]
                kernels.rotate(-1)  # what is written once may be inlined several times
    listing.add_up()


def _products(listing: Listing) -> list[tuple[str, float] | None]:
    """For each row the kind of product that it is, and how much arithmetic; None for others."""
    return [(kind, flops) if flops and (kind := _kind_of_product(operation)) else None
            for operation, flops in zip(listing.operation, listing.flops, strict=True)]


def _kind_of_product(operation: str) -> str | None:
    return _PRODUCTS.get(plain(operation).partition("_")[0])  # as in all forms


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
