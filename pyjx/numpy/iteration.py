"""Iterating over an array: its rows, as arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from pyjx import jaxlib_api, lax
from pyjx.core.avals import ShapedArray
from pyjx.core.bounded import BoundedDict
from pyjx.runtime.array import value
from pyjx.runtime.operations import op_jit
from pyjx.runtime.sharding import SingleDeviceSharding

_CHUNK = 128  # rows that one call of a program makes at most
# A program makes a row in less than half the time that its copy takes, but is compiled as long as
# this many copies take.
_MANY = 10_000

_copied = BoundedDict(1024)  # how many rows were copied, by the aval of the array


def rows(x: Any) -> Iterator[Any]:
    """The rows of an array of rank 1 or more.

    Raises:
      TypeError: it has rank 0.
    """
    aval = x.aval
    if not aval.shape:
        raise TypeError("iteration over a 0-d array")
    sharding = x._sharding
    n = aval.shape[0]
    on_cpu = type(sharding) is SingleDeviceSharding and sharding._device.platform == "cpu"
    if not on_cpu:
        return (x[i] for i in range(n))
    x._check_if_deleted()
    copied = _copied.get(aval, 0)
    if copied >= _MANY:
        return _by_program(x, n)
    _copied[aval] = copied + n
    return _copies(x, aval)


def _copies(x: Any, aval: ShapedArray) -> Iterator[Any]:
    """Copies of the rows; each costs one transfer and no computation."""
    row = ShapedArray(aval.shape[1:], aval.dtype, aval.weak_type)
    sharding = x._sharding
    devices = [sharding._device]
    committed = x._committed
    put = jaxlib_api.batched_device_put
    scalar = not row.shape
    for part in value(x):
        yield put(row, sharding, [np.asarray(part) if scalar else part], devices, committed)


def _by_program(x: Any, n: int) -> Iterator[Any]:
    if n <= _CHUNK:
        yield from _unstacked(x)
        return
    size = -(-n // -(-n // _CHUNK))  # calls of one size, the last of which begins earlier
    for start in range(0, n, size):
        first = min(start, n - size)
        yield from _chunk(x, first, size)[start - first:]


@op_jit
def _unstacked(x: Any) -> list[Any]:
    return [lax.index_in_dim(x, i, 0, keepdims=False) for i in range(x.shape[0])]


@op_jit(static_argnames=("size",))
def _chunk(x: Any, start: Any, size: int) -> list[Any]:
    """The `size` rows from `start` on."""
    return _unstacked(lax.dynamic_slice_in_dim(x, start, size, 0))
