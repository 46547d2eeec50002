"""Errors as values: what a checked function returns beside its results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from pyjx.core import source_info
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.dtypes import is_extended
from pyjx.core.records import Record
from pyjx.core.trace import Tracer
from pyjx.core.tracebacks import api_boundary
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

    @api_boundary
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
