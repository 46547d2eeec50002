"""Errors as values: what the checks of a program have found, and what a checked function returns
beside its results.

A site has a flag, which says whether its check was the first to fail, and a payload. What is in a
program for each device has these for each device (`Site.devices`), as each has a first failure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from pyjx.core import source_info
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.dtypes import is_extended
from pyjx.core.jaxpr import ClosedJaxpr
from pyjx.core.records import Record
from pyjx.core.trace import Tracer
from pyjx.engine.axes import broadcast_in_dim
from pyjx.guards import guard
from pyjx.lax.bitwise import bitwise_and, bitwise_not, bitwise_or
from pyjx.lax.compare import select
from pyjx.lax.convert import full
from pyjx.lax.reductions import argmax, reduce_or
from pyjx.lax.slicing import dynamic_index_in_dim
from pyjx.tree_util import register_pytree_node_class


def on_host(x: Any) -> Any:
    """What a message shows; random keys have no form for NumPy, and stay as they are."""
    return x if is_extended(get_aval(x).dtype) else np.asarray(x)


class JaxException(Exception):
    """A check that failed."""


class NaNError(JaxException):
    """An operation gave a NaN."""


class OOBError(JaxException):
    """An index was out of bounds."""


class DivisionByZeroError(JaxException):
    """Something was divided by zero."""


class FailedCheckError(JaxException):
    """What `check` tests did not hold."""


class JaxRuntimeError(ValueError):
    """Raised by `Error.throw`, with the error as its text."""


ErrorCategory: TypeAlias = type[JaxException]

user_checks: frozenset[ErrorCategory] = frozenset({FailedCheckError})
nan_checks: frozenset[ErrorCategory] = frozenset({NaNError})
index_checks: frozenset[ErrorCategory] = frozenset({OOBError})
div_checks: frozenset[ErrorCategory] = frozenset({DivisionByZeroError})
float_checks = nan_checks | div_checks
automatic_checks = float_checks | index_checks
all_checks = automatic_checks | user_checks

class Site:
    """A place in a program where something is checked.

    Args:
      category: the class of its error.
      message: from the payload of a failure, as NumPy arrays, to its text.
      payload_avals: the types of the payload.
      source: where it stands in the user's program.
      devices: leading dimensions of the flags and of the payload, where devices have their own.
    """

    __slots__ = ("category", "devices", "message", "payload_avals", "source")

    def __init__(self, category: ErrorCategory, message: Callable[..., str],
                 payload_avals: Sequence[ShapedArray], source: Any,
                 devices: tuple[int, ...] = ()) -> None:
        self.category = category
        self.message = message
        self.payload_avals = tuple(payload_avals)
        self.source = source
        self.devices = devices

    def on_devices(self, n: int) -> Site:
        """The site in a program for each of `n` devices."""
        return Site(self.category, self.message, self.payload_avals, self.source,
                    (n, *self.devices))


class Failure(Record):
    """A check that failed first, for an example and a device.

    Attributes:
      place: of the example and the device, along the axes of the error and of its site.
      site: where.
      payload: what its message shows.
    """

    place: tuple[int, ...]
    site: Site
    payload: list[Any]

    def exception(self) -> JaxException:
        error = self.site.category(self.site.message(*self.payload))
        place = source_info.summarize(self.site.source)
        if place:
            error.add_note(f"The check stands at {place}.")
        return error


@guard
@register_pytree_node_class
class Error:
    """Whether a check failed, and which did first. A pytree, so functions may return it from `jit`,
    and `vmap` gives one for each example.

    Args:
      _pred: boolean array, whether one failed.
      _code: for each site a boolean array, whether it is the one that failed first.
      _metadata: the sites.
      _payload: for each site what its message shows.
    """

    __slots__ = ("_code", "_metadata", "_payload", "_pred")

    def __init__(self, _pred: Any, _code: Sequence[Any], _metadata: tuple[Site, ...],
                 _payload: Sequence[Sequence[Any]]) -> None:
        self._pred = _pred
        self._code = _code
        self._metadata = _metadata
        self._payload = _payload

    def tree_flatten(self) -> tuple[Any, Any]:
        return ((self._pred, list(self._code), [list(p) for p in self._payload]), self._metadata)

    @classmethod
    def tree_unflatten(cls, metadata: Any, data: Any) -> Error:
        pred, code, payload = data
        return cls(pred, code, metadata, payload)

    def get(self) -> str | None:
        """The text of the error, or None if no check failed.

        >>> from pyjx.experimental.checkify import init_error
        >>> init_error.get() is None
        True
        """
        error = self.get_exception()
        return None if error is None else str(error)

    def get_exception(self) -> JaxException | None:
        """The error as an exception, or None if no check failed.

        >>> from pyjx.experimental.checkify import init_error
        >>> init_error.get_exception() is None
        True
        """
        if isinstance(self._pred, Tracer):
            raise ValueError("Error.get: the error is a traced value here; look at it outside of "
                             "the transformed function, or pass it to checkify.check_error.")
        failures = self.failures()
        if not failures:
            return None
        if not failures[0].place:
            return failures[0].exception()
        each = [(f.place, f.exception()) for f in failures]
        lines = [f"at mapped index {', '.join(map(str, index))}: {error}" for index, error in each]
        return type(each[0][1])("\n".join(lines))

    def failures(self) -> list[Failure]:
        """The check that failed first of each example and device that has one, in their order."""
        examples = np.ndim(self._pred)
        found = [
            Failure(tuple(map(int, index)), site, [on_host(x)[tuple(index)] if len(index) else
                                                   on_host(x) for x in payload])
            for site, flags, payload in zip(self._metadata, self._code, self._payload, strict=True)
            for index in np.argwhere(np.asarray(flags))
            if bool(np.asarray(self._pred)[tuple(index[:examples])])]
        return sorted(found, key=lambda f: f.place)

    def first_failure(self) -> tuple[Site, list[Any]] | None:
        """The site of the check that failed first, for the first example if there are several, and
        what its message shows; None if no check failed.

        >>> from pyjx.experimental.checkify import init_error
        >>> init_error.first_failure() is None
        True
        """
        failures = self.failures()
        return (failures[0].site, failures[0].payload) if failures else None

    def throw(self) -> None:
        """Raise an exception if a check failed.

        Raises:
          JaxRuntimeError: with the text of the error.

        >>> from pyjx.experimental.checkify import init_error
        >>> init_error.throw()
        """
        error = self.get_exception()
        if error is not None:
            raise JaxRuntimeError(str(error)) from error

    def __str__(self) -> str:
        known = hasattr(self._pred, "__array__") and not isinstance(self._pred, Tracer)
        return f"Error({self.get() if known else self._pred})"  # a tracer, or a ShapeDtypeStruct

    __repr__ = __str__


init_error = Error(np.bool_(False), (), (), ())


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
