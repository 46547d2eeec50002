"""What the checks of a program have found, as values in the program that looks for it.

A site has a flag, which says whether its check was the first to fail, and a payload. What is in a
program for each device has these for each device (`Site.devices`), as each has a first failure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pyjx.core.avals import get_aval
from pyjx.core.jaxpr import ClosedJaxpr
from pyjx.core.records import Record
from pyjx.engine.axes import broadcast_in_dim
from pyjx.experimental.checkify.errors import Error, Site
from pyjx.lax.bitwise import bitwise_and, bitwise_not, bitwise_or
from pyjx.lax.compare import select
from pyjx.lax.convert import full
from pyjx.lax.reductions import argmax, reduce_or
from pyjx.lax.slicing import dynamic_index_in_dim

Entry = Sequence[Any]  # of a site: whether it failed first, and its payload


class Found:
    """What the checks up to some place of a program have found: whether one failed, and an entry
    for each site."""

    def __init__(self, failed: Any = None, entries: dict[Site, Entry] | None = None) -> None:
        self.failed = failed
        self.entries: dict[Site, Entry] = {} if entries is None else entries

    def join(self, later: Found) -> None:
        """Add what later checks have found, where no earlier one failed."""
        before = self.failed
        if later.failed is None:
            return
        if before is None:
            self.failed, self.entries = later.failed, dict(later.entries)
            return
        passed = bitwise_not(before)
        self.failed = bitwise_or(before, later.failed)
        for site, (first, *payload) in later.entries.items():
            first = bitwise_and(_spread(passed, first), first)
            old = self.entries.get(site)
            self.entries[site] = [first, *payload] if old is None else [
                bitwise_or(old[0], first),
                *[select(_spread(first, a), a, b) for a, b in zip(payload, old[1:], strict=True)]]

    def values(self, sites: Sequence[Site]) -> list[Any]:
        """As arrays: all of them, for the sites given."""
        values = [full((), False) if self.failed is None else self.failed]
        for site in sites:
            values += self.entries.get(site) or nothing_at(site)
        return values

    def error(self) -> Error:
        entries = list(self.entries.values())
        (failed,) = self.values(())
        return Error(failed, [e[0] for e in entries], tuple(self.entries),
                     [e[1:] for e in entries])


def _spread(flag: Any, like: Any) -> Any:
    """A flag for each of the leading positions of `like` as one for each of its elements."""
    flags, shape = get_aval(flag), get_aval(like).shape
    return flag if flags.shape == shape else broadcast_in_dim(flag, shape, tuple(range(flags.ndim)))


def nothing_at(site: Site) -> list[Any]:
    """The entry of a site where no check failed."""
    return [full(site.devices, False),
            *[full((*site.devices, *a.shape), 0, a.dtype) for a in site.payload_avals]]


def found(values: Sequence[Any], sites: Sequence[Site]) -> Found:
    """The inverse of `Found.values`."""
    left = iter(values)
    failed = next(left)
    return Found(failed, {s: [next(left), *[next(left) for _ in s.payload_avals]] for s in sites})


def n_values(sites: Sequence[Site]) -> int:
    return 1 + sum([1 + len(s.payload_avals) for s in sites])


def of_devices(values: Sequence[Any], sites: Sequence[Site]) -> Found:
    """What devices have found, whose values lie along a first axis."""
    each = found(values, sites)
    n = get_aval(each.failed).shape[0]
    return Found(reduce_or(each.failed, (0,)), {
        site.on_devices(n): entry for site, entry in each.entries.items()})


def of_lanes(values: Sequence[Any], sites: Sequence[Site], running: Any) -> Found:
    """What the first of some examples has found where a check failed, of those that run. The values
    of all lie along a first axis."""
    failed = bitwise_and(values[0], running)
    first = argmax(failed, 0, np.int32)
    taken = found([dynamic_index_in_dim(x, first, 0, False) for x in values], sites)
    taken.failed = dynamic_index_in_dim(failed, first, 0, False)
    for site, (flag, *payload) in taken.entries.items():
        flag = bitwise_and(flag, _spread(taken.failed, flag))
        taken.entries[site] = [flag, *payload]
    return taken


class Checked(Record):
    """A program with its checks; without sites it gives the results alone."""

    program: ClosedJaxpr
    sites: tuple[Site, ...]

    def run(self, outs: Sequence[Any]) -> tuple[Found, list[Any]]:
        """What was found, and the results, from what the program has given."""
        if not self.sites:
            return Found(), list(outs)
        n = n_values(self.sites)
        return found(outs[:n], self.sites), list(outs[n:])
