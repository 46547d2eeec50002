"""One-hot vectors: classes as vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyjx import lax
from pyjx.core import dtypes
from pyjx.core.array_type import Array, ArrayLike, DTypeLike
from pyjx.core.avals import get_aval
from pyjx.core.explicit import check_out_sharding
from pyjx.core.frames import warn
from pyjx.core.integers import as_int
from pyjx.core.layouts import ShardingLike
from pyjx.core.trace import concrete_or_error
from pyjx.engine.axes import broadcast_in_dim_p
from pyjx.lax.elementwise import stretch
from pyjx.numpy import creation
from pyjx.numpy.operands import canonical_axis, names_in, numpy_function
from pyjx.numpy.promotion import convert, operands


def one_hot(x: Any, num_classes: int, *, dtype: Any = None, axis: int | str = -1,
            out_sharding: Any = None) -> Array:
    """Arrays of zeros with a one at the index that each element of `x` gives.

    Indices outside [0, num_classes) give zeros only.

    Args:
      x: array of integers.
      num_classes: size of the new axis.
      dtype: of the result; the default float dtype by default.
      axis: where the new axis stands in the result, or the name of a mapped axis of that size,
        which is then the new axis.
      out_sharding: how the result lies on a mesh: a `NamedSharding`, or a `PartitionSpec` over the
        mesh of the context.

    Returns:
      An array with one axis more, of size `num_classes`, of `dtype`.

    >>> import pyjx as jax
    >>> jax.nn.one_hot(jax.numpy.array([0, 2]), 3).tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]

    An index out of range gives a row of zeros.

    >>> jax.nn.one_hot(jax.numpy.array([0, 5]), 3).tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """
    (x,) = operands("one_hot", creation.of_list(x))
    given = get_aval(x).dtype
    if not dtypes.issubdtype(given, np.integer):  # of each call, not of what is compiled once
        warn(f"jax.nn.one_hot input should be integer-typed; got dtype={given}", DeprecationWarning)
    if out_sharding is not None:
        check_out_sharding(out_sharding, "jax.nn.one_hot")
    return _one_hot(x, num_classes, dtype=dtype, axis=axis, out_sharding=out_sharding)


@numpy_function(static_argnames=("num_classes", "dtype", "axis", "out_sharding"))
def _one_hot(x: ArrayLike, num_classes: int, *, dtype: DTypeLike, axis: int | str,
             out_sharding: ShardingLike) -> Array:
    aval = get_aval(x)
    dtype = (dtypes.default_float_dtype() if dtype is None
             else dtypes.check_and_canonicalize_user_dtype(dtype, "one_hot"))
    known = concrete_or_error(None, num_classes,
                              "The error arose in jax.nn.one_hot argument `num_classes`.")
    size = as_int("one_hot", "num_classes", known)
    if size < 0:
        raise TypeError(f"one_hot: num_classes, the size of the new axis, must be nonnegative, got "
                        f"{size}.")
    if names_in(axis):
        if size != lax.axis_size(axis):
            raise ValueError(f"one_hot: expected num_classes to match the size of axis {axis}, but "
                             f"{size} != {lax.axis_size(axis)}")
        index = convert(lax.axis_index(axis), aval.dtype)
        return convert(lax.eq(x, stretch(index, aval.shape)), dtype)
    axis = canonical_axis(axis, aval.ndim + 1)
    shape = (*aval.shape[:axis], size, *aval.shape[axis:])
    kept = tuple([i for i in range(len(shape)) if i != axis])
    wide = broadcast_in_dim_p.bind(x, shape=shape, broadcast_dimensions=kept, sharding=None)
    return convert(lax.eq(wide, lax.broadcasted_iota(aval.dtype, shape, axis)), dtype)
