"""Collectives that the user forbids: `jax.sharding.no_collectives({"x"})`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from pyjx.core.specs import axes_of
from pyjx.interning import missing
from pyjx.states import Context, LocalState


class ForbiddenCollectiveError(Exception):
    """An operation needs a collective across an axis of the mesh across which there is to be none.

    Ways out: move the collective out of the context that forbids it, or leave its axis out of the
    set.
    """


class ForbiddenAxes(LocalState):
    """The axes of a mesh across which there are to be no collectives. Calling it with a set makes a
    context in which those are forbidden that shardings in types tell of, and those by name.

    >>> import pyjx as jax
    >>> with jax.sharding.no_collectives({"x"}):
    ...     jax.sharding.no_collectives.value
    ...
    frozenset({'x'})
    """

    __slots__ = ()

    def __call__(self, new_val: Any = missing) -> Context:
        if new_val is missing:
            raise TypeError(f"Context manager for {self.flag} config option requires an argument "
                            "representing the new value for the config option.")
        if not isinstance(new_val, (set, frozenset)):
            raise TypeError(f"Expected axis name(s) as set or frozenset, got {new_val} of type "
                            f"{type(new_val)}")
        return super().__call__(frozenset(new_val))


no_collectives = ForbiddenAxes("no_collectives", frozenset(), in_jit_key=True,
                               in_trace_context=True)


def check_collective(operation: str, does: str, axes: Iterable[Any], allowed: Collection[Any] = ()
                     ) -> None:
    """Raise ForbiddenCollectiveError if one of the axes of a mesh along which an operation `does`
    something is forbidden, and not among those that are `allowed`, as results say that the sum is
    yet to be taken."""
    for name in axes:
        if name in no_collectives.value and name not in allowed:
            raise ForbiddenCollectiveError(
                f"Collective across axis '{name}' is forbidden by `no_collectives`, but "
                f"`{operation}` {does.format(name)}.")


def check_types(operation: str, given: Sequence[Any], results: Sequence[Any]) -> None:
    """Raise ForbiddenCollectiveError if values are cut along a forbidden axis and results are
    neither cut along it nor yet to be summed over it."""
    if no_collectives.value:
        specs = [aval.place.spec for aval in results]
        stay = {name for spec in specs for name in (*axes_of(spec), *spec.unreduced)}
        for aval in given:
            check_collective(operation, "loses sharding axis '{}' in the output without marking it "
                             "unreduced", axes_of(aval.place.spec), stay)
