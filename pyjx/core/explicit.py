"""Places of results, and shardings in types, operation by operation.

Shape rules know nothing of places (core/places.py): `joined_results` makes those of an operation's
results of those of its operands. It asks the primitive's `sharding_rule` where an operand is cut
along an Explicit axis of a mesh; before such a program is lowered its types become constraints
(`pyjx/runtime/typed_shardings.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from pyjx import configuration
from pyjx.core.avals import AbstractRef, AbstractValue, ShapedArray, cotangent_aval
from pyjx.core.forbidden import check_types
from pyjx.core.layouts import ShardingLike
from pyjx.core.meshes import AbstractMesh
from pyjx.core.open_sums import INSIDE, OUTSIDE, sums_of_results
from pyjx.core.places import (
    HERE,
    UNIFORM,
    Space,
    axes_text,
    dims_text,
    explicit_sharding,
    joined,
    names_no_mesh,
    parts_along,
)
from pyjx.core.specs import PartitionSpec, axes_of, reshard_first
from pyjx.errors import ShardingTypeError
from pyjx.jaxlib_api import NamedSharding, Sharding

if TYPE_CHECKING:
    from pyjx.core.primitive import Primitive

Entries = tuple[Any, ...]  # for each dimension an axis, a tuple of axes, or None


# -- types -----------------------------------------------------------------------------------------


def entries_of(aval: ShapedArray | AbstractRef) -> Entries:
    """For each dimension the axes that it is cut along."""
    place = aval.place
    return (None,) * aval.ndim if place.sharding is None else tuple(place.spec)


def spec_of(aval: Any, dim: Any) -> Any:
    """Where values of a library's type have an axis that arrays have at `dim`.

    Raises:
      NotImplementedError: it is not the first one, of which alone types tell.
    """
    if not aval.is_high or type(dim) is not int:
        return dim
    if dim:
        raise NotImplementedError(
            f"vmap: values of type {aval} are the elements of a loop, and would have the axis that "
            "is mapped behind that of these, where their type knows of none. Map over arrays, and "
            "have such values inside of the loop.")
    return aval.leading_axis_spec()


def without_dim(aval: ShapedArray | AbstractRef, dim: int, size: Any = None) -> Any:
    """The type of a part of an array along one dimension, or of one of `size` values of a library's
    type, which lie as `dim` says: first ones if that is a number."""
    if aval.is_high:
        return aval.dec_rank(size, spec_of(aval, dim))
    return _reshaped(aval, (*aval.shape[:dim], *aval.shape[dim + 1:]),
                     lambda entries: (*entries[:dim], *entries[dim + 1:]))


def with_dim(aval: ShapedArray | AbstractRef, dim: int, size: Any, entry: Any = None,
             cut: Any = None) -> Any:
    """The type of `size` arrays along a new dimension.

    It is cut along the axes `entry`, or as a vector is that has the sharding `cut`.
    """
    if aval.is_high:
        return aval.inc_rank(size, spec_of(aval, dim))
    if cut is not None:
        (entry,) = cut.spec
    return _reshaped(aval, (*aval.shape[:dim], size, *aval.shape[dim:]),
                     lambda entries: (*entries[:dim], entry, *entries[dim:]), cut)


def _reshaped(aval: Any, shape: tuple[Any, ...], moved: Callable[[Entries], Entries],
              cut: Any = None) -> Any:
    sharding = aval.place.sharding
    if sharding is None and cut is None:
        return aval.with_shape(shape)
    if type(aval) is not ShapedArray:  # a reference
        return aval.update(_reshaped(aval.inner_aval, shape, moved, cut))
    if sharding is None:
        sharding = cut.update(mesh=cut.mesh.abstract_mesh, spec=PartitionSpec())
    spec = sharding.spec.update(partitions=moved(entries_of(aval)))
    return aval.update(shape=shape, sharding=explicit_sharding(sharding.mesh, spec, len(shape)))


def replicated(ndim: int, *avals: Any) -> Any:
    """The sharding that copies values of this rank along the mesh of these types; None where they
    have no sharding."""
    for aval in avals:
        sharding = aval.place.sharding
        if sharding is not None:
            return HERE.sharding_along(sharding.mesh, ndim)
    return None


def sharding_of_sums(aval: AbstractValue, ndim: int) -> Any:
    """The sharding of values of this rank that are not cut, and yet to be summed, or have been, as
    those of a type are; None where these are neither."""
    place = aval.place
    spec = place.spec
    if not spec.unreduced and not spec.reduced:
        return None
    return NamedSharding(place.sharding.mesh, spec.update(partitions=[None] * ndim))


def batched_sharding(sharding: Sharding | None, dim: int, x: Any, x_dim: int) -> Any:
    """The `out_sharding` for a batch along dimension `dim`, which lies as dimension `x_dim` of a
    value of type `x`; None for None."""
    if sharding is None:
        return None
    entries = list(sharding.spec)
    entries.insert(dim, entries_of(x)[x_dim])
    return sharding.update(spec=sharding.spec.update(partitions=entries))


def sharding_for(aval: ShapedArray | AbstractRef, ct: Any) -> Any:
    """The `out_sharding` of what turns a cotangent of type `ct` into one of a value of type
    `aval`; None where neither has a sharding."""
    return cotangent_aval(aval).place.sharding or replicated(aval.ndim, ct)


def along_the_mesh_that_is_set(spec: PartitionSpec, caller: str) -> NamedSharding:
    """Raise ValueError if none is."""
    mesh = configuration.abstract_mesh.value
    if mesh is None:
        raise ValueError("Using PartitionSpec when you are not under a mesh context is not "
                         "allowed. Please pass a NamedSharding instance or enter into a mesh "
                         f"context via `jax.set_mesh`. {caller} got {spec}")
    return NamedSharding(mesh, spec)


def check_out_sharding(sharding: ShardingLike, caller: str, of_context: bool = True) -> None:
    """Check what was given as an `out_sharding`; `of_context` says that it is along the mesh that
    is set, if one is.

    Raises:
      TypeError: it is no sharding over a mesh.
      ValueError: it is along another mesh, names a memory, or an axis that is not Explicit.
    """
    if not isinstance(sharding, (NamedSharding, PartitionSpec)):
        raise TypeError(f"`out_sharding` argument of {caller} only supports instances of "
                        f"`NamedSharding` or `PartitionSpec`. Got {sharding!r} of type: "
                        f"{type(sharding)}. " + (
                            f"A spec is jax.P({sharding!r})." if isinstance(sharding, str) else
                            "To put an array on a device use jax.device_put."))
    context = configuration.abstract_mesh.value
    if isinstance(sharding, PartitionSpec):
        mesh, spec = context, sharding
    else:
        mesh, spec = sharding.mesh.abstract_mesh, sharding.spec
        if sharding.memory_kind not in (None, "device"):
            raise ValueError(
                "sharding with memory_kind is not allowed. Please use `jax.device_put` to transfer "
                f"to different memory spaces. Got sharding={sharding} passed to {caller}.")
        if of_context and context is not None and not mesh.empty and (
                mesh.shape_tuple != context.shape_tuple or mesh.axis_types != context.axis_types):
            raise ValueError(f"Context mesh {context} should match the mesh of sharding {mesh} "
                             f"passed to {caller}. Pass a PartitionSpec, or set the other mesh.")
    if mesh is None:
        return
    for axis in axes_of(spec):
        if axis in mesh.axis_names and axis not in mesh.explicit_axes:
            kind = dict(zip(mesh.axis_names, mesh.axis_types, strict=True))[axis]
            raise ValueError(f"PartitionSpec passed to {caller} cannot contain axis names that are "
                             f"of type Auto or Manual. Got PartitionSpec: {spec} with axis name: "
                             f"{axis} of type: AxisType.{kind.name}." + (
                                 " Along Auto axes jax.device_put puts arrays, and inside jit "
                                 "jax.lax.with_sharding_constraint asks for it."
                             ) * (kind.name == "Auto"))


def abstract_sharding(sharding: Sharding | PartitionSpec, caller: str, of_context: bool = True
                     ) -> Any:
    """What was given as an `out_sharding`: a NamedSharding over an abstract mesh, or None if it
    names no mesh. A spec is along the mesh that is set.

    Raises:
      ValueError: no mesh is set, or as `check_out_sharding` says.
      TypeError: as there.
    """
    check_out_sharding(sharding, caller, of_context)
    if isinstance(sharding, PartitionSpec):
        sharding = along_the_mesh_that_is_set(sharding, caller)
    return None if names_no_mesh(sharding) else \
        NamedSharding(sharding.mesh.abstract_mesh, sharding.spec)


def resolved_sharding(sharding: ShardingLike, shape: Sequence[Any], caller: str,
                      of_context: bool = True) -> Any:
    """The `abstract_sharding` of a result of this shape, with an entry for each dimension.

    Raises:
      ValueError: as there, or it does not fit the shape.
      TypeError: as there.
    """
    sharding = abstract_sharding(sharding, caller, of_context)
    return None if sharding is None else fitting(sharding, shape)


def permuted_sharding(sharding: Sharding | None, permutation: Sequence[int]) -> Any:
    """A resolved sharding, or none, of the same value with its dimensions in another order."""
    if sharding is None:
        return None
    spec = sharding.spec
    return sharding.update(spec=spec.update(partitions=[spec[i] for i in permutation]))


def fitting(sharding: Sharding, shape: Sequence[Any]) -> Any:
    """The sharding with an entry for each dimension.

    Raises:
      ValueError: it has more, or a dimension is no multiple of the number of its parts.
    """
    mesh, spec, ndim = sharding.mesh, sharding.spec, len(shape)
    if len(spec) > ndim:
        raise ValueError(f"Length of sharding.spec ({len(spec)}) must be equal to aval's ndim "
                         f"({ndim}). Got sharding.spec {spec}, aval.ndim {ndim} and sharding "
                         f"{sharding}")
    for i, (n, entry) in enumerate(zip(shape, spec, strict=False)):
        parts = parts_along(mesh, entry)
        if n % parts:
            raise ValueError(f"Sharding spec {tuple(spec)} implies that array axis {i} is "
                             f"partitioned {parts} times, but does not evenly divide the dimension "
                             f"size {n}. Got shape: {tuple(shape)} and sharding {sharding}. Pad "
                             "the array, or cut it along other dimensions or mesh axes.")
    return sharding.update(spec=spec.update(partitions=(*spec, *[None] * (ndim - len(spec)))))


# -- results ---------------------------------------------------------------------------------------


def joined_results(primitive: Primitive, avals: Sequence[Any], params: dict[str, Any]) -> Any:
    """The types of an operation's results: what its shape rule says, in the places that follow from
    those of the operands.

    Results are where the operands are, and vary along all axes that operands do. What holds
    programs or reads axes says that itself (`batch_axis`), and what is not `cached` how results are
    cut.

    Raises:
      ShardingTypeError: shardings or open sums do not go together, or say nothing of the results.
      ValueError: operands are in several memories, or along several meshes.
    """
    rule: Any = primitive.shape_rule
    itself = primitive.batch_axis is not None
    if itself:
        out = rule(*avals, **params)
    else:
        space = _memory_of(primitive.name, avals)
        inside = any([a.place.mat is not UNIFORM for a in avals])
        bare = [a.placed(manual_axis_type=None, memory_space=None) for a in avals]
        out = rule(*bare, **params)
    if isinstance(out, AbstractValue) is primitive.multiple_results:
        raise ValueError(f"{primitive.name}.abstract_eval() method should return a tuple or a list "
                         f"iff {primitive.name}.multiple_results. Got {out}.")
    outs = list(out) if primitive.multiple_results else [out]
    if not itself and space is not Space.Device:
        outs = [a.placed(memory_space=space) for a in outs]
    if not itself and inside:
        axes = joined(avals)
        outs = [a.varying(axes | a.place.mat.varying, *sums) for a, sums in zip(
            outs, sums_of_results(primitive, avals, outs, INSIDE), strict=True)]
    if primitive.cached:
        outs = _typed_results(primitive, avals, params, outs)
        if not primitive.contracts:
            check_types(primitive.name, avals, outs)
    return outs if primitive.multiple_results else outs[0]


def _memory_of(name: str, avals: Sequence[Any]) -> Space:
    """The memory that operands are in; a number of the device goes with any."""
    wide = [a for a in avals if type(a) is ShapedArray and (
        a.shape or a.place.space is not Space.Device)]
    spaces = {a.place.space for a in wide}
    if len(spaces) > 1:
        types = " and another operand with type: ".join(
            dict.fromkeys([a.str_short() for a in wide]))
        raise ValueError(
            f"memory_space of all inputs passed to `{name}` must be the same. Got one operand with "
            f"type: {types}. Move one of them with jax.device_put(x, jax.memory.Space.Device).")
    return next(iter(spaces), Space.Device)


def _typed_results(primitive: Primitive, avals: Sequence[Any], params: dict[str, Any],
                   outs: list[Any]) -> list[Any]:
    """The types with the shardings that the operation's rule says."""
    sums = sums_of_results(primitive, avals, outs, OUTSIDE)
    given = params.get("out_sharding") or params.get("sharding")
    if type(given) is NamedSharding and not primitive.multiple_results:
        return [outs[0].reshard(given)]
    typed = [a for a in avals if a.place.sharding is not None]
    if not typed:
        return outs
    for a in typed:
        check_mesh(primitive.name, a.place.sharding.mesh, avals)
    mesh = mesh_of(avals)
    rule = primitive.sharding_rule or partial(_elementwise, primitive)
    if not any([any(entries_of(a)) for a in avals]):
        found: Any = [(None,) * o.ndim for o in outs]
    elif primitive.multiple_results:
        found = rule(outs, *avals, **params)
    else:
        found = [rule(outs[0], *avals, **params)]
    return [_cut(primitive.name, mesh, avals, o, PartitionSpec(*f, unreduced=s[0], reduced=s[1]))
            for o, f, s in zip(outs, found, sums, strict=True)]


def check_mesh(name: str, mesh: AbstractMesh, avals: Sequence[Any]) -> None:
    """Check that an operand which lies along `mesh` is on the mesh that is set, if one is. Its axes
    may be known as of other types, as they were where a cotangent's primal was made.

    Raises:
      ValueError: it is on another mesh.
    """
    context = configuration.abstract_mesh.value
    if context is not None and mesh.shape_tuple != context.shape_tuple:
        raise wrong_mesh(name, mesh, context, avals)


def wrong_mesh(name: str, mesh: AbstractMesh, context: AbstractMesh, avals: Sequence[Any]
               ) -> ValueError:
    """The error for operands along `mesh` where `context` is set."""
    return ValueError(
        f"For primitive {name}, context mesh {context} should match the aval mesh {mesh} for "
        f"operands {', '.join([a.str_short() for a in avals])}. Put them on the mesh that is set "
        "by jax.reshard.")


def mesh_of(avals: Sequence[Any]) -> AbstractMesh:
    """The mesh that the operands lie along.

    Raises:
      ValueError: there are several.
    """
    meshes = list(dict.fromkeys([s.mesh for a in avals if (s := a.place.sharding) is not None]))
    if len(meshes) > 1:
        raise ValueError(f"Mesh for all inputs should be equal. Got one mesh: {meshes[0]} and "
                         f"another mesh: {meshes[1]}. Put them on one by jax.device_put.")
    return meshes[0]


def _cut(name: str, mesh: AbstractMesh, avals: Sequence[Any], out: Any, spec: PartitionSpec) -> Any:
    """The type of a result, cut as `spec` says."""
    axes = axes_of(spec)
    if len(set(axes)) < len(axes):
        inputs = ", ".join([a.str_short(True) for a in avals])
        shown = out.update(sharding=None).str_short(True).partition("[")[0]
        raise ShardingTypeError(
            f"{name} operation with inputs: {inputs} produces an illegally sharded "
            f"result: {shown}[{dims_text(out.shape, spec)}]. An axis of a mesh cuts one dimension. "
            f"{reshard_first('an input')}")
    return out.placed(sharding=explicit_sharding(mesh, spec, out.ndim))


# -- rules that families share ---------------------------------------------------------------------

Rule = Callable[..., Any]


def _elementwise(primitive: Primitive, out: Any, *avals: Any, **params: Any) -> Any:
    if primitive.multiple_results or any([a.shape not in ((), out.shape) for a in avals]):
        raise ShardingTypeError(
            f"sharding rule for {primitive.name} is not implemented. You can work around this "
            "error by dropping that operation into full auto sharding mode via: "
            "`jax.sharding.auto_axes(fun, out_shardings=...)`")
    return broadcast_entries(primitive.name, [a for a in avals if a.shape == out.shape])


def broadcast_entries(name: str, avals: Sequence[Any]) -> Entries:
    """The entries of operands of one shape, which an operation takes element by element."""
    return agreed(avals, f"{name} got incompatible shardings for broadcasting: "
                         f"{', '.join([str(entries_of(a)) for a in avals])}.")


def agreed(avals: Sequence[Any], message: str) -> Entries:
    """The entries of operands of one rank: along each dimension those of them that are cut must
    be cut alike. `message` is what is said otherwise."""
    message += f" {reshard_first('one of them')}"
    return tuple([one_entry(along, message) for along in zip(*map(entries_of, avals), strict=True)])


def one_entry(entries: Iterable[Any], message: str) -> Any:
    """How a dimension is cut that operands have together: like those of them that are cut."""
    known = {e for e in entries if e is not None}
    if len(known) > 1:
        raise ShardingTypeError(message)
    return known.pop() if known else None


def unchanged(out: Any, x: Any, *others: Any, **params: Any) -> Entries:
    """The rule of what moves no element."""
    return entries_of(x)


def resized(what: str) -> Rule:
    """The rule of what cuts or extends dimensions: those of another size must still be cut into
    equal parts. A single element is on every device."""

    def rule(out: Any, x: Any, *others: Any, **params: Any) -> Entries:
        sharding = x.place.sharding
        if sharding is None or all([n == 1 for n in out.shape]):
            return (None,) * out.ndim
        for old, new, entry in zip(x.shape, out.shape, sharding.spec, strict=True):
            parts = parts_along(sharding.mesh, entry)
            if old != new and new % parts:
                raise ShardingTypeError(
                    f"{what} on sharded dims where out dim ({new}) is not divisible by mesh axes "
                    f"({parts}) with spec ({axes_text(entry)}) is not implemented. Got input "
                    f"type={x.str_short(True)} and output shape={out.shape}. {reshard_first()}"
                    + " Or index by `.at[...].get(out_sharding=)`." * ("slic" in what))
        return tuple(sharding.spec)

    return rule


def along_batch(core: int) -> Rule:
    """The rule of functions of matrices or vectors, the last `core` axes, for each index of the
    others: these stay cut as they are, the last ones must be whole."""

    def rule(out: Any, x: Any, *others: Any, **params: Any) -> Any:
        entries = entries_of(x)
        batch = len(entries) - core
        if any([e is not None for e in entries[batch:]]):
            raise ShardingTypeError(f"The input should be unsharded over its last {core} axes. Got "
                                    f"input type={x.str_short()}. {reshard_first()}")
        if isinstance(out, list):
            return [(*entries[:batch], *[None] * (o.ndim - batch)) for o in out]
        return (*entries[:batch], *[None] * (out.ndim - batch))

    return rule


def whole_along(x: Any, axis: int, message: str) -> None:
    """Raise ShardingTypeError with this message if the operand is cut along the axis."""
    if entries_of(x)[axis] is not None:
        raise ShardingTypeError(f"{message}. {reshard_first()}")
