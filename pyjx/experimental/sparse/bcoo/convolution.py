"""Convolution of BCOO arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyjx import lax
from pyjx import numpy as jnp
from pyjx.core import dtypes
from pyjx.core.array_type import Array, DTypeLike
from pyjx.core.layouts import ShardingLike
from pyjx.core.tracebacks import api_boundary
from pyjx.experimental.sparse.bcoo.array import BCOO
from pyjx.experimental.sparse.bcoo.layout import bcoo_update_layout
from pyjx.runtime.operations import op_jit


@api_boundary
def bcoo_conv_general_dilated(
    lhs: BCOO | Array, rhs: BCOO | Array, *, window_strides: Any, padding: Any,
    lhs_dilation: Any = None, rhs_dilation: Any = None, dimension_numbers: Any = None,
    feature_group_count: int = 1, batch_group_count: int = 1, precision: Any = None,
    preferred_element_type: DTypeLike | None = None, out_sharding: ShardingLike = None,
) -> BCOO:
    """The convolution of two BCOO arrays, or of one and a dense array, along one dimension.

    Args:
      lhs, rhs: arrays of shape `[1, 1, n]`, at least one a BCOO array.
      window_strides: `(1,)`.
      padding: as for `lax.conv_general_dilated`.
      lhs_dilation, rhs_dilation, feature_group_count, batch_group_count: None or 1.
      dimension_numbers: None, for the layout above.
      precision: not used.
      preferred_element_type: dtype of the result.
      out_sharding: not used on one device.

    Returns:
      BCOO array of shape `[1, 1, m]` that stores an element for each pair of elements.

    Raises:
      NotImplementedError: anything but the above.

    >>> import pyjx.numpy as jnp
    >>> from pyjx.experimental import sparse
    >>> x = sparse.BCOO.fromdense(jnp.array([[[1., 0., 2., 0.]]]))
    >>> k = sparse.BCOO.fromdense(jnp.array([[[3., 4.]]]))
    >>> y = sparse.bcoo_conv_general_dilated(x, k, window_strides=(1,), padding="VALID")
    >>> y.todense().tolist()
    [[[3.0, 8.0, 6.0]]]
    """
    if not (isinstance(lhs, BCOO) or isinstance(rhs, BCOO)):
        raise TypeError("bcoo_conv_general_dilated: lhs or rhs must be a BCOO array, got "
                        f"{type(lhs)} and {type(rhs)}.")
    numbers = lax.conv_dimension_numbers(lhs.shape, rhs.shape, dimension_numbers)
    if (lhs.ndim != 3 or numbers != lax.conv_dimension_numbers(lhs.shape, rhs.shape, None)):
        raise NotImplementedError("bcoo convolution with other than one spatial dimension, or with "
                                  "dimension_numbers.")
    if lhs.shape[:2] != (1, 1) or rhs.shape[:2] != (1, 1):
        raise NotImplementedError("bcoo convolution with leading dimensions other than (1, 1): "
                                  f"got {lhs.shape} and {rhs.shape}.")
    if any([s != 1 for s in window_strides]):
        raise NotImplementedError("bcoo convolution with non-unit window_strides.")
    for name, dilation in (("lhs", lhs_dilation), ("rhs", rhs_dilation)):
        if dilation is not None and any([d != 1 for d in dilation]):
            raise NotImplementedError(f"bcoo convolution with non-unit {name}_dilation.")
    if (feature_group_count, batch_group_count) != (1, 1):
        raise NotImplementedError("bcoo convolution with groups.")
    pads = padding
    if isinstance(padding, str):
        pads = lax.padtype_to_pads(lhs.shape[2:], rhs.shape[2:], (1,), padding)
    ((low, high),) = pads
    dtype = None if preferred_element_type is None else jnp.dtype(preferred_element_type)
    return _convolved(  # type: ignore[no-any-return]
        _by_column(lhs), _by_column(rhs), low=int(low), high=int(high), dtype=dtype)


def _by_column(x: BCOO | Array) -> BCOO:
    """`[1, 1, n]` as two batch dimensions and a sparse one. All elements of a dense array are
    stored, as derivatives by zeros are not zero."""
    if isinstance(x, BCOO):
        return bcoo_update_layout(x, n_batch=2, n_dense=0)
    return BCOO._of(x, jnp.arange(x.shape[2], dtype=np.int32)[None, None, :, None], x.shape,
                    indices_sorted=True, unique_indices=True)


@op_jit(trees=True, static_argnames=("low", "high", "dtype"))
def _convolved(lhs: BCOO, rhs: BCOO, *, low: int, high: int, dtype: DTypeLike | None) -> Any:
    """x_i k_j is part of the result at i - j + low."""
    (n, m), pairs = (x.shape[2] for x in (lhs, rhs)), lhs.nse * rhs.nse
    length = max(n + low + high - m + 1, 0)
    x, k = lhs.data[..., :, None], rhs.data[..., None, :]
    if dtype is not None:
        x, k = x.astype(dtype), k.astype(dtype)
    i, j = lhs.indices[..., :, None, 0], rhs.indices[..., None, :, 0]
    place = i - j + low
    inside = (i >= 0) & (i < n) & (j >= 0) & (j < m) & (place >= 0) & (place < length)
    data = jnp.where(inside, x * k, jnp.zeros((), dtypes.result_type(x.dtype, k.dtype)))
    place = jnp.where(inside, place, length)
    return BCOO._of(data.reshape(1, 1, pairs), place.reshape(1, 1, pairs, 1), (1, 1, length))
