"""Arrays of devices for meshes, in which neighbours along an axis are near each other."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pyjx.core.meshes import device_array
from pyjx.lazy import directory
from pyjx.runtime import backends
from pyjx.runtime.sharding import prime_factors

__all__ = ["create_device_mesh", "create_hybrid_device_mesh", "device_kind_handler_dict"]

Devices = np.ndarray[Any, Any]
Shape = tuple[int, ...]


def create_device_mesh(mesh_shape: Sequence[int], devices: Sequence[Any] | None = None, *,
                       contiguous_submeshes: bool = False,
                       allow_split_physical_axes: bool = False) -> Devices:
    """An array of devices for `Mesh`; of TPUs those are neighbours that links connect.

    Args:
      mesh_shape: the size of each axis, that with the most traffic last.
      devices: by default all of the default backend.
      contiguous_submeshes: of TPUs whether each process's devices are to stay together.
      allow_split_physical_axes: of TPUs whether an axis may take a part of one of the torus.

    Raises:
      ValueError: there is another number of devices.
      NotImplementedError: the axes do not fit those of the torus.

    >>> from pyjx.experimental.mesh_utils import create_device_mesh
    >>> import pyjx as jax
    >>> create_device_mesh((1, 1), jax.devices()[:1]).shape
    (1, 1)
    """
    given, shape = devices, tuple(mesh_shape)
    devices = list(backends.devices() if given is None else given)
    if math.prod(shape) != len(devices):
        cure = "." if given else backends.for_more(devices, math.prod(shape))
        raise ValueError(f"Number of devices {len(devices)} must equal the product of mesh_shape "
                         f"{shape}{cure}")
    last = devices[-1]
    handler = device_kind_handler_dict.get(last.device_kind)
    if handler is not None:
        found = handler(shape, devices, contiguous_submeshes=contiguous_submeshes)
        if found is not None:
            return found
    if last.platform != "tpu":
        return device_array(devices).reshape(shape)
    torus = _torus(devices)
    if contiguous_submeshes:
        torus = _by_process(torus)
    return _along_torus(torus, shape, allow_split_physical_axes)


def create_hybrid_device_mesh(
    mesh_shape: Sequence[int], dcn_mesh_shape: Sequence[int], devices: Sequence[Any] | None = None,
    *, process_is_granule: bool = False, should_sort_granules_by_key: bool = True,
    allow_split_physical_axes: bool = False,
) -> Devices:
    """An array of devices of several slices, each axis the product of one within a slice and one
    across them.

    Args:
      mesh_shape: the sizes within a slice.
      dcn_mesh_shape: the sizes across slices, over the slower network.
      devices: by default all of the default backend.
      process_is_granule: whether the devices of a process are a slice.
      should_sort_granules_by_key: whether slices stand in the order of their numbers.
      allow_split_physical_axes: as in `create_device_mesh`.

    Raises:
      ValueError: the devices do not say their slice, or there is another number of slices.
    """
    devices = list(backends.devices() if devices is None else devices)
    attribute = "process_index" if process_is_granule else "slice_index"
    if not hasattr(devices[0], attribute):
        raise ValueError(f"Device {devices[0]} does not have attribute {attribute}. See "
                         "`process_is_granule` option.")
    slices: dict[int, list[Any]] = {}
    for device in devices:
        slices.setdefault(getattr(device, attribute), []).append(device)
    keys = sorted(slices) if should_sort_granules_by_key else list(slices)
    across = tuple(dcn_mesh_shape)
    if math.prod(across) != len(slices):
        raise ValueError(f"Number of slices {len(slices)} must equal the product of "
                         f"dcn_mesh_shape {across}")
    inner = [create_device_mesh(mesh_shape, slices[k],
                                allow_split_physical_axes=allow_split_physical_axes) for k in keys]
    blocks = np.empty(across, dtype=object)
    for place, block in zip(np.ndindex(*across), inner, strict=True):
        blocks[place] = block
    joined: Devices = np.block(blocks.tolist())
    return joined


# ---- TPUs ---------------------------------------------------------------------------------


# A walk through the chips of a board along its links, by their numbers.
_RINGS: dict[Shape, tuple[int, ...]] = {(2, 2): (0, 1, 3, 2), (2, 4): (0, 1, 2, 3, 7, 6, 5, 4),
                                        (4, 2): (0, 2, 4, 6, 7, 5, 3, 1)}


def _on_a_board(mesh_shape: Shape, devices: Sequence[Any], contiguous_submeshes: bool = False
                ) -> Devices | None:
    """The chips of one board in the order of a ring, for meshes of one axis longer than one; None
    for other meshes."""
    if contiguous_submeshes or sum([k > 1 for k in mesh_shape]) != 1:
        return None
    if any([getattr(d, "coords", None) is None or getattr(d, "core_on_chip", 0) for d in devices]):
        return None
    ordered = sorted(devices, key=lambda d: tuple(d.coords[::-1]))
    columns = len({d.coords[0] for d in devices})
    rows = len({d.coords[1] for d in devices})
    ring = _RINGS.get((rows, columns))
    if ring is None or len(devices) != rows * columns:
        return None
    return device_array([ordered[i] for i in ring]).reshape(mesh_shape)


# By the kind of devices a function `(mesh_shape, devices, contiguous_submeshes=) -> array | None`.
device_kind_handler_dict: dict[str, Callable[..., Devices | None]] = dict.fromkeys(
    ("TPU v2", "TPU v3", "TPU v4 lite", "TPU v5 lite", "TPU v5e", "TPU v5p", "TPU v5",
     "TPU v6 lite", "TPU7x", "TPU7", "TPU8i"), _on_a_board)


def _torus(devices: Sequence[Any]) -> Devices:
    """The devices by their coordinates, and the core of a chip as a last axis."""
    places = [(*d.coords, getattr(d, "core_on_chip", 0)) for d in devices]
    least = np.min(places, axis=0)
    shape = np.max(places, axis=0) - least + 1
    if math.prod(shape) != len(devices):
        raise NotImplementedError(f"The {len(devices)} devices do not fill a torus of shape "
                                  f"{tuple(shape)}. Give `Mesh` an array of them.")
    torus = np.empty(shape, dtype=object)
    for place, device in zip(places, devices, strict=True):
        torus[tuple(np.subtract(place, least))] = device
    return torus


def _by_process(torus: Devices) -> Devices:
    """The torus with the devices of a process one after the other along its axes."""
    block = tuple([len({i[a] for i, d in np.ndenumerate(torus)
                        if d.process_index == torus.flat[0].process_index})
                   for a in range(torus.ndim)])
    if any([n % k for n, k in zip(torus.shape, block, strict=True)]):
        return torus
    split = [k for n, b in zip(torus.shape, block, strict=True) for k in (n // b, b)]
    order = [*range(0, 2 * torus.ndim, 2), *range(1, 2 * torus.ndim, 2)]
    return torus.reshape(split).transpose(order).reshape(
        *[n // b for n, b in zip(torus.shape, block, strict=True)], *block)


def _along_torus(torus: Devices, mesh_shape: Shape, may_split: bool) -> Devices:
    """Give each axis of the mesh, the last first, some axes of the torus of that product."""
    free = [i for i, n in enumerate(torus.shape) if n > 1]
    taken: dict[int, tuple[int, ...]] = {}
    for axis in reversed(range(len(mesh_shape))):
        wanted = mesh_shape[axis]
        fitting = [c for n in range(len(free) + 1) for c in itertools.combinations(free, n)
                   if math.prod([torus.shape[i] for i in c]) == wanted]
        if not fitting:
            if may_split:
                return _split_torus(torus, mesh_shape)
            raise NotImplementedError(
                f"Failed to find assignment for logical_axis_index {axis} of size {wanted} with "
                f"remaining assignable mesh {[torus.shape[i] for i in free]}. The size of each "
                "axis in your logical mesh must be equal to the product of some subset of the "
                "physical mesh axis sizes. Give allow_split_physical_axes=True to use parts.")
        taken[axis] = fitting[0]
        free = [i for i in free if i not in fitting[0]]
    order = [i for axis in range(len(mesh_shape)) for i in taken[axis]]
    rest = [i for i in range(torus.ndim) if i not in order]
    return torus.transpose(order + rest).reshape(mesh_shape)


def _split_torus(torus: Devices, mesh_shape: Shape) -> Devices:
    """The same with the axes of the torus cut into their prime factors."""
    factors = [f for n in torus.shape for f in prime_factors(n) or [1]]
    split = torus.reshape(factors)
    if split.shape == torus.shape:
        raise NotImplementedError(f"A mesh of shape {mesh_shape} does not fit a torus of shape "
                                  f"{torus.shape}.")
    return _along_torus(split, mesh_shape, may_split=False)


__dir__ = directory(__name__, __all__)
