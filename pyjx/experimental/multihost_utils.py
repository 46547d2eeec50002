"""Values that processes exchange outside of programs: they gather, broadcast, compare, and meet.

All processes of the group call these functions, in the same order.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

import pyjx.numpy as jnp
from pyjx import tree_util
from pyjx.core import dtypes
from pyjx.core.arithmetic import TOGETHER
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import ShapedArray
from pyjx.core.layouts import ShardingLike
from pyjx.core.meshes import Mesh
from pyjx.core.prefixes import of_each_with
from pyjx.core.primitive import Primitive, register
from pyjx.core.specs import PartitionSpec, axes_of
from pyjx.engine.batching import BatchTrace
from pyjx.engine.types import Dims, Value, Values
from pyjx.lazy import directory
from pyjx.runtime import backends
from pyjx.runtime.array import ArrayImpl, put, value
from pyjx.runtime.device_put import device_put
from pyjx.runtime.jit import jit
from pyjx.runtime.processes import group
from pyjx.runtime.sharding import GSPMDSharding, NamedSharding
from pyjx.tree_util import PyTree

P = PartitionSpec

__all__ = [
    "P", "ProcessFailureError", "assert_equal", "broadcast_one_to_all",
    "global_array_to_host_local_array", "global_array_to_host_local_array_impl",
    "global_array_to_host_local_array_p", "gtl_abstract_eval",
    "host_local_array_to_global_array", "host_local_array_to_global_array_impl",
    "host_local_array_to_global_array_p", "live_devices", "ltg_abstract_eval", "ltg_batcher",
    "process_allgather", "reached_preemption_sync_point", "sync_global_devices",
]


# ---- collectives among processes ----------------------------------------------------------


def _one_device_each() -> Mesh:
    """A device of each process, in the order of these."""
    firsts = {device.process_index: device for device in backends.devices()[::-1]}
    return Mesh(np.array([firsts[i] for i in sorted(firsts)], dtype=object), ("processes",))


def _stacked(x: np.ndarray[Any, Any]) -> Any:
    """The array whose row i is what process i has."""
    mesh = _one_device_each()
    mine = next(d for d in mesh.devices.flat if d.process_index == backends.process_index())
    x = x.astype(dtypes.canonicalize_dtype(x.dtype), copy=False)
    return _global_array(ShapedArray((mesh.size, *x.shape), x.dtype),
                         NamedSharding(mesh, P("processes")), [x[None]], [mine])


def _global_array(aval: ShapedArray, sharding: ShardingLike, parts: Sequence[Any],
                  devices: Sequence[Any]) -> Any:
    """The array of which this process has these parts, on these devices."""
    return put(aval.reshard(sharding), sharding, parts, devices)


def _everywhere(x: Array) -> np.ndarray[Any, Any]:
    """The value of an array that processes have parts of."""
    old = x.sharding
    whole = old.update(spec=P()) if isinstance(old, NamedSharding) else \
        GSPMDSharding.get_replicated(old._internal_device_list, old.memory_kind)
    return value(device_put(x, whole))


def process_allgather(in_tree: PyTree, tiled: bool = False) -> Any:
    """What each process has, put together.

    Args:
      in_tree: a pytree of arrays, of the same shapes in all processes.
      tiled: join the arrays along their first axis, instead of stacking them along a new one.
        Scalars are stacked.

    Returns:
      The pytree with NumPy arrays. One that has parts on several processes is gathered itself.

    Raises:
      ValueError: such an array, and not `tiled`.

    >>> from pyjx.experimental.multihost_utils import process_allgather
    >>> import numpy as np
    >>> process_allgather(np.arange(3)).shape, process_allgather(np.arange(3), tiled=True).shape
    ((1, 3), (3,))
    """
    return tree_util.tree_map(lambda x: _gathered(x, tiled), in_tree)


def _gathered(x: Any, tiled: bool) -> np.ndarray[Any, Any]:
    if isinstance(x, ArrayImpl) and not x.is_fully_addressable:
        if not tiled:
            raise ValueError("Gathering global non-fully-addressable arrays only supports "
                             "tiled=True")
        return _everywhere(x)
    x = np.asarray(x)
    stack = x[None] if backends.process_count() == 1 else _everywhere(_stacked(x))
    if tiled and x.ndim:
        return stack.reshape(-1, *x.shape[1:]) if x.size else \
            np.zeros((len(stack) * x.shape[0], *x.shape[1:]), stack.dtype)
    return stack


@jit
def _total(x: Array) -> Any:
    return jnp.any(x, axis=0) if x.dtype == bool else jnp.sum(x, axis=0, dtype=x.dtype)


def broadcast_one_to_all(in_tree: PyTree, is_source: bool | None = None) -> Any:
    """What one process has, in all of them.

    Args:
      in_tree: a pytree of arrays, of the same shapes in all processes.
      is_source: whether this process is the one; by default process 0 is.

    Returns:
      The pytree with NumPy arrays, the source's.

    >>> from pyjx.experimental.multihost_utils import broadcast_one_to_all
    >>> broadcast_one_to_all({"a": 1.5})
    {'a': array(1.5)}
    """
    if backends.process_count() == 1:
        return tree_util.tree_map(np.asarray, in_tree)
    if is_source is None:
        is_source = backends.process_index() == 0

    def leaf(x: ArrayLike) -> np.ndarray[Any, Any]:
        x = np.asarray(x)
        return _everywhere(_total(_stacked(x if is_source else np.zeros_like(x))))

    return tree_util.tree_map(leaf, in_tree)


def sync_global_devices(name: str) -> None:
    """Wait until all processes have come to the same call.

    Raises:
      AssertionError: they gave other names.

    >>> from pyjx.experimental.multihost_utils import sync_global_devices
    >>> sync_global_devices("checkpoint 1")
    """
    assert_equal(np.uint32(zlib.crc32(name.encode())),
                 f"sync_global_devices name mismatch ('{name}')")


def assert_equal(in_tree: PyTree, fail_message: str = "") -> None:
    """Check that all processes have the same values.

    Raises:
      AssertionError: they have not; in all of them.

    >>> from pyjx.experimental.multihost_utils import assert_equal
    >>> assert_equal([1, 2.5], "the settings differ")
    """
    out = process_allgather(in_tree, tiled=True)
    equal = tree_util.tree_map(_is_of_all, in_tree, out)
    if not tree_util.tree_all(equal):
        raise AssertionError(f"{fail_message}. Expected: {out}; got: {in_tree}.")


def _is_of_all(x: Any, gathered: np.ndarray[Any, Any]) -> bool:
    """Whether each process has what this one has."""
    if isinstance(x, ArrayImpl) and not x.is_fully_addressable:
        return all(np.all(np.asarray(s.data) == gathered[s.index]) for s in x.addressable_shards)
    x = np.atleast_1d(np.asarray(x)).astype(gathered.dtype, copy=False)
    return bool(np.all(np.concatenate([x] * backends.process_count()) == gathered))


def reached_preemption_sync_point(step_id: int) -> bool:
    """Whether all processes are at the step at which to save what they have, because one of them
    was told (by SIGTERM) that it has to go. They call it at every step.

    Raises:
      RuntimeError: the service is off (`jax_enable_preemption_service`).

    >>> from pyjx.experimental.multihost_utils import reached_preemption_sync_point
    >>> reached_preemption_sync_point(1)
    False
    """
    if group.client is None:
        return False
    if group.preemption_sync_manager is None:
        raise RuntimeError("Preemption sync manager has not been initialized. Make sure the "
                           "'jax_enable_preemption_service' config is enabled.")
    return bool(group.preemption_sync_manager.reached_sync_point(step_id))


# ---- arrays of one process and of all -----------------------------------------------------


def host_local_array_to_global_array(local_inputs: PyTree, global_mesh: Mesh, pspecs: PyTree
                                    ) -> Any:
    """Arrays over the devices of all processes, of the part that each process has.

    Args:
      local_inputs: a pytree of arrays: this process's parts, as one array.
      global_mesh: of all processes; the devices of each are a box in it.
      pspecs: a pytree prefix of `local_inputs` of the specs of the global arrays.

    Returns:
      The pytree with global arrays. What is one already stays.

    >>> from pyjx.experimental.multihost_utils import host_local_array_to_global_array
    >>> from pyjx.sharding import PartitionSpec as P
    >>> import pyjx as jax
    >>> import numpy as np
    >>> mesh = jax.make_mesh((1,), ("x",))
    >>> host_local_array_to_global_array(np.arange(4), mesh, P("x")).shape
    (4,)
    """
    return of_each_with(
        lambda x, s: host_local_array_to_global_array_p.bind(x, global_mesh=global_mesh, pspec=s),
        "local_inputs", local_inputs, "input pspecs", pspecs)


def global_array_to_host_local_array(global_inputs: PyTree, global_mesh: Mesh, pspecs: PyTree
                                    ) -> Any:
    """The part that this process has of each array, as an array of its own.

    Args:
      global_inputs: a pytree of arrays over the devices of all processes.
      global_mesh: of all processes; the devices of each are a box in it.
      pspecs: a pytree prefix of `global_inputs` of the specs of the global arrays.

    >>> from pyjx.experimental.multihost_utils import global_array_to_host_local_array
    >>> from pyjx.sharding import PartitionSpec as P
    >>> import pyjx as jax
    >>> mesh = jax.make_mesh((1,), ("x",))
    >>> global_array_to_host_local_array(jax.numpy.arange(4), mesh, P("x")).shape
    (4,)
    """
    return of_each_with(
        lambda x, s: global_array_to_host_local_array_p.bind(x, global_mesh=global_mesh, pspec=s),
        "global_inputs", global_inputs, "output pspecs", pspecs)


def _scale(mesh: Mesh, entry: Any) -> int:
    """In how many processes' parts the mesh cuts a dimension that lies so."""
    whole, local = mesh.shape, mesh.local_mesh.shape
    names = axes_of((entry,))
    return int(np.prod([whole[a] for a in names], dtype=int)
               // np.prod([local[a] for a in names], dtype=int))


def _scales(mesh: Mesh, pspec: Any, ndim: int) -> list[int]:
    return [_scale(mesh, e) for e in (*pspec, *[None] * (ndim - len(pspec)))]


def ltg_abstract_eval(arr: ShapedArray, *, global_mesh: Mesh, pspec: Any) -> ShapedArray:
    """The type of the global array that a local one is a part of."""
    return ShapedArray(tuple([n * k for n, k in zip(
        arr.shape, _scales(global_mesh, pspec, len(arr.shape)), strict=True)]), arr.dtype)


def gtl_abstract_eval(arr: ShapedArray, *, global_mesh: Mesh, pspec: Any) -> ShapedArray:
    """The type of a process's part of a global array."""
    return ShapedArray(tuple([n // k for n, k in zip(
        arr.shape, _scales(global_mesh, pspec, len(arr.shape)), strict=True)]), arr.dtype)


def _check_spec(pspec: Any) -> None:
    if pspec is None:
        raise ValueError("`None` is not a valid input to the pspecs argument. Please use "
                         "jax.sharding.PartitionSpec() if you wanted to replicate your input.")


def _local_parts(arr: Any, sharding: Any) -> list[Any]:
    """The part of each device of a sharding that this process has all devices of."""
    if isinstance(arr, ArrayImpl) and arr.sharding.is_equivalent_to(sharding, arr.ndim):
        return list(arr._arrays)
    host = np.asarray(arr)
    host = host.astype(dtypes.canonicalize_dtype(host.dtype), copy=False)
    return [host[i] for i in sharding.devices_indices_map(host.shape).values()]


def _base(arr: Any) -> tuple[Any, Any]:
    """The buffers of an array, and the dtype that keys had."""
    dtype = getattr(arr, "dtype", None)
    if dtypes.is_extended(dtype):
        return arr._base_array, dtype
    if dtype == dtypes.float0:
        return np.zeros(arr.shape, bool), None
    return arr, None


def host_local_array_to_global_array_impl(arr: Any, *, global_mesh: Mesh, pspec: Any) -> Any:
    """`host_local_array_to_global_array` of one array."""
    _check_spec(pspec)
    arr, keys = _base(arr)
    if isinstance(arr, ArrayImpl) and not arr.is_fully_addressable:
        return arr if keys is None else keys.from_physical(arr)
    local = NamedSharding(global_mesh.local_mesh, pspec)
    parts = _local_parts(arr, local)
    aval = ltg_abstract_eval(ShapedArray(np.shape(arr), parts[0].dtype), global_mesh=global_mesh,
                             pspec=pspec)
    out = _global_array(aval, NamedSharding(global_mesh, pspec), parts,
                        list(global_mesh.local_mesh.devices.flat))
    return out if keys is None else keys.from_physical(out)


def global_array_to_host_local_array_impl(arr: Any, *, global_mesh: Mesh, pspec: Any) -> Any:
    """`global_array_to_host_local_array` of one array."""
    _check_spec(pspec)
    arr, keys = _base(arr)
    if not isinstance(arr, ArrayImpl):
        arr = device_put(arr)
    if not arr.is_fully_addressable:
        arr = device_put(arr, NamedSharding(global_mesh, pspec))
        aval = gtl_abstract_eval(arr.aval, global_mesh=global_mesh, pspec=pspec)
        local = NamedSharding(global_mesh.local_mesh, pspec)
        arr = ArrayImpl(aval.reshard(local), local, arr._arrays, True)
    return arr if keys is None else keys.from_physical(arr)


def ltg_batcher(insert_axis: Any, axis_data: Any, vals_in: Values, dims_in: Dims,
                global_mesh: Mesh, pspec: Any) -> tuple[Value, Any]:
    """The batching rule of `host_local_array_to_global_array`: a spec of one dimension more."""
    return _batched(host_local_array_to_global_array_p, axis_data, vals_in, dims_in, global_mesh,
                    pspec)


def _batched(p: Primitive, axis: Any, operands: Values, dims: Dims, global_mesh: Mesh, pspec: Any
             ) -> tuple[Value, Any]:
    (x,), (dim,) = operands, dims
    entries = [*pspec]
    if dim is not None:
        entries += [None] * (dim - len(entries))
        entries.insert(dim, axis.spmd_name)
    return p.bind(x, global_mesh=global_mesh, pspec=P(*entries)), dim


def _linear(name: str, impl: Any, shape_rule: Any) -> Primitive:
    """A primitive that moves values, and their derivatives in the same way."""

    def batch(trace: BatchTrace, operands: Values, dims: Dims, **params: Any) -> tuple[Value, Any]:
        return _batched(p, trace.axis, operands, dims, **params)

    p = register(Primitive(name, shape_rule=shape_rule, batch_axis=batch,
                           transpose=lambda ct, x, **params: [p.bind(ct, **params)], impl=impl,
                           linear=TOGETHER,
                           decomposition=lambda x, **_: x))  # in a program all are global
    return p


host_local_array_to_global_array_p = _linear(
    "host_local_array_to_global_array", host_local_array_to_global_array_impl, ltg_abstract_eval)
global_array_to_host_local_array_p = _linear(
    "global_array_to_host_local_array", global_array_to_host_local_array_impl, gtl_abstract_eval)


# ---- processes that die -------------------------------------------------------------------


class ProcessFailureError(Exception):
    """Processes died within a block of `live_devices`; `failed_devices` were theirs.

    Ways out: go on with the devices that `live_devices` gives next, from the last state that was
    saved.
    """

    def __init__(self, failed_devices: Any) -> None:
        self.failed_devices = failed_devices
        super().__init__(f"Devices failed: {failed_devices}")


@contextmanager
def live_devices(devices: Sequence[Any]) -> Iterator[list[Any]]:
    """A context in which the processes that are alive agree on whose devices these are.

    With `jax_enable_recoverability` the death of a process does not end the others. They all enter
    `with live_devices(devices) as alive:` and leave it, and use the devices `alive` in between.

    Args:
      devices: the devices in question, some of them this process's.

    Raises:
      RuntimeError: there is no group of processes.
      ValueError: none of the devices is of this process.
      ProcessFailureError: at the end, a process of `alive` has died since.
    """
    alive = _incarnations(devices)
    try:
        yield list(alive)
    finally:
        now = _incarnations(list(alive))
        failed = {d for d, incarnation in alive.items() if now.get(d) != incarnation}
        if failed:
            raise ProcessFailureError(failed)


def _incarnations(devices: Sequence[Any]) -> dict[Any, int]:
    """The devices of processes that are alive, with what tells these from ones started anew.
    Returns in all of them, when all have asked."""
    if group.client is None:
        raise RuntimeError("live_devices: Distributed JAX not initialized. Call "
                           "jax.distributed.initialize.")
    indices = {d.process_index for d in devices}
    if backends.process_index() not in indices:
        raise ValueError("Provided devices do not have any local devices.")
    alive = group.client.get_live_nodes(sorted(indices))
    return {d: alive[d.process_index] for d in devices if d.process_index in alive}


__dir__ = directory(__name__, __all__)
