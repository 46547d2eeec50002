"""Meshes for tests, which are skipped where there are too few devices."""

from __future__ import annotations

import functools
import math
import unittest
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

import pyjx
from pyjx.sharding import AxisType, Mesh

__all__ = ["MeshSpec", "create_mesh", "with_explicit_mesh", "with_mesh", "with_mesh_from_kwargs"]

MeshSpec = list[tuple[str, int]]


def _enough(size: int) -> list[Any]:
    devices = pyjx.devices()
    if len(devices) < size:
        raise unittest.SkipTest(f"Test requires {size} global devices.")
    return devices


def create_mesh(mesh_shape: Sequence[int], axis_names: Any, iota_order: bool = False,
                axis_types: Any = None) -> Mesh:
    """A mesh with axes of such sizes and names; in the order of the devices' numbers if asked.

    Raises:
      unittest.SkipTest: there are too few devices.
    """
    size = math.prod(mesh_shape)
    devices = _enough(size)
    types = axis_types or (AxisType.Auto,) * len(mesh_shape)
    if iota_order:
        ordered = sorted(devices, key=lambda device: device.id)
        return Mesh(np.reshape(ordered[:size], tuple(mesh_shape)), axis_names, axis_types=types)
    return pyjx.make_mesh(tuple(mesh_shape), axis_names, axis_types=types,
                          devices=devices[:size])


def with_explicit_mesh(sizes: Sequence[int], names: Any, axis_types: Any = None,
                       iota_order: bool = False) -> Callable[[Any], Any]:
    """A decorator: the test runs with a mesh set, explicit by default, and gets it as `mesh`."""
    types = axis_types or (AxisType.Explicit,) * len(sizes)

    def decorate(test: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(test)
        def run(*args: Any, **kwargs: Any) -> Any:
            mesh = create_mesh(sizes, names, iota_order=iota_order, axis_types=types)
            with pyjx.set_mesh(mesh):
                return test(*args, **kwargs, mesh=mesh)

        # pytest takes the parameters of the function that is wrapped for fixtures
        del run.__wrapped__  # type: ignore[attr-defined]
        return run

    return decorate


@contextmanager
def with_mesh(named_shape: MeshSpec) -> Iterator[None]:
    """A context with a mesh of such axes: names with sizes."""
    names, sizes = zip(*named_shape, strict=True) if named_shape else ((), ())
    devices = _enough(math.prod(sizes))
    with Mesh(np.reshape(devices[:math.prod(sizes)], sizes), names):
        yield


def with_mesh_from_kwargs(f: Callable[..., Any]) -> Callable[..., Any]:
    """The function, called in the mesh of its argument `mesh` (`with_mesh`)."""
    def run(*args: Any, **kwargs: Any) -> Any:
        with with_mesh(kwargs["mesh"]):
            return f(*args, **kwargs)

    return run
