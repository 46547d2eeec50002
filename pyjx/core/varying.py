"""Varying types: along which axes of a mesh the devices may hold different values.

In a program for each device (`shard_map`) a value varies along an axis if an operand that it is
computed from does. What does not vary is the same on all devices along the axis, and so is its
cotangent: where a program takes such a value for one that varies (`pvary`), the transposed one adds
up the cotangents of all devices.

Two more types may be asked for along an axis. What is `unreduced` is a part of a sum that is yet to
be taken over the devices; it may go through linear operations. What is `reduced` is the same on all
devices, as the cotangent of what is unreduced is; its own cotangent is unreduced, so the sum of
`pvary` is left to the user.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pyjx.core.avals import AbstractRef, ShapedArray
from pyjx.core.bounded import kept
from pyjx.core.specs import ManualAxisType

if TYPE_CHECKING:
    from pyjx.core.avals import AbstractValue

Axes = frozenset[Any]
NO_AXES: Axes = frozenset()


@kept(1024)
def varying_type(axes: Axes) -> ManualAxisType | None:
    """The type over a mesh of what varies along these axes; None where there are none."""
    return ManualAxisType(varying=axes) if axes else None


def varying_axes(aval: AbstractValue) -> Axes:
    """The axes along which values of a type vary."""
    mat = aval.manual_axis_type
    return NO_AXES if mat is None else mat.varying  # type: ignore[no-any-return]


@kept(1024)
def manual_type(varying: Axes, unreduced: Axes, reduced: Axes) -> ManualAxisType | None:
    """The type over a mesh of what varies, is unreduced, and is reduced along these axes; None
    where there are none."""
    if not unreduced and not reduced:
        return varying_type(varying)
    return ManualAxisType(varying=varying, unreduced=unreduced, reduced=reduced)


def unreduced_axes(aval: AbstractValue) -> Axes:
    """The axes along which values of a type are yet to be summed."""
    mat = aval.manual_axis_type
    return NO_AXES if mat is None else mat.unreduced  # type: ignore[no-any-return]


def reduced_axes(aval: AbstractValue) -> Axes:
    """The axes along which values of a type have been summed."""
    mat = aval.manual_axis_type
    return NO_AXES if mat is None else mat.reduced  # type: ignore[no-any-return]


def with_varying(aval: AbstractValue, axes: Axes) -> Any:
    """The type with other axes along which it varies."""
    return with_manual_type(aval, manual_type(axes, unreduced_axes(aval), reduced_axes(aval)))


def with_manual_type(aval: AbstractValue, mat: ManualAxisType | None) -> Any:
    """The type with another one over the mesh."""
    if aval.manual_axis_type is mat:
        return aval
    if type(aval) is AbstractRef:
        return aval.update_manual_axis_type(mat)
    return aval.update(manual_axis_type=mat) if type(aval) is ShapedArray else aval


def joined(avals: Sequence[Any]) -> Axes:
    """The axes along which some of the types vary."""
    axes = NO_AXES
    for aval in avals:
        if aval.manual_axis_type is not None:
            axes = axes | aval.manual_axis_type.varying
    return axes
