"""What operations do to sums over a mesh that are yet to be taken: one table, for both modes.

Along an axis of a mesh a value may be unreduced, which is to say that each device has a part of a
sum, or reduced: the same on all devices, its cotangent being unreduced. Types say so by their
places (core/places.py), in programs for each device in another way than outside of these.
Along each axis, by the operands that an operation is linear in together (`Primitive.linear`):

- all of them unreduced, and what they are multiplied by reduced: the result is unreduced;
- only some of them unreduced, or one that the operation is not linear in: refused;
- all operands reduced: the result is reduced;
- some reduced, others copied on all devices: refused, as cotangents would be of two types;
- some reduced, others of which each device has its own: inside, `bind` takes all of them for such;
  outside it is refused.

Numbers and indices go with everything, as nobody asks for their cotangents over the mesh. Outside,
products of matrices may be of any operands: the result is reduced where all of them are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pyjx.core import dtypes
from pyjx.core.arithmetic import APART
from pyjx.core.places import Place
from pyjx.core.specs import NO_AXES, Axes, ManualAxisType, PartitionSpec, axes_of, spec_to_give
from pyjx.errors import ShardingTypeError

if TYPE_CHECKING:
    from pyjx.core.avals import AbstractRef, AbstractValue, ShapedArray
    from pyjx.core.primitive import Primitive


class Mode(NamedTuple):
    """How places tell of open sums: what says along which axes a value is unreduced and reduced;
    along which it is another one on each device; and what closes a sum."""

    sums: Callable[[Place], ManualAxisType | PartitionSpec]
    apart: Callable[[Place], Axes]
    cure: str

    def unreduced(self, aval: AbstractValue) -> Axes:
        return self.sums(aval.place).unreduced  # type: ignore[no-any-return]

    def reduced(self, aval: AbstractValue) -> Axes:
        return self.sums(aval.place).reduced  # type: ignore[no-any-return]


Sums = tuple[Axes, Axes]  # the axes along which a value is unreduced, and reduced

INSIDE = Mode(attrgetter("mat"), attrgetter("mat.varying"), "psum")
OUTSIDE = Mode(attrgetter("spec"), lambda place: frozenset(axes_of(place.spec)), "`reshard`")


def same_over_mesh(found: AbstractValue, expected: AbstractValue) -> bool:
    """Whether types of tangents or cotangents agree over a mesh: on each device they are the same
    part of a value. What has no sharding may take that which is expected, but for open sums."""
    given, wanted = found.place, expected.place
    return bool(
        given.mat == wanted.mat
        and (given.sharding is None or wanted.sharding is None or given.sharding == wanted.sharding)
        and given.spec.unreduced == wanted.spec.unreduced
        and given.spec.reduced == wanted.spec.reduced)


def closed_alike(a: AbstractValue, b: AbstractValue) -> bool:
    """Whether types inside a program for each device agree on which sums are yet to be taken, and
    which have been; what is reduced may be taken for what varies."""
    one, other = a.place.mat, b.place.mat
    return bool(one.unreduced == other.unreduced
                and one.reduced ^ other.reduced <= one.varying | other.varying)


# -- the table -------------------------------------------------------------------------------------


def sums_of_results(primitive: Primitive, avals: Sequence[Any], outs: Sequence[Any], mode: Mode
                    ) -> list[Sums]:
    """The axes along which each of the results `outs` is unreduced, and reduced.

    Raises:
      ShardingTypeError: the operation cannot come before the sum, or operands do not go together.
    """
    unreduced, reduced = list(map(mode.unreduced, avals)), list(map(mode.reduced, avals))
    if not any(unreduced) and not any(reduced):
        return [(NO_AXES, NO_AXES)] * len(outs)
    if primitive.linear is APART:
        return list(zip(unreduced, reduced, strict=True))
    found = NO_AXES.union(*unreduced)
    if found:
        _check_linear(primitive, avals, unreduced, outs, mode)
    axes = NO_AXES.union(*reduced)
    if mode is OUTSIDE:
        axes = checked_agreement(primitive, avals, mode)
    return [(found, axes - found)] * len(outs)


def _check_linear(primitive: Primitive, avals: Sequence[Any], unreduced: Sequence[Axes],
                  outs: Sequence[Any], mode: Mode) -> None:
    """Raise ShardingTypeError unless the operation is linear in the unreduced operands together,
    and in no other with them."""
    name, places = primitive.name, range(len(avals))
    found = NO_AXES.union(*unreduced)
    which = {i for i in places if unreduced[i]}
    together = [set(places[group]) for group in primitive.linear]
    if which in together and all([unreduced[i] == found for i in which]) and not (
            any([dtypes.issubdtype(avals[i].dtype, np.inexact) for i in which])
            and any([not dtypes.issubdtype(a.dtype, np.inexact) for a in outs])):
        return
    types = ", ".join([a.str_short() for a in avals])
    if any([which <= group for group in together]):
        one, other = ("lhs", "rhs") if unreduced[0] else ("rhs", "lhs")
        raise ShardingTypeError(
            f"{one} is unreduced while {other} is not. `{name}` operation does not allow this "
            f"because there will be implicit communication. Please reduce {one} via {mode.cure} "
            f"before calling `{name}`. Got {types}")
    if together and which <= set.union(*together):
        sides = ", ".join([f"{side}={axes}" for side, axes in
                           zip(("lhs", "rhs"), unreduced, strict=False)])
        raise ShardingTypeError(f"lhs and rhs to `{name}` cannot be unreduced since {name} is "
                                f"bilinear. Got {sides}")
    raise ShardingTypeError(f"{name} is a non-linear operation and cannot accept "
                            f"{'input that is' if len(avals) == 1 else 'inputs that are'} "
                            f"unreduced. Got {types}. Sum it with {mode.cure} before.")


def checked_agreement(primitive: Primitive, avals: Sequence[Any], mode: Mode) -> Axes:
    """The axes along which a result is reduced, or would be if no operand were unreduced.

    Raises:
      ShardingTypeError: an operand is the same on all devices along axes along which another one
        is reduced, or unreduced in a product: their cotangents would be of another type.
    """
    reduced = NO_AXES.union(*map(mode.reduced, avals))
    unreduced = NO_AXES.union(*map(mode.unreduced, avals))
    free = mode is OUTSIDE and primitive.contracts
    axes = reduced
    added = _added_to(primitive, avals, mode) if unreduced else ()
    for i, aval in enumerate(avals):
        named = mode.reduced(aval) | mode.unreduced(aval)
        if reduced | unreduced <= named or _goes_with_all(aval, mode):
            continue
        missing = reduced - named
        if free:
            axes -= missing
        elif mode is INSIDE:
            missing -= mode.apart(aval.place)
        if missing and not free:
            raise ShardingTypeError(_disagreement(aval, missing, reduced, mode))
        if not unreduced <= named and i not in added:
            sides = ", ".join([f"{side}={a.str_short()}" for side, a in
                               zip(("lhs", "rhs"), avals, strict=False)])
            one, other = ("RHS", "LHS") if mode.unreduced(avals[-1]) else ("LHS", "RHS")
            raise ShardingTypeError(f"{primitive.name}: {other} should be reduced along the same "
                                    f"axes {one} is unreduced on. Got {sides}")
    return axes


def _added_to(primitive: Primitive, avals: Sequence[Any], mode: Mode) -> set[int]:
    """Where operands stand in which the operation is linear together with an unreduced one."""
    places = range(len(avals))
    groups = [set(places[group]) for group in primitive.linear]
    return set().union(*[g for g in groups if any([mode.unreduced(avals[i]) for i in g])])


def _goes_with_all(aval: ShapedArray | AbstractRef, mode: Mode) -> bool:
    """Whether an operand has no cotangents, as indices and conditions, or is outside a number."""
    return (mode is OUTSIDE and not aval.shape) or not dtypes.issubdtype(aval.dtype, np.inexact)


def _disagreement(aval: AbstractValue, missing: Axes, reduced: Axes, mode: Mode) -> str:
    got = f"Got input type: {aval.str_short()} and reduced spec: {reduced}."
    if not missing.isdisjoint(mode.apart(aval.place)):
        return ("Inputs cannot be sharded/varying on the same axes that another input is reduced "
                f"on. {got} Reshard the one that is reduced to be sharded on these axes by "
                f"jax.reshard(..., {spec_to_give()}).")
    cast = "jax.lax.pcast(..., to='reduced')" if mode is INSIDE else (
        f"jax.reshard(..., {spec_to_give('jax.P(reduced=...)')})")
    return ("Inputs cannot be replicated on the same axes that another input is reduced on. "
            f"{got} Cast it by {cast}.")
