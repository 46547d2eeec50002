"""Sums over a mesh that are yet to be taken, inside programs for each device.

Operands of one operation must agree: what is unreduced may go through linear operations, be added
to what is, and be multiplied by what is reduced. What is reduced goes with what is, and with what
varies, for which it is taken then.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pyjx.core.avals import ShapedArray
from pyjx.core.explicit import ShardingTypeError
from pyjx.core.varying import (
    NO_AXES,
    Axes,
    manual_type,
    reduced_axes,
    unreduced_axes,
    varying_axes,
    with_manual_type,
)

if TYPE_CHECKING:
    from pyjx.core.primitive import Primitive


def cotangent_aval(aval: Any) -> Any:
    """The type of cotangents: what is yet to be summed has been, and the other way round."""
    out = aval.to_tangent_aval()
    if type(out) is not ShapedArray:
        return out
    sharding = out.explicit_sharding
    if sharding is not None and (sharding.spec.unreduced or sharding.spec.reduced):
        out = out.update(sharding=sharding.update(spec=sharding.spec.to_ct_spec()))
    return with_manual_type(
        out, manual_type(varying_axes(out), reduced_axes(out), unreduced_axes(out)))


def sums_of_results(primitive: Primitive, avals: Sequence[Any]) -> tuple[Axes, Axes]:
    """The axes along which results are unreduced, and reduced.

    Raises:
      ShardingTypeError: the operation cannot come before the sum.
    """
    unreduced = [unreduced_axes(a) for a in avals]
    reduced = NO_AXES.union(*[reduced_axes(a) for a in avals])
    found = NO_AXES.union(*unreduced)
    if not found:
        return found, reduced
    name = primitive.name
    if primitive.additive and len(avals) > 1:
        if any([axes != found for axes in unreduced]):
            one, other = ("lhs", "rhs") if unreduced[0] else ("rhs", "lhs")
            raise ShardingTypeError(
                f"{one} is unreduced while {other} is not. `{name}` operation does not allow this "
                f"because there will be implicit communication. Please reduce {one} via psum "
                f"before calling `{name}`.")
    elif not primitive.linear:
        raise ShardingTypeError(
            f"{name} is a non-linear operation and cannot accept input that is unreduced. Got "
            f"{', '.join([a.str_short() for a in avals])}. Sum it with psum before.")
    elif sum(map(bool, unreduced)) > 1:
        sides = ", ".join([f"{side}={axes}" for side, axes in
                           zip(("lhs", "rhs"), unreduced, strict=False)])
        raise ShardingTypeError(f"lhs and rhs to `{name}` cannot be unreduced since {name} is "
                                f"bilinear. Got {sides}")
    return found, reduced - found


def check_agreement(primitive: Primitive, avals: Sequence[Any]) -> None:
    """Refuse operands that are the same on all devices along axes along which another one is
    reduced, or unreduced in a product: their cotangents would be of another type.

    Raises:
      ShardingTypeError: there are some.
    """
    reduced = NO_AXES.union(*[reduced_axes(a) for a in avals])
    unreduced = NO_AXES.union(*[unreduced_axes(a) for a in avals])
    for aval in avals:
        named = reduced_axes(aval) | unreduced_axes(aval)
        if not reduced <= named | varying_axes(aval):
            raise ShardingTypeError(
                "Inputs cannot be replicated on the same axes that another input is reduced on. "
                f"Got input type: {aval.str_short()} and reduced spec: {reduced}. Cast it by "
                "jax.lax.pcast(..., to='reduced').")
        if not primitive.additive and not unreduced <= named:
            sides = ", ".join([f"{side}={a.str_short()}" for side, a in
                               zip(("lhs", "rhs"), avals, strict=False)])
            one, other = ("RHS", "LHS") if unreduced_axes(avals[-1]) else ("LHS", "RHS")
            raise ShardingTypeError(f"{primitive}: {other} should be reduced along the same axes "
                                    f"{one} is unreduced on. Got {sides}")
