"""Types at the border of programs for each device: of values, and of the parts devices have."""

from __future__ import annotations

import math
from typing import Any

from pyjx import configuration
from pyjx.core.avals import AbstractRef
from pyjx.core.explicit import aval_on, explicit_sharding, names_in_types, retyped
from pyjx.core.specs import PartitionSpec, axes_of
from pyjx.core.varying import varying_axes, with_varying

__all__ = ["aval_on", "global_aval", "local_aval"]


def local_aval(aval: Any, spec: PartitionSpec, mesh: Any, check_vma: bool) -> Any:
    """The type of the part that each device has of a value."""
    if type(aval) is AbstractRef:
        return aval.update(local_aval(aval.inner_aval, spec, mesh, check_vma))
    aval = retyped(aval, None)
    if not len(spec):
        return aval
    sizes = mesh.shape
    shape = list(aval.shape)
    for i, entry in enumerate(spec):
        shape[i] //= math.prod([sizes[a] for a in axes_of((entry,))])
    out = aval.update(shape=tuple(shape))
    named = names_in_types(mesh, axes_of(spec))
    return with_varying(out, varying_axes(aval).union(named)) if check_vma else out


def global_aval(aval: Any, spec: PartitionSpec, mesh: Any, manual: frozenset[Any]) -> Any:
    """The type of the value that devices have parts of this type of."""
    sizes = mesh.shape
    shape = list(aval.shape)
    for i, entry in enumerate(spec):
        shape[i] *= math.prod([sizes[a] for a in axes_of((entry,))])
    out = with_varying(aval.update(shape=tuple(shape)), varying_axes(aval) - manual)
    context = configuration.abstract_mesh.value
    if context is not None and context.manual_axes:  # another one is around
        return out
    return retyped(out, explicit_sharding(mesh.abstract_mesh, spec, out.ndim))
