"""Arrays that depend on nothing but their shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pyjx.core import dtypes
from pyjx.core.array_type import Array, DTypeLike
from pyjx.core.explicit import check_out_sharding
from pyjx.core.integers import as_int, as_shape
from pyjx.core.layouts import ShardingLike
from pyjx.engine.primitives import iota_p
from pyjx.engine.types import Rule
from pyjx.lax.compare import eq, ge
from pyjx.lax.convert import convert_element_type, full
from pyjx.lax.elementwise import add
from pyjx.runtime.resharding import check_mesh_is_set, placed


def iota(dtype: DTypeLike | None, size: int) -> Array:
    """0, 1, ..., size - 1.

    Args:
      dtype: of the result, one of numbers.
      size: how many numbers.

    Raises:
      TypeError: the dtype is not one of numbers, or the size is negative or no integer.

    >>> import pyjx as jax
    >>> jax.lax.iota(float, 3).tolist()
    [0.0, 1.0, 2.0]
    """
    return broadcasted_iota(dtype, (as_int("iota", "size", size),), 0)


def broadcasted_iota(dtype: DTypeLike | None, shape: Any, dimension: int, *,
                     out_sharding: ShardingLike = None) -> Array:
    """An array whose elements are their own positions along an axis.

    Args:
      dtype: of the result, one of numbers.
      shape: of the result.
      dimension: the axis along which the numbers rise; it is not negative.
      out_sharding: how the result lies on a mesh: a `NamedSharding`, or a `PartitionSpec` over the
        mesh of the context.

    Raises:
      TypeError: the dtype is not one of numbers, or a size is negative.
      ValueError: the dtype is None, or the axis is out of range.

    >>> import pyjx as jax
    >>> jax.lax.broadcasted_iota(int, (2, 2), 0).tolist()
    [[0, 0], [1, 1]]
    """
    if dtype is None:
        raise ValueError("iota: dtype must be specified.")
    dtype = dtypes.check_and_canonicalize_user_dtype(dtype, "iota")
    shape = as_shape("broadcasted_iota", "shape", shape)
    dimension = as_int("broadcasted_iota", "dimension", dimension)
    if out_sharding is not None:
        check_out_sharding(out_sharding, "broadcasted_iota")
        check_mesh_is_set(out_sharding, "broadcasted_iota")
    return placed(iota_p.bind(dtype=dtype, shape=shape, dimension=dimension, sharding=None),
                  out_sharding)


def _compared(compare: Rule, dtype: dtypes.DType, shape: Sequence[int], offset: Any) -> Any:
    rows = broadcasted_iota(np.int32, shape, 0)
    columns = broadcasted_iota(np.int32, shape, 1)
    if type(offset) is not int or offset:
        rows = add(rows, convert_element_type(offset, np.int32))
    return convert_element_type(compare(rows, columns), dtype)


def eye(dtype: DTypeLike | None, shape: Sequence[int], offset: Any = 0) -> Any:
    """A matrix with ones on the diagonal that is `offset` above the main one.

    >>> eye(int, (2, 3), 1).tolist()
    [[0, 1, 0], [0, 0, 1]]
    """
    return _compared(eq, dtype, shape, offset)


def tri(dtype: DTypeLike | None, shape: Sequence[int], offset: Any = 0) -> Any:
    """A matrix with ones on and below the diagonal that is `offset` above the main one.

    >>> tri(int, (2, 3)).tolist()
    [[1, 0, 0], [1, 1, 0]]
    """
    return _compared(ge, dtype, shape, offset)


def empty(shape: Any, dtype: DTypeLike | None, *, out_sharding: ShardingLike = None) -> Any:
    """An array whose elements are of no interest yet: zeros.

    Args:
      shape: of the result.
      dtype: of the result.
      out_sharding: how the result lies on a mesh: a `NamedSharding`, or a `PartitionSpec` over the
        mesh of the context.

    >>> import pyjx as jax
    >>> jax.lax.empty((2,), float).shape
    (2,)
    """
    if out_sharding is not None:
        check_out_sharding(out_sharding, "empty")
        check_mesh_is_set(out_sharding, "empty")
    return full(shape, 0, dtype, sharding=out_sharding)
