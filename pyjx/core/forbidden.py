"""Collectives that the user forbids: `jax.sharding.no_collectives({"x"})`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pyjx.core.specs import PartitionSpec, axes_of
from pyjx.states import Context, LocalState

_missing: Any = object()
_NOTHING = PartitionSpec()


class ForbiddenCollectiveError(Exception):
    """An operation needs a collective across an axis of the mesh across which there is to be none.
    """


class ForbiddenAxes(LocalState):
    """The axes of a mesh across which there are to be no collectives. Calling it with a set makes a
    context in which those are forbidden that shardings in types tell of, and those by name.

    >>> import pyjx as jax
    >>> with jax.sharding.no_collectives({"x"}):
    ...     jax.sharding.no_collectives.value
    frozenset({'x'})
    """

    __slots__ = ()

    def __call__(self, new_val: Any = _missing) -> Context:
        if new_val is _missing:
            raise TypeError(f"Context manager for {self.flag} config option requires an argument "
                            "representing the new value for the config option.")
        if not isinstance(new_val, (set, frozenset)):
            raise TypeError(f"Expected axis name(s) as set or frozenset, got {new_val} of type "
                            f"{type(new_val)}")
        return super().__call__(frozenset(new_val))


def check_names(forbidden: frozenset[Any], operation: str, names: Iterable[Any]) -> None:
    """Raise ForbiddenCollectiveError if an operation names a forbidden axis of a mesh."""
    for name in names:
        if name in forbidden:
            raise ForbiddenCollectiveError(
                f"Collective across axis '{name}' is forbidden by `no_collectives`, but "
                f"`{operation}` acts on axis '{name}'.")


def check_types(forbidden: frozenset[Any], operation: str, given: Sequence[Any],
                results: Sequence[Any]) -> None:
    """Raise ForbiddenCollectiveError if values are cut along a forbidden axis and results are
    neither cut along it nor yet to be summed over it."""
    kept: set[Any] = set()
    for spec in map(_spec_of, results):
        kept.update(axes_of(spec), spec.unreduced)
    for aval in given:
        for name in axes_of(_spec_of(aval)):
            if name in forbidden and name not in kept:
                raise ForbiddenCollectiveError(
                    f"Collective across axis '{name}' is forbidden by `no_collectives`, but "
                    f"`{operation}` loses sharding axis '{name}' in the output without marking it "
                    "unreduced.")


def check_contracted(forbidden: frozenset[Any], operation: str, contracted: Iterable[Any],
                     unreduced: frozenset[Any]) -> None:
    """Raise ForbiddenCollectiveError if a product sums along a forbidden axis."""
    for name in contracted:
        if name in forbidden and name not in unreduced:
            raise ForbiddenCollectiveError(
                f"Collective across axis '{name}' is forbidden by `no_collectives`, but "
                f"`{operation}` contracts over axis '{name}' without marking it unreduced in the "
                "output.")


def _spec_of(aval: Any) -> PartitionSpec:
    sharding = aval.explicit_sharding
    return _NOTHING if sharding is None else sharding.spec
