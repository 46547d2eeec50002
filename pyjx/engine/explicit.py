"""The operation that makes values lie otherwise along the Explicit axes of a mesh."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyjx import configuration
from pyjx.core.avals import get_aval
from pyjx.core.explicit import aval_on, entries_of
from pyjx.core.forbidden import check_types
from pyjx.core.meshes import Mesh
from pyjx.core.open_sums import cotangent_aval
from pyjx.core.primitive import Primitive, no_collectives, register
from pyjx.core.specs import PartitionSpec
from pyjx.core.trace import Tracer
from pyjx.engine.rules import jvp_linear
from pyjx.engine.types import BatchDims, Operand, Value, Values
from pyjx.jaxlib_api import NamedSharding


def _batch(trace: Any, operands: Values, dims: BatchDims, *, dst_sharding: Any,
           concrete_mesh: Any) -> tuple[Value, int]:
    """The batch lies as it does."""
    (x,), (dim,) = operands, dims
    spec = dst_sharding.spec
    entries = [*spec[:dim], entries_of(get_aval(x))[dim], *spec[dim:]]
    return made_to_lie(x, dst_sharding.update(spec=spec.update(partitions=entries)),
                       concrete_mesh), dim


def _transpose(ct: Any, x: Operand, *, dst_sharding: Any, concrete_mesh: Any) -> list[Any]:
    return [made_to_lie(ct, _along(x.aval, dst_sharding.mesh), concrete_mesh)]


def made_to_lie(x: Any, sharding: Any, mesh: Any = None) -> Any:
    """A value that the transformations made, lying so; an array stays if no devices are known."""
    if mesh is None and not isinstance(x, Tracer) and configuration.mesh.value is None and (
            not isinstance(getattr(getattr(x, "sharding", None), "mesh", None), Mesh)):
        return x
    return reshard_p.bind(x, dst_sharding=sharding, concrete_mesh=mesh)


def _along(aval: Any, mesh: Any) -> Any:
    """The sharding of values of this type; they may be copies along the mesh."""
    found = aval.explicit_sharding
    return NamedSharding(mesh, PartitionSpec(*[None] * aval.ndim)) if found is None else found


def _shape_rule(x: Any, *, dst_sharding: Any, concrete_mesh: Any) -> Any:
    out = aval_on(x, dst_sharding)
    if no_collectives.value:
        check_types(no_collectives.value, "reshard", [x], [out])
    return out


# `dst_sharding` is over an abstract mesh; `concrete_mesh` has its devices, where they were given.
reshard_p: Primitive = register(Primitive(
    "reshard",
    shape_rule=_shape_rule,
    cached=False,
    transpose=_transpose,
    batch_axis=_batch,
    placed=lambda params: [params["concrete_mesh"] or params["dst_sharding"]],
    printed=lambda params: [],
    physical=lambda avals, x, **params: reshard_p.bind(x, **params),
    linear=True,
))
reshard_p.define(jvp=jvp_linear(reshard_p))


def whole(x: Value, axes: Sequence[int]) -> Value:
    """The value with none of these axes cut."""
    aval = get_aval(x)
    sharding = aval.explicit_sharding
    if sharding is None or all([sharding.spec[i] is None for i in axes]):
        return x
    entries = [None if i in axes else e for i, e in enumerate(sharding.spec)]
    return reshard_p.bind(x, concrete_mesh=None, dst_sharding=sharding.update(
        spec=sharding.spec.update(partitions=entries)))


def with_sharding_of(x: Value, aval: Any) -> Value:
    """A cotangent of a value of type `aval`, lying as that does."""
    aval = cotangent_aval(aval)
    given, wanted = get_aval(x).explicit_sharding, aval.explicit_sharding
    if given == wanted:
        return x
    mesh = (given or wanted).mesh
    return made_to_lie(x, _along(aval, mesh))
