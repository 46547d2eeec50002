"""Errors of `shard_map`, and of `smap` in its words."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from pyjx.core.avals import AbstractRef, AbstractValue, ShapedArray
from pyjx.core.jaxpr import Var
from pyjx.core.meshes import AbstractMesh, Mesh
from pyjx.core.specs import PartitionSpec, axes_of
from pyjx.parallel.calls import ordered

if TYPE_CHECKING:
    from pyjx.core.trace import DynamicJaxprTracer


def raise_too_long(what: str, by_axes: bool, fun: str, spec: PartitionSpec,
                   aval: ShapedArray | AbstractRef, where: str, kind: str) -> NoReturn:
    """Say that a spec, or an axis of `smap`, is for more dimensions than a value has."""
    varies = kind == "output" and aval.place.mat.varying
    cure = "Make the spec shorter." if aval.ndim else (
        f"A scalar {kind} that is not the same on all devices needs an axis, such as x[None], "
        "along which the devices' values lie side by side, or a sum by psum and `P()`."
        if varies else f"A scalar {kind} needs the {what} entry of `P()`.")
    if not aval.ndim and re.search(r"\]\[\d+\]( \(|$)", where):
        cure = "A list of numbers is a tree of scalars: give jnp.array of it."
    if by_axes:
        cure = f"Its last axis is {aval.ndim - 1}." if aval.ndim else cure.replace("`P()`", "None")
    raise ValueError(f"{'smap' if by_axes else 'shard_map'} applied to the function '{fun}' was "
                     f"given an {what} entry which is too long to be compatible with the "
                     f"corresponding {kind} value:\n\n{what} is {spec} which has length "
                     f"{len(spec)}, but {where} has shape {aval.str_short()}, which has rank "
                     f"{aval.ndim} (and {aval.ndim} < {len(spec)}). {cure}")


def raise_uneven(fun: str, mesh: Mesh | AbstractMesh, places: Sequence[tuple[str, str]],
                 uneven: Sequence[tuple[int, PartitionSpec, ShapedArray, int]]) -> NoReturn:
    """Say which arguments, by position, have a dimension that is not cut into equal parts."""
    said = []
    for i, spec, aval, d in uneven:
        axes, size = tuple(axes_of((spec[d],))), aval.shape[d]
        parts = math.prod([mesh.shape[a] for a in axes])
        place, name = places[i]
        said.append(f"{place} of shape {aval.str_short()}{name} has in_specs {spec}, which maps "
                    f"array axis {d} (of size {size}) to mesh axis "
                    f"{axes[0] if len(axes) == 1 else axes!r} (of size {parts}), but {parts} does "
                    f"not evenly divide {size}.")
    listed, them = "\n\n".join(said), "the argument" if len(said) == 1 else "the arguments"
    raise ValueError(f"shard_map applied to the function '{fun}' was given argument arrays with "
                     "axis sizes that are not evenly divisible by the corresponding mesh axis "
                     f"sizes:\n\nThe mesh given has shape {tuple(mesh.axis_sizes)} with "
                     f"corresponding axis names {mesh.axis_names}.\n\n{listed} Pad {them}, or "
                     "choose another mesh.")


def raise_varying(what: str, by_axes: bool, fun: str, mesh: Mesh | AbstractMesh,
                  spec: PartitionSpec, varying: frozenset[Any], where: str,
                  out: DynamicJaxprTracer) -> NoReturn:
    """Say that a result is said to be the same on all devices, and may not be."""
    cure = "Reduce it over these axes, such as with psum"
    if out.ndim:
        named = "say an axis" if by_axes else "name them"
        cure += f", or {named} in {what}, for the parts of all devices side by side"
    cure += "." if by_axes else (
        ". Where all devices give the same as it is, pass check_vma=False to shard_map.")
    if _is_gathered(out, varying):
        cure = ("It comes from all_gather, which gives all devices the same: have its type say "
                "so, all_gather(..., to='invarying').")
    claimed = ",".join(map(str, ordered(mesh, axes_of(spec))))
    inferred = ",".join(map(str, ordered(mesh, varying)))
    raise ValueError(
        f"{'smap' if by_axes else 'shard_map'} applied to the function '{fun}' was given {what} "
        "which require replication which can't be statically inferred given the mesh:\n\nThe mesh "
        f"given has shape {tuple(mesh.axis_sizes)} with corresponding axis names "
        f"{mesh.axis_names}.\n\n{what} is {spec} which implies that {where} is only varying "
        f"across mesh axes {{{claimed}}} and not {{{inferred}}}, but it was inferred to be "
        f"possibly varying over {{{inferred}}}.\n\n{cure}")


def raise_other_sums(name: str, spec: PartitionSpec, aval: AbstractValue, found: frozenset[Any],
                     are_explicit: bool) -> NoReturn:
    """Say that a result is `reduced`, or `unreduced`, along other axes (`found`) than a spec says,
    which may do so of axes that are Explicit."""
    if found <= getattr(spec, name):
        of = "differs from device to device" if name == "unreduced" else "is the same on all"
        cure = f"Leave {name} out, or cast what {of} by pcast(..., to='{name}')."
    else:
        cure = "Sum it by psum" if name == "unreduced" else (
            "It is the same on all devices: make it by all_gather(..., to='invarying')")
        if are_explicit:
            entries = [e if found.isdisjoint(axes_of((e,))) else None for e in spec]
            cure += f", or let out_specs be {PartitionSpec(*entries).update(**{name: found})}"
        cure += "."
    raise ValueError(
        f"out_specs passed to shard_map should be equal to the {name} present on the out_aval. Got "
        f"out_specs={spec} and out_aval={aval.str_short(True)}. {cure}")


def _is_gathered(out: DynamicJaxprTracer, axes: frozenset[Any]) -> bool:
    """Whether a value varies along these axes only as `all_gather` over them gave what it is of."""
    def varies(v: Var) -> bool:
        return not axes.isdisjoint(v.aval.place.mat.varying)

    needed, found = {out._var}, False
    for eqn in reversed(out._trace.eqns):
        if needed.isdisjoint(eqn.outvars):
            continue
        if eqn.primitive.name == "all_gather" and axes.issubset(eqn.params["axis_name"]) and (
                eqn.params["axis_index_groups"] is None):
            found = True
        elif eqn.primitive.name == "axis_index":
            return False
        elif any(map(varies, eqn.outvars)):
            needed.update([x for x in eqn.invars if isinstance(x, Var)])
    return found and not any([v in needed and varies(v) for v in out._trace.invars])
