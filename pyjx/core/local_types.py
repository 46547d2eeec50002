"""Types at the border of programs for each device: of values, and of the parts devices have.

Axes of the mesh that are Explicit and not among those of the program stay in types on both sides.
"""

from __future__ import annotations

import math
from typing import Any

from pyjx.core.avals import AbstractRef
from pyjx.core.explicit import aval_on, entries_of, explicit_sharding, names_in_types, retyped
from pyjx.core.meshes import AxisType
from pyjx.core.specs import PartitionSpec, axes_of
from pyjx.core.varying import (
    manual_type,
    reduced_axes,
    unreduced_axes,
    varying_axes,
    with_manual_type,
)

__all__ = ["along", "aval_on", "global_aval", "local_aval"]


def along(spec: PartitionSpec, names: frozenset[Any]) -> PartitionSpec:
    """What a spec says of the axes of these names."""
    if spec.unreduced or spec.reduced:
        spec = spec.update(unreduced=spec.unreduced & names, reduced=spec.reduced & names,
                           unreduced_kind=None)
    return spec.update(partitions=[tuple([a for a in axes_of((p,)) if a in names]) for p in spec])


def local_aval(aval: Any, spec: PartitionSpec, mesh: Any, manual: frozenset[Any], check_vma: bool
               ) -> Any:
    """The type of the part that each device has of a value."""
    if type(aval) is AbstractRef:
        return aval.update(local_aval(aval.inner_aval, spec, mesh, manual, check_vma))
    sharding = aval.explicit_sharding
    if sharding is not None:
        rest = frozenset(mesh.axis_names) - manual
        inner = sharding.mesh.abstract_mesh.update_axis_types(
            dict.fromkeys(manual, AxisType.Manual))
        aval = retyped(aval, explicit_sharding(inner, along(sharding.spec, rest), aval.ndim))
    if spec == PartitionSpec():
        return aval
    sizes = mesh.shape
    shape = list(aval.shape)
    for i, entry in enumerate(spec):
        shape[i] //= math.prod([sizes[a] for a in axes_of((entry,))])
    out = aval.update(shape=tuple(shape))
    if not check_vma:
        return out
    named = frozenset(names_in_types(mesh, axes_of(spec)))
    return with_manual_type(out, manual_type(varying_axes(aval) | named,
                                             unreduced_axes(aval) | spec.unreduced,
                                             reduced_axes(aval) | spec.reduced))


def global_aval(aval: Any, spec: PartitionSpec, mesh: Any, manual: frozenset[Any]) -> Any:
    """The type of the value that devices have parts of this type of."""
    sizes = mesh.shape
    shape = list(aval.shape)
    entries = [tuple(axes_of((e,))) for e in entries_of(aval)]
    for i, entry in enumerate(spec):
        axes = axes_of((entry,))
        shape[i] *= math.prod([sizes[a] for a in axes])
        entries[i] = (*axes, *entries[i])
    out = with_manual_type(retyped(aval, None).update(shape=tuple(shape)), manual_type(
        varying_axes(aval) - manual, unreduced_axes(aval) - manual, reduced_axes(aval) - manual))
    sharding = aval.explicit_sharding
    inner = PartitionSpec() if sharding is None else sharding.spec
    whole = PartitionSpec(*entries, unreduced=spec.unreduced | inner.unreduced,
                          reduced=spec.reduced | inner.reduced,
                          unreduced_kind=spec.unreduced_kind or inner.unreduced_kind)
    return retyped(out, explicit_sharding(mesh.abstract_mesh, whole, out.ndim))
