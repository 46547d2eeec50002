"""What operations do to sums over a mesh that are yet to be taken: one table, for both modes.

Along an axis of a mesh a value may be unreduced, which is to say that each device has a part of a
sum, or reduced: the same on all devices, its cotangent being unreduced. In programs for each device
the type over the mesh says so (core/varying.py), outside of these the sharding (core/explicit.py).
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
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pyjx.core import dtypes
from pyjx.core.avals import ShapedArray
from pyjx.core.linearity import APART
from pyjx.core.specs import PartitionSpec, axes_of
from pyjx.core.varying import (
    NO_AXES,
    Axes,
    joined,
    manual_type,
    reduced_axes,
    unreduced_axes,
    varying_axes,
    with_manual_type,
)

if TYPE_CHECKING:
    from pyjx.core.avals import AbstractRef, AbstractValue
    from pyjx.core.primitive import Primitive


class ShardingTypeError(Exception):
    """Shardings of operands do not go together, or do not say how the result lies."""


class Mode(NamedTuple):
    """How types tell of open sums: the axes along which a value of a type is unreduced, reduced,
    and another one on each device; and what closes a sum."""

    unreduced: Callable[[Any], Axes]
    reduced: Callable[[Any], Axes]
    apart: Callable[[Any], Axes]
    cure: str


Sums = tuple[Axes, Axes]  # the axes along which a value is unreduced, and reduced

_NOTHING = PartitionSpec()


def spec_of(aval: AbstractValue) -> PartitionSpec:
    """What the sharding of a type says."""
    sharding = aval.explicit_sharding
    return _NOTHING if sharding is None else sharding.spec


INSIDE = Mode(unreduced_axes, reduced_axes, varying_axes, "psum")
OUTSIDE = Mode(lambda aval: spec_of(aval).unreduced, lambda aval: spec_of(aval).reduced,
               lambda aval: frozenset(axes_of(spec_of(aval))), "`reshard`")


def is_open(aval: AbstractValue) -> bool:
    """Whether values of a type are yet to be summed over a mesh."""
    return bool(unreduced_axes(aval) or spec_of(aval).unreduced)


# -- cotangents ------------------------------------------------------------------------------------


def cotangent_aval(aval: AbstractValue) -> Any:
    """The type of cotangents: what is yet to be summed has been, and the other way round."""
    out = aval.to_tangent_aval()
    if type(out) is not ShapedArray:
        return out
    sharding, mat = out.explicit_sharding, out.manual_axis_type
    if sharding is not None and (sharding.spec.unreduced or sharding.spec.reduced):
        out = out.update(sharding=sharding.update(spec=sharding.spec.to_ct_spec()))
    if mat is not None and (mat.unreduced or mat.reduced):
        out = with_manual_type(out, manual_type(mat.varying, mat.reduced, mat.unreduced))
    return out


def same_over_mesh(found: Any, expected: Any) -> bool:
    """Whether types of tangents or cotangents agree over a mesh: on each device they are the same
    part of a value. What has no sharding may take that which is expected, but for open sums."""
    given, wanted = found.explicit_sharding, expected.explicit_sharding
    return bool(
        found.manual_axis_type == expected.manual_axis_type
        and (given is None or wanted is None or given == wanted)
        and OUTSIDE.unreduced(found) == OUTSIDE.unreduced(expected)
        and OUTSIDE.reduced(found) == OUTSIDE.reduced(expected))


def closed_alike(a: Any, b: Any) -> bool:
    """Whether types inside a program for each device agree on which sums are yet to be taken, and
    which have been; what is reduced may be taken for what varies."""
    apart = reduced_axes(a) ^ reduced_axes(b)
    return bool(unreduced_axes(a) == unreduced_axes(b)
                and apart <= varying_axes(a) | varying_axes(b))


# -- the table -------------------------------------------------------------------------------------


def results_inside(primitive: Primitive, rule: Callable[..., Any], avals: Sequence[Any],
                   params: dict[str, Any]) -> Any:
    """What a shape rule, which knows nothing of meshes, says of operands with types over a mesh:
    results vary along all axes that operands do."""
    axes = joined(avals)
    out = rule(*[with_manual_type(a, None) for a in avals], **params)
    outs = list(out) if primitive.multiple_results else [out]
    typed = [with_manual_type(a, manual_type(axes | varying_axes(a), *sums)) for a, sums in zip(
        outs, sums_of_results(primitive, avals, outs, INSIDE), strict=True)]
    return typed if primitive.multiple_results else typed[0]


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
    raise ShardingTypeError(
        f"{name} is a non-linear operation and cannot accept "
        f"{'input that is' if len(avals) == 1 else 'inputs that are'} unreduced. Got {types}. "
        f"Sum it with {mode.cure} before.")


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
            missing -= varying_axes(aval)
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
    if not missing.isdisjoint(mode.apart(aval)):
        return ("Inputs cannot be sharded/varying on the same axes that another input is reduced "
                f"on. {got} Reshard the one that is reduced to be sharded on these axes by "
                "jax.sharding.reshard.")
    cast = "jax.lax.pcast(..., to='reduced')" if mode is INSIDE else (
        "jax.sharding.reshard(..., jax.P(reduced=...))")
    return ("Inputs cannot be replicated on the same axes that another input is reduced on. "
            f"{got} Cast it by {cast}.")
