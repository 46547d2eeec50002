"""`segment_sum` and its kin: the elements with one number are reduced to one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike
from pyjx.core.avals import get_aval
from pyjx.core.explicit import check_out_sharding
from pyjx.core.integers import as_int
from pyjx.core.layouts import ShardingLike
from pyjx.core.scalars import greatest, least
from pyjx.core.specs import PartitionSpec
from pyjx.core.trace import concrete_or_error
from pyjx.numpy import reductions
from pyjx.numpy.creation import full
from pyjx.numpy.promotion import as_operand, check_arraylike
from pyjx.runtime.resharding import placed


def _reduced(name: str, method: str, identity: Callable[[Any], Any], join: Callable[..., Any],
             data: ArrayLike, segment_ids: ArrayLike, num_segments: Any, bucket_size: Any,
             options: dict[str, Any]) -> Any:
    """What the update `method` makes of an array full of the `identity` for its dtype; with buckets
    of one such array for each, which are then reduced by `join`."""
    check_arraylike(name, data, segment_ids)
    data, ids = as_operand(data), as_operand(segment_ids)
    aval, of_ids = get_aval(data), get_aval(ids)
    if not dtypes.issubdtype(of_ids.dtype, np.integer) and of_ids.dtype != np.bool_:
        raise TypeError(f"{name}: segment_ids must be integers, got {of_ids}. Make them such: "
                        "jnp.asarray(segment_ids, int).")
    rows = (*of_ids.shape, *aval.shape[1:])
    if of_ids.dtype != np.bool_ and (aval.ndim > len(rows) or any([
            n not in (1, size) for n, size in zip(aval.shape[::-1], rows[::-1], strict=False)])):
        raise ValueError(f"{name}: segment_ids must have the number of each row of data, along its "
                         f"first axis; got data {aval} and segment_ids {of_ids}.")
    if num_segments is None:
        last = concrete_or_error(None, reductions.max(ids), (
            f"{name}() `num_segments` argument. Give it as a static number: "
            f"{name}(data, segment_ids, num_segments=n)."), "")
        num_segments = int(last) + 1
    count = as_int(name, "num_segments", concrete_or_error(
        None, num_segments, f"{name}() `num_segments` argument."))
    if count < 0:
        raise ValueError(f"{name}: num_segments must be non-negative.")
    shape, start = (count, *aval.shape[1:]), np.real(identity(aval.dtype))  # JAX: -inf+0j
    options = {**options, "wrap_negative_indices": False}
    target = options.pop("out_sharding")
    if target is not None:
        _check_target(name, target, method == "add" and bucket_size is None)
    if bucket_size is None:
        options["out_sharding"] = target
        return getattr(full(shape, start, aval.dtype).at[ids], method)(data, **options)
    size = as_int(name, "bucket_size", bucket_size)
    if size < 1:
        raise ValueError(f"{name}: bucket_size must be positive, got {size}.")
    if not aval.shape:
        raise ValueError(f"{name}: data must have an axis to part into buckets, got {aval}. Leave "
                         "out bucket_size.")
    bucket = np.arange(aval.shape[0]) // size
    buckets = full((max(-(-len(bucket) // size), 1), *shape), start, aval.dtype)
    if target is not None:
        options["out_sharding"] = PartitionSpec()
    out = join(getattr(buckets.at[bucket, ids], method)(data, **options), axis=0).astype(aval.dtype)
    return placed(out, target)


def _check_target(name: str, target: Any, adds: bool) -> None:
    check_out_sharding(target, name)
    spec = target if isinstance(target, PartitionSpec) else target.spec
    if spec.unreduced and not adds:
        raise NotImplementedError(
            f"{name}: unreduced results are sums of segment_sum without bucket_size; unreduced for "
            f"{name.removeprefix('segment_')} is not yet supported. Got out_sharding={target}; "
            "leave `unreduced` out.")


def _options(indices_are_sorted: bool, unique_indices: bool, mode: Any, out_sharding: ShardingLike
             ) -> dict[str, Any]:
    return {"indices_are_sorted": indices_are_sorted, "unique_indices": unique_indices,
            "mode": mode, "out_sharding": out_sharding}


def segment_sum(data: ArrayLike, segment_ids: ArrayLike, num_segments: int | None = None,
                indices_are_sorted: bool = False, unique_indices: bool = False,
                bucket_size: int | None = None, mode: Any = None, out_sharding: ShardingLike = None
                ) -> Array:
    """The sum of the elements of `data` with each number.

    Args:
      data: array; rows along its first axis are added.
      segment_ids: integer array, the number of each row. Rows with numbers out of range are
        dropped.
      num_segments: how many results there are; the highest number and one more by default, which
        must be known when it is traced.
      indices_are_sorted, unique_indices: promises, which may make it faster.
      bucket_size: how many rows are added at a time, for better precision; all by default.
      mode: what to do with numbers out of range, as in `.at`.
      out_sharding: how the result lies along Explicit axes, which is to be said where rows are cut
        along one.

    Returns:
      Array of shape `(num_segments, *data.shape[1:])`; 0 where there is no row.

    Raises:
      TypeError: `data` or `segment_ids` is no array.
      ValueError: `num_segments` is negative.

    >>> import pyjx as jax
    >>> import pyjx.numpy as jnp
    >>> jax.ops.segment_sum(jnp.arange(1, 5), jnp.array([0, 0, 1, 1])).tolist()
    [3, 7]
    """
    return _reduced(  # type: ignore[no-any-return]
        "segment_sum", "add", lambda dtype: 0, reductions.sum, data, segment_ids, num_segments,
        bucket_size, _options(indices_are_sorted, unique_indices, mode, out_sharding))


def segment_prod(data: ArrayLike, segment_ids: ArrayLike, num_segments: int | None = None,
                 indices_are_sorted: bool = False, unique_indices: bool = False,
                 bucket_size: int | None = None, mode: Any = None, out_sharding: ShardingLike = None
                 ) -> Array:
    """The product of the elements of `data` with each number.

    Args:
      data: array; rows along its first axis are multiplied.
      segment_ids: integer array, the number of each row. Rows with numbers out of range are
        dropped.
      num_segments: how many results there are; the highest number and one more by default, which
        must be known when it is traced.
      indices_are_sorted, unique_indices: promises, which may make it faster.
      bucket_size: how many rows are multiplied at a time, for better precision; all by default.
      mode: what to do with numbers out of range, as in `.at`.
      out_sharding: how the result lies along Explicit axes, which is to be said where rows are cut
        along one.

    Returns:
      Array of shape `(num_segments, *data.shape[1:])`; 1 where there is no row.

    Raises:
      TypeError: `data` or `segment_ids` is no array.
      ValueError: `num_segments` is negative.

    >>> import pyjx as jax
    >>> import pyjx.numpy as jnp
    >>> jax.ops.segment_prod(jnp.arange(1, 5), jnp.array([0, 0, 1, 1])).tolist()
    [2, 12]
    """
    return _reduced(  # type: ignore[no-any-return]
        "segment_prod", "multiply", lambda dtype: 1, reductions.prod, data, segment_ids,
        num_segments, bucket_size, _options(indices_are_sorted, unique_indices, mode, out_sharding))


def segment_max(data: ArrayLike, segment_ids: ArrayLike, num_segments: int | None = None,
                indices_are_sorted: bool = False, unique_indices: bool = False,
                bucket_size: int | None = None, mode: Any = None, out_sharding: ShardingLike = None
                ) -> Array:
    """The maximum of the elements of `data` with each number.

    Args:
      data: array; rows along its first axis are compared.
      segment_ids: integer array, the number of each row. Rows with numbers out of range are
        dropped.
      num_segments: how many results there are; the highest number and one more by default, which
        must be known when it is traced.
      indices_are_sorted, unique_indices: promises, which may make it faster.
      bucket_size: how many rows are compared at a time, for less memory; all by default.
      mode: what to do with numbers out of range, as in `.at`.
      out_sharding: how the result lies along Explicit axes, which is to be said where rows are cut
        along one.

    Returns:
      Array of shape `(num_segments, *data.shape[1:])`; the lowest value where there is no row.

    Raises:
      TypeError: `data` or `segment_ids` is no array.
      ValueError: `num_segments` is negative.

    >>> import pyjx as jax
    >>> import pyjx.numpy as jnp
    >>> jax.ops.segment_max(jnp.arange(1, 5), jnp.array([0, 0, 1, 1])).tolist()
    [2, 4]
    """
    return _reduced(  # type: ignore[no-any-return]
        "segment_max", "max", least, reductions.max, data, segment_ids, num_segments,
        bucket_size, _options(indices_are_sorted, unique_indices, mode, out_sharding))


def segment_min(data: ArrayLike, segment_ids: ArrayLike, num_segments: int | None = None,
                indices_are_sorted: bool = False, unique_indices: bool = False,
                bucket_size: int | None = None, mode: Any = None, out_sharding: ShardingLike = None
                ) -> Array:
    """The minimum of the elements of `data` with each number.

    Args:
      data: array; rows along its first axis are compared.
      segment_ids: integer array, the number of each row. Rows with numbers out of range are
        dropped.
      num_segments: how many results there are; the highest number and one more by default, which
        must be known when it is traced.
      indices_are_sorted, unique_indices: promises, which may make it faster.
      bucket_size: how many rows are compared at a time, for less memory; all by default.
      mode: what to do with numbers out of range, as in `.at`.
      out_sharding: how the result lies along Explicit axes, which is to be said where rows are cut
        along one.

    Returns:
      Array of shape `(num_segments, *data.shape[1:])`; the highest value where there is no row.

    Raises:
      TypeError: `data` or `segment_ids` is no array.
      ValueError: `num_segments` is negative.

    >>> import pyjx as jax
    >>> import pyjx.numpy as jnp
    >>> jax.ops.segment_min(jnp.arange(1, 5), jnp.array([0, 0, 1, 1])).tolist()
    [1, 3]
    """
    return _reduced(  # type: ignore[no-any-return]
        "segment_min", "min", greatest, reductions.min, data, segment_ids, num_segments,
        bucket_size, _options(indices_are_sorted, unique_indices, mode, out_sharding))
