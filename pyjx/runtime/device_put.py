"""Moving data: host to devices, between devices, and back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pyjx import configuration, jaxlib_api, tree_util
from pyjx.core import dtypes
from pyjx.core.avals import ShapedArray, get_aval
from pyjx.core.layouts import Format, Layout
from pyjx.core.meshes import AbstractMesh, Mesh
from pyjx.core.places import MEMORY_KINDS, Space, names_no_mesh, space_called
from pyjx.core.prefixes import broadcast_argument, is_none
from pyjx.core.specs import PartitionSpec, axes_of
from pyjx.core.trace import Tracer, eager_trace, state
from pyjx.core.value_texts import in_short, shortened_text
from pyjx.engine.functions import with_at
from pyjx.engine.moves import device_put_p as device_put_p
from pyjx.engine.tangents import Zero
from pyjx.engine.types import Dims, Operand, Tangents, Value, Values
from pyjx.runtime import backends, dispatch
from pyjx.runtime.array import ArrayImpl, ExtendedArray, is_of_programs, put, value
from pyjx.runtime.meshes import get_abstract_mesh
from pyjx.runtime.processes import group
from pyjx.runtime.sharding import NamedSharding, Sharding, single_device_sharding
from pyjx.runtime.transfers import (
    check_agreement,
    check_rank,
    default_placement,
    host_value,
    moved,
    put_host,
    put_strings,
)

_Device = jaxlib_api.Device
_CopySemantics = jaxlib_api.ArrayCopySemantics

# How leaves of other classes (typed PRNG keys) are put: `(x, device, donate) -> x'` by class.
put_handlers: dict[type, Callable[[Any, Any, bool], Any]] = {
    ExtendedArray: lambda x, device, donate: ExtendedArray(
        x.aval, device_put(x._base_array, device, donate=donate)),
}


# ---- device_put ---------------------------------------------------------------------------


def _is_target(x: Any) -> bool:
    return x is None or isinstance(x, (_Device, Sharding, Space, PartitionSpec, Format))


def _check_target(device: Any) -> Any:
    if _is_target(device):
        return device
    shown = in_short(device) if hasattr(device, "dtype") else shortened_text(str(device))
    raise ValueError(
        "`jax.device_put` only accepts `None`, `jax.sharding.Sharding`, `jax.Device`, `Format`, "
        "`jax.memory.Space` or a pytree of these values. Received invalid value: "
        f"{shown}{_target_meant(device)}")


_MEMORIES = {kind: space for space, kind in MEMORY_KINDS.items()}


def _target_meant(given: Any) -> str:
    """For messages: what is to be given in the place of what is no target."""
    if isinstance(given, (Mesh, AbstractMesh)):
        return (f". A spec says how an array is cut along a mesh: jax.NamedSharding(mesh, "
                f"jax.P({', '.join(map(repr, given.axis_names[:1]))}))")
    if hasattr(given, "dtype"):
        return ". The array comes first: jax.device_put(x, device)"
    if isinstance(given, Layout):
        return ". A layout is a part of a Format: jax.experimental.layout.Format(layout, sharding)"
    if isinstance(given, str) and given in _MEMORIES:
        return f". Did you mean jax.memory.Space.{_MEMORIES[given].name}?"
    if isinstance(given, int):
        return f". Did you mean jax.devices()[{given}]?"
    number = str(given).partition(":")[2]
    return configuration.platform_meant(given, ". Did you mean jax.devices({!r})" + (
        f"[{number if number.isdigit() else 0}]?"))


def target_sharding(device: Any, x: Any = None) -> Any:
    """The sharding that a target stands for; None where there is nothing to do."""
    if device is None or isinstance(device, Sharding):
        return None if names_no_mesh(device) else device
    if isinstance(device, _Device):
        return single_device_sharding(device)
    if isinstance(device, Space):
        old = x._sharding if isinstance(x, ArrayImpl) else default_placement()[0]
        return None if device is Space.Any else old.with_memory_kind(MEMORY_KINDS[device])
    if isinstance(device, PartitionSpec):
        return _along_mesh(device)
    return device.sharding  # a Format


def _along_mesh(spec: PartitionSpec) -> NamedSharding:
    """The sharding that a spec stands for along the mesh that is set."""
    mesh = configuration.mesh.value or get_abstract_mesh()
    if mesh.empty:
        raise ValueError("Please set a mesh via `jax.set_mesh` if a PartitionSpec is passed to "
                         f"device_put, or pass jax.NamedSharding(mesh, jax.{spec})")
    return NamedSharding(mesh, spec)


def _is_recorded(target: Any) -> bool:
    """Whether a program that is being traced puts known values there itself: over a mesh, where it
    runs then."""
    return state.dynamic is not eager_trace and isinstance(target, (NamedSharding, PartitionSpec))


def _put_array(x: Any, sharding: Any, alias: bool) -> Any:
    """A committed array with the elements of `x` and the given sharding."""
    if not alias and not x._sharding.device_set.isdisjoint(sharding.device_set):
        x = jaxlib_api.copy_on_device(x)
    return moved(x, sharding)


def _put_leaf(x: Any, device: Any, donate: bool, may_alias: bool | None) -> Any:
    if isinstance(device, Format) and device.layout is not None:
        return _put_formatted(x, device, donate, may_alias)
    if isinstance(x, ArrayImpl):
        sharding = target_sharding(device, x)
        if sharding is None:
            return jaxlib_api.copy_on_device(x) if may_alias is False else x
        gives_up = donate and _is_handed_around(x._sharding, sharding)
        out = _put_array(x, sharding, may_alias is not False and not gives_up)
        if gives_up:
            x.delete()
        return out
    handler = put_handlers.get(type(x))
    if handler is not None:
        return handler(x.copy() if may_alias is False else x, device, donate)
    if hasattr(x, "__jax_array__"):
        return _put_leaf(x.__jax_array__(), device, donate, may_alias)
    if type(x) is np.ndarray and x.dtype.kind == "T":
        return put_strings(x, target_sharding(device, x))
    aval = _aval_of_leaf(x)
    if aval.dtype == dtypes.float0:  # its elements say nothing, so there is nothing to move
        return x
    array, fresh = host_value(x, aval)
    sharding = target_sharding(device, x)
    if sharding is None:
        sharding, devices = default_placement()
        return put(aval, sharding, (array,), devices, False, fresh)
    if group.client is not None and not sharding.is_fully_addressable:
        check_agreement(array, sharding, str(type(x)))
    return put_host(array, aval, sharding, fresh)


def _put_formatted(x: Any, wanted: Format, donate: bool, may_alias: bool | None) -> Any:
    if not isinstance(wanted.layout, Layout):
        raise ValueError("sharding and layout in `Layout` instance should be concrete. Got layout: "
                         f"{wanted} for input {_aval_of_leaf(x).str_short()}")
    x = _put_leaf(x, wanted.sharding, donate, may_alias)
    if x.dtype == dtypes.float0:
        return x
    wanted.layout.check_compatible_aval(x.shape)
    return x if wanted.layout.is_of(x) else dispatch.formatted(x, wanted)


def _is_handed_around(old: Any, new: Any) -> bool:
    """Whether the parts of an array only go to other places of the same devices, so that what is
    donated is given up. Elsewhere it is copied to devices that have nothing of it, or new parts are
    made of old ones, whose buffers are of another size: an array that is donated stays then."""
    return old.device_set == new.device_set and old._device_assignment != new._device_assignment


def _aval_of_leaf(x: Any) -> ShapedArray:
    if isinstance(x, np.ndarray) and x.dtype.kind in "OSUMm":
        dtypes.check_valid_dtype(x.dtype, x)
    try:
        return get_aval(x)
    except TypeError:
        if hasattr(x, "__array__"):
            return get_aval(np.asarray(x))
        raise


def device_put(x: Any, device: Any = None, *, src: Any = None, donate: bool | Any = False,
               may_alias: bool | Any | None = None) -> Any:
    """Put the leaves of a pytree on devices.

    Args:
      x: a pytree of arrays, NumPy arrays and scalars.
      device: a Device, a Sharding or a pytree prefix of `x` of them. With None, arrays stay where
        they are and host values go, uncommitted, to the default device.
      src: where the leaves are now; used under jit only.
      donate: `x` may be given up: it is where the same devices take it in another order. Copies to
        other devices, and parts that are cut in another way, leave it.
      may_alias: False asks for new buffers even where the leaf is on the device already.

    Returns:
      The pytree with an Array for each leaf, committed where `device` is given.

    Raises:
      ValueError: `device` is none of these, is no prefix of `x`, or does not fit a leaf's shape.
      TypeError: a leaf is no array.

    >>> import pyjx as jax
    >>> import numpy as np
    >>> jax.device_put(np.arange(3.0, dtype=np.float32))
    Array([0., 1., 2.], dtype=float32)
    """
    if donate is True and may_alias is True:
        raise ValueError("may_alias and donate cannot be True at the same time.")
    if (isinstance(x, (ArrayImpl, np.ndarray)) and _is_target(device)  # a leaf: the common case
            and not _is_recorded(device)):
        with jaxlib_api.asked_for("device_put"):
            return _put_leaf(x, device, bool(donate), may_alias)
    leaves, treedef = tree_util.tree_flatten(x)
    targets = _prefix("device_put device", device, x, len(leaves), _is_target)
    donated = _prefix("donate", donate, x, len(leaves))
    aliased = _prefix("may_alias", may_alias, x, len(leaves), is_none)
    for target in targets:
        _check_target(target)
    if (any(isinstance(leaf, Tracer) for leaf in leaves)
            or (leaves and any(map(_is_recorded, targets)))):
        sources = _prefix("device_put src", src, x, len(leaves), is_none)
        out = _put_traced(x, leaves, targets, sources, donated, aliased)
    else:
        with jaxlib_api.asked_for("device_put"):
            out = tree_util.of_each_leaf(_put_leaf, "x", x, leaves, targets, donated, aliased)
    return tree_util.tree_unflatten(treedef, out)


def _prefix(name: str, prefix: Any, tree: Any, count: int,
            is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """`prefix` broadcast to the leaves of `tree`."""
    if prefix is None or isinstance(prefix, (bool, _Device, Sharding, Space,
                                                                PartitionSpec)):
        return [prefix] * count
    several = isinstance(prefix, (list, tuple)) and any([isinstance(d, _Device) for d in prefix])
    return broadcast_argument(name, prefix, tree, is_leaf, (
        "several devices hold an array by a sharding, jax.NamedSharding(mesh, jax.P('x'))."
    ) * several)


# ---- device_put while tracing -------------------------------------------------------------


def _put_traced(tree: Any, leaves: list[Any], targets: Sequence[Any], sources: Sequence[Any],
                donated: Sequence[Any], aliased: Sequence[Any]) -> Any:
    semantics = tuple(
        _CopySemantics.DONATE_INPUT if d
        else _CopySemantics.ALWAYS_COPY if a is False else _CopySemantics.REUSE_INPUT
        for d, a in zip(donated, aliased, strict=True))
    targets = [None if names_no_mesh(t) else
               _along_mesh(t) if isinstance(t, PartitionSpec) else t for t in targets]
    tree_util.of_each_leaf(_check_recorded, "x", tree, leaves, targets)
    return device_put_p.bind(*leaves, devices=tuple(targets), srcs=tuple(sources),
                             copy_semantics=semantics)


def _check_recorded(x: Any, target: Any) -> None:
    if isinstance(target, Sharding):
        check_rank(target, get_aval(x))
    manual = set(get_abstract_mesh().manual_axes)
    if manual and type(target) is NamedSharding and not manual.isdisjoint(axes_of(target.spec)):
        raise ValueError(f"device_put: {target.spec} contains manual axes, which shard_map maps "
                         f"over here: {sorted(map(str, manual))}. Inside of shard_map a value is "
                         "on its device: put the arguments there before, as in_specs say.")


def _device_put_impl(*operands: Value, devices: Sequence[Any], srcs: Sequence[Any],
                     copy_semantics: Sequence[Any]) -> list[Value]:
    return [
        _put_leaf(x, device, semantics == _CopySemantics.DONATE_INPUT,
                  semantics != _CopySemantics.ALWAYS_COPY)
        for x, device, semantics in zip(operands, devices, copy_semantics, strict=True)]


def _device_put_shape(*operands: ShapedArray, devices: Sequence[Any], **params: Any
                      ) -> list[ShapedArray]:
    return [_type_there(x, d) for x, d in zip(operands, devices, strict=True)]


def _type_there(x: Any, target: Any) -> Any:
    if isinstance(target, Space):
        return x if target is Space.Any else x.placed(memory_space=target)
    if isinstance(target, Format):
        target = target.sharding
    if type(target) is NamedSharding:
        return x.reshard(target)
    if isinstance(target, Sharding):
        kind = target.memory_kind
        return x if kind is None else x.placed(memory_space=space_called(kind))
    return x


def _device_put_batch(trace: Any, operands: Values, dims: Dims, *, devices: Sequence[Any],
                      srcs: Sequence[Any], **params: Any) -> tuple[Values, Dims]:
    """The same for the whole batch, along which nothing is cut."""
    devices, srcs = [tuple([_with_batch(t, dim) for t, dim in zip(targets, dims, strict=True)])
                     for targets in (devices, srcs)]
    return device_put_p.bind(*operands, devices=devices, srcs=srcs, **params), dims


def _with_batch(target: Any, dim: int | None) -> Any:
    if type(target) is not NamedSharding or dim is None or dim >= len(target.spec):
        return target
    entries = list(target.spec)
    entries.insert(dim, None)
    return target.update(spec=target.spec.update(partitions=entries))


def _device_put_transpose(cts: Tangents, *operands: Operand, devices: Sequence[Any],
                          srcs: Sequence[Any], copy_semantics: Sequence[Any]) -> Tangents:
    """The identity's transpose, back to where the operands came from."""
    back = tuple([x.aval.memory_space if src is None and type(ct) is not Zero
                  and get_aval(ct).memory_space is not x.aval.memory_space else src
                  for ct, x, src in zip(cts, operands, srcs, strict=True)])
    return _put_nonzero(cts, devices=back, srcs=devices,
                        copy_semantics=(_CopySemantics.ALWAYS_COPY,) * len(srcs))


def _put_nonzero(xs: Any, **params: Any) -> list[Any]:
    """Move the tangents that are not symbolic zeros; each parameter is a tuple, one an operand."""
    live = [i for i, x in enumerate(xs) if type(x) is not Zero]
    if not live:
        return list(xs)
    live_params = {k: tuple([v[i] for i in live]) for k, v in params.items()}
    return with_at(xs, live, device_put_p.bind(*[xs[i] for i in live], **live_params))


def _placed(params: dict[str, Any]) -> list[Any]:
    """What spans a mesh; a single device is taken as a wish."""
    return [d for d in params["devices"] if type(d) is NamedSharding]


device_put_p.define(
    shape_rule=_device_put_shape,
    jvp=lambda xs, ts, **params: (device_put_p.bind(*xs, **params), _put_nonzero(ts, **params)),
    batch_axis=_device_put_batch,  # it says itself in which memory results are
    transpose=_device_put_transpose,
    impl=_device_put_impl,
    physical=lambda avals, *operands, **params: device_put_p.bind(*operands, **params),
    placed=_placed,
)


# ---- device to host, and waiting ----------------------------------------------------------


def device_get(x: Any) -> Any:
    """The pytree with NumPy arrays in place of its arrays; other leaves stay as they are,
    among them keys and tracers.

    >>> import pyjx as jax
    >>> jax.device_get({"a": jax.device_put(1.5)})
    {'a': array(1.5, dtype=float32)}
    """
    with jaxlib_api.asked_for("device_get"):
        if isinstance(x, ArrayImpl):
            return value(x)
        copy_to_host_async(x)
        return tree_util.tree_map(_get_leaf, x)


def _get_leaf(x: Any) -> Any:
    if isinstance(x, ArrayImpl):
        return value(x)
    to_host = getattr(x, "__array__", None)
    if to_host is None or isinstance(x, Tracer) or dtypes.is_extended(getattr(x, "dtype", None)):
        return x
    return to_host()


def copy_to_host_async(x: Any) -> Any:
    """Start the copies to the host of all arrays of a pytree; returns `x` at once.

    >>> import pyjx as jax
    >>> jax.copy_to_host_async(jax.numpy.arange(3)).tolist()
    [0, 1, 2]
    """
    for leaf in tree_util.tree_leaves(x):
        start = getattr(leaf, "copy_to_host_async", None)
        if start is not None:
            start()
    return x


def block_until_ready(x: Any) -> Any:
    """Wait until all arrays of a pytree have been computed; returns `x`.

    Raises:
      JaxRuntimeError: a computation failed.

    >>> import pyjx as jax
    >>> jax.block_until_ready(jax.numpy.arange(3)).tolist()
    [0, 1, 2]
    """
    if isinstance(x, ArrayImpl):
        return x.block_until_ready()
    arrays = []
    for leaf in tree_util.tree_leaves(x):
        if isinstance(leaf, ArrayImpl):
            arrays.append(leaf)
        elif not isinstance(leaf, Tracer) and hasattr(leaf, "block_until_ready"):
            leaf.block_until_ready()
    jaxlib_api.batched_block_until_ready(arrays)
    return x


def live_arrays(platform: str | None = None) -> list[Any]:
    """The arrays that are alive on the devices of a platform, by default the default one; without
    the copies that programs have of what they captured.

    >>> import pyjx as jax
    >>> x = jax.numpy.ones(3)
    >>> any(x is y for y in jax.live_arrays())
    True
    """
    alive = backends.get_backend(platform).live_arrays()
    return [x for x in alive if not is_of_programs(x)]
