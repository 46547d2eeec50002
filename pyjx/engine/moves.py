"""Values that are moved: to another memory or device, or to lie on devices as a sharding says; and
the operation that makes them lie otherwise along the Explicit axes of a mesh.

Two primitives that the engines and the lowering make equations of. What applies them to arrays
stands above these, with the public functions: runtime/device_put.py, runtime/resharding.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyjx import configuration, jaxlib_api
from pyjx.core.arithmetic import APART, TOGETHER, nothing
from pyjx.core.array_type import Array
from pyjx.core.avals import AbstractRef, AbstractValue, ShapedArray, cotangent_aval, get_aval
from pyjx.core.effects import no_effects
from pyjx.core.explicit import entries_of
from pyjx.core.forbidden import check_types
from pyjx.core.jaxpr import JaxprEqn, Var
from pyjx.core.meshes import AbstractMesh, Mesh
from pyjx.core.places import HERE, MEMORY_KINDS, UNIFORM, Space
from pyjx.core.primitive import Primitive, cast_like, preduced_p, register
from pyjx.core.source_info import SourceInfo
from pyjx.core.specs import PartitionSpec, axes_of
from pyjx.core.trace import Tracer
from pyjx.engine.types import BatchDims, Operand, Tangent, Value, Values
from pyjx.jaxlib_api import Sharding

# -- to another memory or device -------------------------------------------------------------------

device_put_p: Primitive = register(Primitive(
    "device_put", moves=True, multiple_results=True, linear=APART, cached=False))

# Not cached: along Explicit axes a value lies as it does.
sharding_constraint_p: Primitive = register(Primitive(
    "sharding_constraint", arithmetic=nothing, shape_rule=lambda x, **params: x,
    linear=TOGETHER, cached=False))

_SPACES = {kind: space for space, kind in MEMORY_KINDS.items()}


def _space_of(kind: str) -> Space:
    if kind not in _SPACES:
        raise ValueError(f"values of programs are kept in memory of the kinds "
                         f"{' and '.join(map(repr, sorted(_SPACES)))}, got {kind!r}")
    return _SPACES[kind]


def moved(x: Any, place: Any) -> Any:
    """The value in this memory, or on this device."""
    return device_put_p.bind(x, **_params(place))[0]


def moved_eqn(source: Var, target: Var, kind: str, source_info: SourceInfo) -> JaxprEqn:
    """`target` is `source` in memory of this kind.

    Raises:
      ValueError: programs have no values there.
    """
    return JaxprEqn(device_put_p, [source], [target], _params(_space_of(kind)), no_effects,
                    source_info)


def _params(place: Any) -> dict[str, Any]:
    return {"devices": (place,), "srcs": (None,),
            "copy_semantics": (jaxlib_api.ArrayCopySemantics.ALWAYS_COPY,)}


# -- along Explicit axes ---------------------------------------------------------------------------


def _batch(trace: Any, operands: Values, dims: BatchDims, *, dst_sharding: Any,
           concrete_mesh: Mesh | AbstractMesh | None) -> tuple[Value, int]:
    """The batch lies as it does, or as the mapped axis where the type does not say it."""
    (x,), (dim,) = operands, dims
    spec, entry = dst_sharding.spec, entries_of(get_aval(x))[dim]
    if entry is None and trace.axis.sharding is not None:
        (along,) = trace.axis.sharding.spec
        if set(axes_of((along,))) <= set(dst_sharding.mesh.explicit_axes).difference(axes_of(spec)):
            entry = along
    entries = [*spec[:dim], entry, *spec[dim:]]
    return made_to_lie(x, dst_sharding.update(spec=spec.update(partitions=entries)),
                       concrete_mesh), dim


def _transpose(ct: Tangent, x: Operand, *, dst_sharding: Any,
               concrete_mesh: Mesh | AbstractMesh | None) -> list[Any]:
    mesh, around = dst_sharding.mesh, configuration.abstract_mesh.value
    if around is not None and around.shape_tuple == mesh.shape_tuple:
        mesh = around  # the value may come from where axes are of other types
    return [made_to_lie(ct, _along(cotangent_aval(x.aval), mesh), concrete_mesh)]


def made_to_lie(x: Any, sharding: Sharding | None, mesh: Mesh | AbstractMesh | None = None) -> Any:
    """A value that the transformations made, lying so; an array stays if no devices are known."""
    if mesh is None and not isinstance(x, Tracer) and configuration.mesh.value is None and (
            mesh_of_array(x) is None):
        return x
    return reshard_p.bind(x, dst_sharding=sharding, concrete_mesh=mesh)


def mesh_of_array(x: Any) -> Mesh | None:
    """The mesh, with its devices, that an array lies along; None of what is traced."""
    mesh = None if isinstance(x, Tracer) else getattr(getattr(x, "sharding", None), "mesh", None)
    return mesh if isinstance(mesh, Mesh) else None


def _along(aval: ShapedArray | AbstractRef, mesh: Mesh | AbstractMesh) -> Any:
    """The sharding of values of this type; they may be copies along the mesh."""
    return aval.place.sharding_along(mesh, aval.ndim)


def _shape_rule(x: Any, *, dst_sharding: Any, concrete_mesh: Mesh | AbstractMesh | None) -> Any:
    out = x.reshard(dst_sharding)
    check_types("reshard", [x], [out])
    return out


# `dst_sharding` is over an abstract mesh; `concrete_mesh` has its devices, where they were given.
reshard_p: Primitive = register(Primitive(
    "reshard",
    arithmetic=nothing,
    shape_rule=_shape_rule,
    cached=False,
    transpose=_transpose,
    batch_axis=_batch,
    placed=lambda params: [params["concrete_mesh"] or params["dst_sharding"]],
    printed=lambda params: [],
    physical=lambda avals, x, **params: reshard_p.bind(x, **params),
    linear=TOGETHER,
))


def whole(x: Array, axes: Sequence[int]) -> Array:
    """The value with none of these axes cut."""
    aval = get_aval(x)
    sharding = aval.place.sharding
    if sharding is None or all([sharding.spec[i] is None for i in axes]):
        return x
    entries = [None if i in axes else e for i, e in enumerate(sharding.spec)]
    return reshard_p.bind(x, concrete_mesh=None, dst_sharding=sharding.update(
        spec=sharding.spec.update(partitions=entries)))


def with_sharding_of(x: Value, aval: AbstractValue) -> Any:
    """A cotangent of a value of type `aval`, lying as that does."""
    return lying_as(x, cotangent_aval(aval))


def lying_as(x: Value, aval: ShapedArray | AbstractRef, like: Any = None) -> Any:
    """A value that lies as this type says, and on the devices of the array `like`."""
    given, wanted = get_aval(x).place.sharding, aval.place.sharding
    if given == wanted:
        return x
    mesh = (given or wanted).mesh
    return made_to_lie(x, _along(aval, mesh), mesh_of_array(like))


def number_beside(x: Value, avals: Sequence[Any]) -> Any:
    """A number that is to be stretched to the shape of values of these types: reduced where one of
    them is. Inside programs for each device only constants are taken for such."""
    for aval in avals:
        place = aval.place
        if place is not HERE and (  # which is seldom
                place.spec.reduced or (place.mat.reduced and not isinstance(x, Tracer))):
            return constant_beside(x, aval)
    return x


def constant_beside(x: Value, aval: AbstractValue) -> Any:
    """A constant that is used with a value of this type: reduced where that is, or is yet to be
    summed."""
    if axes := aval.place.spec.reduced | aval.place.spec.unreduced:
        spec = PartitionSpec(*[None] * get_aval(x).ndim, reduced=axes)
        x = made_to_lie(x, aval.place.sharding.update(spec=spec))
    if axes := aval.place.mat.reduced | aval.place.mat.unreduced:
        x = preduced_p.bind(x, axes=tuple(sorted(axes, key=str)))
    return x


def as_cotangent(x: Value, aval: AbstractValue) -> Any:
    """A value that stands for a cotangent of values of type `aval`, as one of its type."""
    place = aval.place
    if place is HERE:
        return x
    if place.spec.reduced:
        x = with_sharding_of(x, aval)
    if place.mat is UNIFORM:
        return x
    wanted = cotangent_aval(aval)
    return x if get_aval(x).place.mat == wanted.place.mat else cast_like(x, wanted)
